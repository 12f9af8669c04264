"""The index of covering filters gives the same results as comparing with all filters one by one."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gapless.filters import Filter, parse
from gapless.filters.box_tree import NODE_MAX, BoxTree
from gapless.filters.cover_index import CoverIndex
from tests.filters import generated


def scan(entries: dict[int, Filter], narrower: Filter) -> int | None:
    equal = [key for key, wider in entries.items() if wider.text == narrower.text]
    return next(iter(equal + [key for key, wider in entries.items() if wider.covers(narrower)]), None)


def check(entries: dict[int, Filter], removed: set[int], asked: list[Filter]) -> None:
    index: CoverIndex[int] = CoverIndex()
    for key, wider in entries.items():
        index.add(key, wider)
    left = dict(entries)
    for key in removed & entries.keys():
        index.remove(key)
        del left[key]
    assert len(index) == len(left)
    for narrower in asked:
        assert index.find(narrower) == scan(left, narrower), narrower
    for key in left:
        index.remove(key)
    assert [index.find(narrower) for narrower in asked] == [None] * len(asked)
    assert not index._root.below
    assert not index._root.boxes


@settings(max_examples=100)
@given(
    st.lists(generated.filters, max_size=12),
    st.sets(st.integers(0, 11), max_size=4),
    st.lists(generated.filters, min_size=1, max_size=4),
)
def test_generated_filters_find_the_cover_that_a_scan_finds(
    wider: list[Filter], removed: set[int], asked: list[Filter]
) -> None:
    check(dict(enumerate(wider)), removed, [*asked, *wider[:3]])


PATTERNS = ("a%", "a/b%", "a/b/%", "%b", "c_%")


def text_of(dice: random.Random) -> str:
    conditions: dict[str, Callable[[], str]] = {
        "price": lambda: f"price BETWEEN {dice.randint(0, 4)} AND {dice.randint(4, 9)}",
        "size": lambda: f"size {dice.choice(['<', '>', '=', '<>', '>='])} {dice.randint(0, 6)}",
        "topic": lambda: f"topic = 't{dice.randint(0, 3)}'",
        "path": lambda: (
            f"path {dice.choice(['LIKE', 'NOT LIKE'])} '{dice.choice(['a%', 'a/b%', 'a/b/%', '%b', 'c_%'])}'"
        ),
        "place": lambda: f"place IN ({', '.join(repr(f'p{n}') for n in dice.sample(range(6), dice.randint(1, 4)))})",
        "note": lambda: f"note IS {dice.choice(['', 'NOT '])}NULL",
        "free": lambda: "free",
    }
    parts = [conditions[name]() for name in dice.sample(sorted(conditions), dice.choice([1, 1, 2, 2, 3, 4]))]
    text = " AND ".join(parts)
    return f"{text} OR size + price > {dice.randint(0, 5)}" if dice.random() < 0.1 else text


@pytest.mark.parametrize("seed", range(6))
def test_many_filters_find_the_cover_that_a_scan_finds(seed: int) -> None:
    dice = random.Random(seed)
    entries = dict(enumerate(parse(text_of(dice)) for _ in range(300)))
    removed = set(dice.sample(range(300), 120))
    check(entries, removed, [parse(text_of(dice)) for _ in range(150)])


@pytest.mark.parametrize(
    ("wider", "narrower"),
    [
        ("a IN ('x')", "a LIKE '%x' AND a NOT LIKE '_%x'"),
        ("a LIKE 'x%'", "a LIKE 'xy%' AND a NOT LIKE '%z'"),
        ("a LIKE 'x\U0010ffff%'", "a = 'x\U0010ffff\U0010ffff'"),
        ("a NOT IN ('x', 'y')", "a = 'z'"),
        ("a IN (1, 2, 3)", "a IN (1.0, 3)"),
        ("a IS NOT NULL", "a > 1"),
        ("TRUE", "a = 1"),
        ("a = 1 OR b = 2", "b = 2.0 AND c"),
        ("a > 1", "FALSE"),
        ("a + b > 3", "a + b > 3 AND c"),
    ],
)
def test_finds_covers_of_every_kind(wider: str, narrower: str) -> None:
    index: CoverIndex[str] = CoverIndex()
    index.add("other", parse("z = 'z'"))
    index.add("wider", parse(wider))
    if narrower == "FALSE":
        index.remove("other")
    assert index.find(parse(narrower)) == "wider"


def test_an_equal_filter_is_found_before_an_earlier_cover() -> None:
    index: CoverIndex[str] = CoverIndex()
    for key, text in (("wide", "a > 1"), ("first", "a > 2"), ("second", "a > 2")):
        index.add(key, parse(text))
    assert index.find(parse("a > 2")) == "first"
    index.remove("first")
    assert index.find(parse("a > 2")) == "second"
    index.remove("second")
    assert index.find(parse("a > 2")) == "wide"


def test_looks_at_few_of_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """At most a hundredth of the filters is compared, whether all, none or one of them covers the filter."""
    compared = 0
    really = Filter.covers

    def counted(self: Filter, other: Filter) -> bool:
        nonlocal compared
        compared += 1
        return really(self, other)

    monkeypatch.setattr(Filter, "covers", counted)
    index: CoverIndex[int] = CoverIndex()
    for number in range(5_000):
        index.add(number, parse(f"price > {5_000 - number}"))
    assert index.find(parse("price > 6000")) == 0
    assert index.find(parse("price > 0")) is None
    assert index.find(parse("price > 17.5")) == 4983
    assert index.find(parse("price > 6000 AND topic = 't'")) == 0
    assert index.find(parse("topic = 't'")) is None
    assert compared <= 50


def test_a_filter_of_a_thousand_attributes_is_found() -> None:
    text = " AND ".join(f"a{number} > 1" for number in range(1_000))
    index: CoverIndex[str] = CoverIndex()
    index.add("wide", parse(text))
    assert index.find(parse(text + " AND b = 1")) == "wide"
    index.remove("wide")
    assert not index._root.below


Box = tuple[tuple[int, int], tuple[int, int]]
sides = st.tuples(st.integers(0, 9), st.integers(0, 9))


@settings(max_examples=100)
@given(st.lists(st.tuples(sides, sides), min_size=1, max_size=200), st.data())
def test_the_tree_of_boxes_finds_the_first_that_contains(boxes: list[Box], data: st.DataObject) -> None:
    tree = BoxTree(*boxes[0], 0)
    for number, box in enumerate(boxes[1:], 1):
        tree.add(*box, number)
    gone = data.draw(st.sets(st.sampled_from(range(len(boxes)))))
    for number in sorted(gone):
        tree.remove(*boxes[number], number)
    left = [number for number in range(len(boxes)) if number not in gone]
    assert bool(tree) == bool(left)
    if not left:
        return
    lows, highs = data.draw(st.tuples(sides, sides))
    odd = data.draw(st.booleans())
    wanted = [
        number
        for number in left
        if all(a <= b for a, b in zip(boxes[number][0], lows, strict=True))
        and all(a >= b for a, b in zip(boxes[number][1], highs, strict=True))
        and not (odd and number % 2)
    ]
    assert tree.first(lows, highs, 1_000, lambda number: not (odd and number % 2)) == min(wanted, default=1_000)


def test_the_tree_of_boxes_stays_flat_when_boxes_come_in_order() -> None:
    tree = BoxTree((0,), (0,), 0)
    for number in range(1, 5_000):
        tree.add((number,), (number,), number)
    depth, node = 1, tree._root
    while node.below:
        depth, node = depth + 1, node.below[0]
    assert (NODE_MAX // 2) ** (depth - 1) < 5_000
