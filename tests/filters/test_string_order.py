"""Strings are ordered by code point: filters and SQLite select the same rows with the same condition."""

import random
import sqlite3

import pytest

from gapless.events import Attributes
from gapless.filters import Filter, FilterIndex, parse
from gapless.filters.cover_index import CoverIndex
from gapless.filters.syntax import render_value

TEXTS = (
    "", "a", "B", "b", "ab", "a!", "a\0", "z", "é", "ß", "~", "2026-11-16", "2026-11-16T10:32:00Z", "2026-12-01",
    "\ud7ff", "\ue000", "\uffff", "\U00010000", "\U0010ffff", "it's",
)  # fmt: skip
NAMES = ("a", "b")


def condition(rng: random.Random, depth: int = 2) -> str:
    name = rng.choice(NAMES)
    one, other = (render_value(rng.choice(TEXTS)) for _ in range(2))
    negated = rng.choice(("", "NOT "))
    if depth and rng.random() < 0.5:
        parts = f" {rng.choice(('AND', 'OR'))} ".join(f"({condition(rng, depth - 1)})" for _ in range(2))
        return f"NOT ({parts})" if negated else parts
    match rng.randrange(6):
        case 0:
            return f"{name} {negated}BETWEEN {one} AND {other}"
        case 1:
            return f"{one} {rng.choice(('<', '<=', '>', '>='))} {name}"
        case 2:
            return f"a {rng.choice(('<', '<=', '>', '>=', '=', '<>'))} b"
        case 3:
            return f"{name} {negated}LIKE '{rng.choice(('2026%', 'a%', '%', '_', '2026-11-%', 'a_'))}'"
        case _:
            return f"{name} {rng.choice(('<', '<=', '>', '>=', '=', '<>'))} {one}"


@pytest.fixture(scope="module")
def rows() -> list[Attributes]:
    rng = random.Random(3)
    found: list[Attributes] = [{name: text} for name in NAMES for text in TEXTS]
    for _ in range(60):
        found.append({name: rng.choice(TEXTS) for name in NAMES})
    return found


@pytest.fixture(scope="module")
def table(rows: list[Attributes]) -> sqlite3.Connection:
    found = sqlite3.connect(":memory:")
    found.execute("PRAGMA case_sensitive_like = ON")
    found.execute("CREATE TABLE events (id INTEGER PRIMARY KEY, a TEXT, b TEXT)")
    entered = [(number, row.get("a"), row.get("b")) for number, row in enumerate(rows) if is_sql(row)]
    found.executemany("INSERT INTO events VALUES (?, ?, ?)", entered)
    return found


def is_sql(found: str | Attributes) -> bool:
    """Return whether SQLite reads the whole text. In its LIKE and its queries, the character 0 ends a text."""
    return "\0" not in (found if isinstance(found, str) else "".join(map(str, found.values())))


def matching(found: Filter, rows: list[Attributes]) -> list[int]:
    return [number for number, row in enumerate(rows) if found.test(row)]


def test_filters_agree_with_sqlite(table: sqlite3.Connection, rows: list[Attributes]) -> None:
    rng = random.Random(1)
    for _ in range(1_500):
        text = condition(rng)
        if is_sql(text):
            selected = [number for (number,) in table.execute(f"SELECT id FROM events WHERE {text} ORDER BY id")]
            assert [number for number in matching(parse(text), rows) if is_sql(rows[number])] == selected, text


def test_covers_and_overlaps_agree_with_what_matches(rows: list[Attributes]) -> None:
    rng = random.Random(2)
    selected = 0
    for _ in range(1_500):
        wide, narrow = parse(condition(rng, 1)), parse(condition(rng, 1))
        here, there = set(matching(wide, rows)), set(matching(narrow, rows))
        if wide.covers(narrow):
            selected += 1
            assert there <= here, (wide.text, narrow.text)
        if not wide.overlaps(narrow):
            selected += 1
            assert not here & there, (wide.text, narrow.text)
    assert selected > 400


def test_indexes_find_what_comparing_with_all_finds(rows: list[Attributes]) -> None:
    rng = random.Random(4)
    filters = {number: parse(condition(rng, 1)) for number in range(150)}
    index, covers = FilterIndex[int](), CoverIndex[int]()
    for number, each in filters.items():
        index.add(number, each)
        covers.add(number, each)
    for row in rows:
        assert sorted(index.match(row)) == [number for number, each in filters.items() if each.test(row)]
    for _ in range(200):
        narrow = parse(condition(rng, 1))
        equal = [number for number, each in filters.items() if each.text == narrow.text]
        first = equal or [number for number, each in filters.items() if each.covers(narrow)]
        assert covers.find(narrow) == (first[0] if first else None), narrow.text
