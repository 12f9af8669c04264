"""The table of docs/COMING_FROM.md beside other libraries: every call in our column exists, with its arguments."""

import ast
import inspect
import re
from typing import Any

import pytest

import gapless
import gapless.otel
from tests.pages.page import read

OWNERS: tuple[Any, ...] = (gapless, gapless.otel, gapless.Client, gapless.DurableSubscription, gapless.DurableEvent)
TABLE = read("docs/COMING_FROM.md").partition("## The interfaces side by side")[2].partition("\n## ")[0]
ROWS = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in TABLE.splitlines() if line.startswith("| ")]
PIECES = sorted({piece for row in ROWS[2:] for piece in re.findall(r"`([^`]+)`", row[1])} - {"gapless up --brokers 1"})


def found(name: str) -> list[Any]:
    return [getattr(owner, name) for owner in OWNERS if hasattr(owner, name)]


PARAMETERS = {
    parameter
    for owner in OWNERS
    for _, call in inspect.getmembers(owner, inspect.isfunction)
    for parameter in inspect.signature(call).parameters
}


def test_the_table_is_complete() -> None:
    assert [len(row) for row in ROWS] == [6] * len(ROWS)
    assert len(ROWS) > 30
    assert len(PIECES) > 25


@pytest.mark.parametrize("piece", PIECES)
def test_every_call_of_our_column_exists(piece: str) -> None:
    code = piece.replace("…", "").rstrip(":")
    if re.fullmatch(r"\w+=.*", code):
        assert code.partition("=")[0] in PARAMETERS
        return
    is_block = code.startswith("async ")
    tree = ast.parse(f"async def f():\n  {code}{': pass' if is_block else ''}")
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            assert found(node.attr) or node.attr in ("gapless", "otel", "sync"), node.attr
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else ast.unparse(node.func)
            accepted = {each for call in found(name) for each in inspect.signature(call).parameters}
            assert accepted or name == "Tracing", name
            assert {each.arg for each in node.keywords} <= accepted
    if code.isidentifier():
        assert found(code)
