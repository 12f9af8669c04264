"""What tells newcomers where things are is complete: the map of the default protocol, and the tables of packages."""

import ast
import re
from pathlib import Path

import pytest

from tests.test_layers import ROOMS

SOURCE = Path(__file__).parents[1] / "src"
HOUSE = SOURCE / "gapless/protocols/gapless"
ARCHITECTURE = Path(__file__).parents[1] / "docs" / "ARCHITECTURE.md"


def _docstring(package: Path) -> str:
    return ast.get_docstring(ast.parse((package / "__init__.py").read_text(encoding="utf-8"))) or ""


def _contents(package: Path) -> set[str]:
    """The files of a package, and the packages in it."""
    files = {file.stem for file in package.glob("*.py")} - {"__init__"}
    return files | {file.parent.name for file in package.glob("*/__init__.py")}


def _map() -> list[list[str]]:
    """The lines of the map: names of parts, and at the end of each line what they are."""
    lines = [line for line in _docstring(HOUSE).splitlines() if line.startswith("    ")]
    return [[name.rstrip("/") for name in re.split(r"\s{2,}", line.strip())[:-1]] for line in lines]


def _tables() -> list[Path]:
    """Packages that list their files: in a table, or one in each line."""
    packages = [file.parent for file in sorted(SOURCE.rglob("__init__.py"))]
    return [package for package in packages if "| file |" in _docstring(package) or package.parent == HOUSE]


def test_the_map_shows_every_part_once() -> None:
    shown = [name for line in _map() for name in line]
    assert sorted(shown) == sorted(_contents(HOUSE)) == sorted(ROOMS)


def test_on_the_map_each_part_stands_above_those_that_it_imports() -> None:
    height = {name: -number for number, line in enumerate(_map()) for name in line}
    assert not [(name, below) for name, others in ROOMS.items() for below in others if height[below] >= height[name]]


@pytest.mark.parametrize("package", _tables(), ids=lambda package: package.relative_to(SOURCE).as_posix())
def test_a_table_names_every_file_and_no_other(package: Path) -> None:
    text = _docstring(package)
    rows = [line.rsplit("|", 2)[1] for line in text.splitlines() if line.startswith("| ")]
    listed = {name for row in rows for name in re.findall(r"`(\w+)`(?! beside)", row)}
    assert (listed or set(re.findall(r"^- `(\w+)`: ", text, re.MULTILINE))) == _contents(package)


def test_the_architecture_names_every_room() -> None:
    row = next(line for line in ARCHITECTURE.read_text(encoding="utf-8").splitlines() if "`protocols/gapless`" in line)
    rooms = {file.parent.name for file in HOUSE.glob("*/__init__.py")}
    assert set(re.findall(r"\w+", row)) >= rooms
