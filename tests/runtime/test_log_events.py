"""Every record in the log of a broker has a stable key, `event`, and the same event has the same wording."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import gapless

SOURCE = Path(gapless.__file__).parent
METHODS = {"debug", "info", "warning", "error", "exception", "critical"}
VARIES = {"file.exposed"}


def _log_calls() -> Iterator[tuple[str, ast.Call]]:
    for folder in ("runtime", "http"):
        for file in sorted((SOURCE / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if (
                    isinstance(node, ast.Call)
                    and isinstance(node.func, ast.Attribute)
                    and node.func.attr in METHODS
                    and ast.unparse(node.func.value).endswith("logger")
                ):
                    yield f"{file.relative_to(SOURCE)}:{node.lineno}", node


def _event(call: ast.Call) -> str:
    for keyword in call.keywords:
        if keyword.arg == "extra" and isinstance(keyword.value, ast.Dict):
            for key, value in zip(keyword.value.keys, keyword.value.values, strict=True):
                if isinstance(key, ast.Constant) and key.value == "event":
                    return ast.unparse(value)
    return ""


def test_every_record_has_an_event() -> None:
    calls = list(_log_calls())
    assert len(calls) > 40
    assert not [place for place, call in calls if not _event(call)]


def test_keys_of_events_are_names_with_a_dot() -> None:
    keys = {key.strip("'") for _, call in _log_calls() if (key := _event(call)).startswith("'")}
    assert not [key for key in keys if not re.fullmatch(r"[a-z]+\.[a-z_]+", key)]


def test_an_event_has_one_wording() -> None:
    wordings: dict[str, set[str]] = defaultdict(set)
    for _, call in _log_calls():
        if (key := _event(call)).startswith("'"):
            wordings[key.strip("'")].add(ast.unparse(call.args[0]))
    assert not {key: texts for key, texts in wordings.items() if len(texts) > 1 and key not in VARIES}
