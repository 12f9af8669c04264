"""The page of errors lists every class of `gapless.errors` exactly once, and nothing else."""

import re

from gapless import errors
from tests.pages.page import read

PAGE = "docs/ERRORS.md"


def _classes() -> set[str]:
    return {name for name, each in vars(errors).items() if isinstance(each, type) and issubclass(each, Exception)}


def test_each_error_is_explained_exactly_once() -> None:
    explained = re.findall(r"^\| `(\w+)` \|", read(PAGE), re.MULTILINE)
    assert sorted(explained) == sorted(_classes())
    assert set(errors.__all__) == _classes()


def test_each_row_names_the_case_and_the_action() -> None:
    rows = [line.strip("|").split(" | ") for line in read(PAGE).splitlines() if re.match(r"\| `\w+Error` ", line)]
    assert all(len(row) == 3 and all(len(cell.strip()) > 8 for cell in row) for row in rows)


def test_the_tree_is_that_of_the_classes() -> None:
    [tree] = re.findall(r"^```text\n(.*?)^```", read(PAGE), re.DOTALL | re.MULTILINE)
    shown: dict[str, str] = {}
    path: list[str] = []
    depth = 0
    for line in tree.splitlines():
        found = re.findall(r"(\w+Error)\b", line.partition("(")[0])
        at = re.search(r"\w", line)
        assert at is not None
        if "──" in line or not path:
            depth = at.start() // 4
        path[depth:] = [found[0]]
        shown.update(dict.fromkeys(found, path[depth - 1] if depth else "Exception"))
    assert shown == {name: getattr(errors, name).__bases__[0].__name__ for name in _classes()}
