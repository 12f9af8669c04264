"""Filters: every part that parses a filter gives it the same meaning."""

from __future__ import annotations

import zlib
from random import Random
from typing import Any

from gapless.filters import Filter, FilterError, FilterIndex, filter_hints
from gapless.filters.syntax import render
from tests.fuzz.changes import changed_text
from tests.fuzz.target import Target, Unexpected

KNOWN = (
    "a", "b", "c.d", '"order-id"', '"in"', '""', "$x", "1", "0", "-1", "1.5", "1e308", ".5", "9223372036854775807",
    "9223372036854775808", "'x'", "'it''s'", "''", "'%a_%'", "TRUE", "FALSE", "NULL", "=", "<>", "!=", "<", "<=", ">",
    ">=", "+", "-", "*", "/", "(", ")", ",", '\u0131n', '\u017f', "#", " AND ", " OR ", " NOT ", " IN ", " LIKE ",
    " BETWEEN ", " IS ", " ESCAPE ", " ", "\n", "a LIKE '%a%b_%'", "a IN ('x', 'y')", "b BETWEEN 1 AND 3",
    "a IS NOT NULL", "a = b", "a + b > c",
)  # fmt: skip
EVENTS: tuple[dict[str, Any], ...] = (
    {},
    {"a": 1, "b": 2, "c.d": 1.5},
    {"a": "x", "b": "it's", "order-id": 1, "in": True, "": "x"},
    {"a": True, "b": float("nan"), "c.d": "ab"},
    {"a": "abab" * 50, "b": -1, "c.d": 2**63 - 1},
    {"a": 2**64, "b": 10**400, "c.d": float("inf"), "$x": False},
)
INDEXED = 10
"""One in this many filters is also looked up in an index, which is expensive to build."""
KEPT = 20
"""The number of earlier filters that share an index with the next one and are compared with it."""


class Filters(Target):
    """Inputs are texts of filters, in UTF-8."""

    name = "filters"
    about = "filters, and what they say of events and of each other"

    def __init__(self) -> None:
        self._kept: list[Filter] = [Filter(f"a = {n} OR b > {n}") for n in range(KEPT)]

    def draw(self, dice: Random) -> bytes:
        return self._condition(dice, dice.choice((0, 1, 2, 3))).encode()

    def _condition(self, dice: Random, depth: int) -> str:
        if depth:
            joint = dice.choice((" AND ", " OR "))
            inner = [self._condition(dice, depth - 1) for _ in range(dice.choice((1, 2, 2, 3, 5)))]
            text = joint.join(f"({part})" for part in inner)
            return f"NOT ({text})" if dice.random() < 0.2 else text
        name = dice.choice(("a", "b", "c.d", '"order-id"', '"in"', '""'))
        number = dice.choice(("0", "1", "-1", "1.5", "2e10", "9223372036854775807", "a", "b + 1", "a * b - 2"))
        match dice.randrange(6):
            case 0:
                return f"{name} {dice.choice(('=', '<>', '<', '<=', '>', '>='))} {number}"
            case 1:
                values = ("'x', 'y', 'it''s'", "1, 2.5, -3", "'a'")
                return f"{name} {dice.choice(('', 'NOT '))}IN ({dice.choice(values)})"
            case 2:
                pattern = "".join(dice.choice(("a", "b", "%", "_", "''")) for _ in range(dice.randrange(12)))
                return f"{name} {dice.choice(('', 'NOT '))}LIKE '{pattern}'"
            case 3:
                return f"{name} IS {dice.choice(('', 'NOT '))}NULL"
            case 4:
                return f"{name} BETWEEN {dice.choice(('0', '-1'))} AND {number}"
        return dice.choice(("TRUE", "FALSE", name, f"NOT {name}", f"{name} = 'x'", f"{name} <> TRUE"))

    def change(self, data: bytes, dice: Random) -> bytes:
        return changed_text(data.decode(errors="replace"), dice, KNOWN).encode(errors="surrogatepass")

    def run(self, data: bytes) -> str:
        try:
            filter_ = Filter(data.decode(errors="surrogateescape"))
        except FilterError as error:
            return "refused" if str(error) else "refused without a reason"
        _check(filter_)
        self._compare(filter_)
        if zlib.crc32(data) % INDEXED == 0:
            self._look_up(filter_)
        del self._kept[0]
        self._kept.append(filter_)
        return "taken"

    def _compare(self, filter_: Filter) -> None:
        other = self._kept[-1]
        covers, is_covered, overlaps = filter_.covers(other), other.covers(filter_), filter_.overlaps(other)
        for event in EVENTS:
            one, two = filter_.matches(event), other.matches(event)
            if (covers and two > one) or (is_covered and one > two) or (one and two and not overlaps):
                raise Unexpected(
                    f"{filter_.text!r} and {other.text!r} on {event!r}: {one}, {two}, {covers}, {overlaps}"
                )

    def _look_up(self, filter_: Filter) -> None:
        index: FilterIndex[int] = FilterIndex()
        for key, each in enumerate((*self._kept, filter_)):
            index.add(key, each)
        for event in EVENTS:
            found = index.match(event)
            if found != [key for key, each in enumerate((*self._kept, filter_)) if each.matches(event)]:
                raise Unexpected(f"the index finds {found} for {event!r}")


def _check(filter_: Filter) -> None:
    filter_hints(filter_.text)
    is_small = len(filter_.text) < 10_000 and _is_shallow(filter_.text)
    again = Filter(render(filter_.condition)) if is_small else filter_  # with more parentheses than before
    negated = Filter(f"NOT ({filter_.text})") if is_small else None
    for event in EVENTS:
        answer = filter_.evaluate(event)
        if again.evaluate(event) is not answer:
            raise Unexpected(f"{filter_.text!r} is {answer} on {event!r}, but {again.text!r} is not")
        if negated is not None and negated.evaluate(event) is not (None if answer is None else not answer):
            raise Unexpected(f"{filter_.text!r} is {answer} on {event!r}, and so is its NOT")


def _is_shallow(text: str) -> bool:
    return text.count("(") + text.upper().count("NOT") + text.count("-") < 20
