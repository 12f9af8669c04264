"""Every log record of Gapless has a stable `event` key, so that programs need not parse messages."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
LEVELS = {"debug", "info", "warning", "error", "exception", "critical"}


def calls(tree: ast.AST) -> Iterator[ast.Call]:
    """Yield the calls of a logger's methods."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in LEVELS:
            logger = ast.unparse(node.func.value).lower()
            if "logger" in logger or logger in {"log", "logging"}:
                yield node


def has_event(call: ast.Call) -> bool:
    for keyword in call.keywords:
        if keyword.arg == "extra" and isinstance(keyword.value, ast.Dict):
            return any(isinstance(key, ast.Constant) and key.value == "event" for key in keyword.value.keys)
    return False


def test_every_log_record_has_an_event() -> None:
    without, count = [], 0
    for path in sorted((ROOT / "src" / "gapless").rglob("*.py")):
        for call in calls(ast.parse(path.read_text())):
            count += 1
            if not has_event(call):
                without.append(f"{path.relative_to(ROOT)}:{call.lineno}")
    assert without == []
    assert count > 60, "the loggers are found"


def test_a_call_without_an_event_is_found() -> None:
    source = (
        'self._logger.info("a", extra={"event": "x"}); logger.error("b"); getLogger("c").debug("d", extra={"e": 1})'
    )
    assert [has_event(call) for call in calls(ast.parse(source))] == [True, False, False]
