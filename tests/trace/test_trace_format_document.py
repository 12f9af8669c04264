"""The page about the trace format agrees with the code."""

import doctest
import re
from pathlib import Path

import pytest

from gapless.trace.tables import SCHEMA_VERSION, TABLES, arrow_schema

PAGE = Path(__file__).parents[2] / "docs" / "TRACE_FORMAT.md"


@pytest.mark.parametrize("table", TABLES)
def test_every_column_is_described(table: str) -> None:
    section = PAGE.read_text().split(f"### {table}\n")[1].split("\n## ")[0].split("\n### ")[0]
    described = re.findall(r"^\| `(\w+)` \| (\w+)(, nullable)? \|", section, re.MULTILINE)
    columns = [(field.name, str(field.type), field.nullable) for field in arrow_schema(table)]
    assert [(name, kind, bool(nullable)) for name, kind, nullable in described] == columns


def test_the_version_is_named() -> None:
    assert f"defines version {SCHEMA_VERSION} of the format" in PAGE.read_text()


def test_the_example_runs() -> None:
    assert doctest.testfile(str(PAGE), module_relative=False).failed == 0
