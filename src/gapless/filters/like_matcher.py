"""Matches strings with LIKE patterns, without backtracking.

The piece before the first `%` must be at the start of the string, the piece after the last at its
end. Each floating piece in between is searched for from the end of the one before it, and the
leftmost place is taken: a string that matches with a later place matches with the leftmost one too,
since more is left for the following pieces. So the position only moves forward, and a match takes
at most one comparison for each character of the pattern and each of the string. A regular
expression with `.*` would try every combination of places.

The cost of many patterns on one long string can be split into steps (`string_precomputation`). The
cost of searching for floating pieces is bounded for a filter as a whole, in the parser:
`search_cost` weighs a pattern so that SEARCH_COST_MAX keeps one evaluation below 0.1 s even for the
worst string of 64 KiB.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import count

from gapless.filters.like import ANY_ONE, Pattern
from gapless.filters.string_precomputation import LONG, ask

Matcher = Callable[[str], bool]
Search = Callable[[str, int, int], int]
"""A function that returns the end of the leftmost occurrence of a piece in text[start:end], or -1."""

SEARCH_COST_MAX = 2048
"""The maximum cost of all patterns of one filter: 200 words to search for, or 30 parts of dates
such as `____-__`.
"""

GAPPED_COST = 8
"""The cost of a character in a piece with `_` between its characters, relative to a plain piece, as measured in the
worst case."""


_numbers = count()
"""Assigns a unique number to each pattern that needs a search in strings."""


def search_cost(pattern: Pattern) -> int:
    """Return an upper bound of the comparisons per character of a string, in units of the fastest kind."""
    cost = 0
    for piece in pattern.pieces[1:-1]:
        characters = _without_last_ones(piece)
        cost += len(characters) * (GAPPED_COST if ANY_ONE in characters else 1)
    # A search has a fixed cost, however short the piece.
    return cost and cost + 4


def matcher(pattern: Pattern) -> Matcher:
    """Return a closure that tests whether a string matches the pattern."""
    pieces = pattern.pieces
    if len(pieces) == 1:
        return _whole(pieces[0])
    head, *floating, tail = pieces
    starts, ends = _literals(head), _literals(tail)
    searches = [_search(piece) for piece in floating]
    head_length, tail_length = len(head), len(tail)
    length_min = sum(map(len, pieces))

    def look(text: str) -> bool:
        end = len(text) - tail_length
        if len(text) < length_min or not _stand(text, 0, starts) or not _stand(text, end, ends):
            return False
        position = head_length
        for search in searches:
            position = search(text, position, end)
            if position < 0:
                return False
        return True

    if not searches:
        return look
    number, cost = next(_numbers), search_cost(pattern)
    return lambda text: look(text) if len(text) <= LONG else ask(number, cost, text, look)


def _whole(piece: tuple[str, ...]) -> Matcher:
    length, literals = len(piece), _literals(piece)
    return lambda text: len(text) == length and _stand(text, 0, literals)


def _stand(text: str, position: int, literals: list[tuple[int, str]]) -> bool:
    """Return whether the literals of a piece occur at this position of the text, which must be long enough."""
    for offset, literal in literals:  # noqa: SIM110 - a generator would cost a frame for each string
        if not text.startswith(literal, position + offset):
            return False
    return True


def _literals(piece: tuple[str, ...]) -> list[tuple[int, str]]:
    """Return the runs of literal characters in a piece, each with its position."""
    literals: list[tuple[int, str]] = []
    characters: list[str] = []
    for place, token in enumerate((*piece, ANY_ONE)):
        if token != ANY_ONE:
            characters.append(token)
        elif characters:
            literals.append((place - len(characters), "".join(characters)))
            characters = []
    return literals


def _search(piece: tuple[str, ...]) -> Search:
    characters = _without_last_ones(piece)
    wanted, length, after = "".join(characters), len(piece), len(piece) - len(characters)
    if ANY_ONE in characters:
        return _gapped_search(characters, length, after)

    def find(text: str, start: int, end: int) -> int:
        found = text.find(wanted, start, end - after)
        return found + length if found >= 0 else -1

    return find


def _gapped_search(characters: tuple[str, ...], length: int, after: int) -> Search:
    # Nothing in this expression repeats, so it compares each character at most once at each position.
    search = re.compile("".join("." if c == ANY_ONE else re.escape(c) for c in characters), re.DOTALL).search

    def find(text: str, start: int, end: int) -> int:
        found = search(text, start, end - after)
        return found.start() + length if found else -1

    return find


def _without_last_ones(piece: tuple[str, ...]) -> tuple[str, ...]:
    """Return a floating piece up to its last literal character. The single wildcards after that only require a minimum
    length."""
    end = len(piece)
    while piece[end - 1] == ANY_ONE:
        end -= 1
    return piece[:end]
