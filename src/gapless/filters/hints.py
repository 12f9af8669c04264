"""Finds filters that are valid but probably mean something else than their author intended.

A filter can be valid and mean something else than its author thinks: `order-id = 1` subtracts `id`
from `order`, `topic = price` and `name = "ABC"` compare two attributes, and `LIKE 'a*'` searches
for a star. Such filters are accepted, but commands and a client's log show these hints.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from gapless.filters.lexer import tokens_of
from gapless.filters.names import NAME, is_plain, keyword_of, render_name

_words = re.compile(rf"""'[^']*+'|"[^"]*+"|[0-9.][\w.]*+|({NAME}(?:-{NAME})*+)""").finditer
_is_hyphenated = re.compile(rf"{NAME}(?:-{NAME})++").fullmatch
_may_compare_with_name = re.compile(r"""[=>]\s*+(?:"|[^\W\d]|\$)""").search

_OPENING = ("AND", "OR", "NOT", "(")
_CLOSING = ("AND", "OR", ")", "end")
"""The tokens around a comparison without arithmetic."""


def filter_hints(text: str) -> list[str]:
    """Return hints about a valid filter; an empty list for nearly all filters."""
    hints: list[str] = []
    if "-" in text:
        hints += _subtractions(text)
    if _may_compare_with_name(text):
        hints += _compared_with_names(text)
    if "*" in text:
        hints += _stars(text)
    return list(dict.fromkeys(hints))


def attribute_hint(name: str) -> str | None:
    """Return how filters have to write an attribute with an unusual name, or None for nearly all names."""
    if is_plain(name):
        return None
    hint = f"filters have to write the attribute {name} in double quotes, {render_name(name)}"
    return f"{hint}: without them it is a subtraction" if _is_hyphenated(name) else hint


def _subtractions(text: str) -> Iterator[str]:
    """Yield hints about names joined by a hyphen without spaces."""
    for found in _words(text):
        word = found[1]
        if word and "-" in word and not any(map(keyword_of, word.split("-"))):
            yield f"{word} is a subtraction here: if you mean the attribute of this name, write {render_name(word)}"


def _compared_with_names(text: str) -> Iterator[str]:
    """Yield hints about names on the right side of a comparison where a string was probably meant."""
    tokens = tokens_of(text)
    for before, left, operator, right, after in zip(
        [None, *tokens], tokens, tokens[1:], tokens[2:], tokens[3:], strict=False
    ):
        if operator.kind not in ("=", "<>", "!=") or right.kind != "name":
            continue
        is_quoted = text[right.position] == '"'
        is_alone = left.kind == "name" and (before is None or before.kind in _OPENING) and after.kind in _CLOSING
        if is_quoted or is_alone:
            name = f'"{right.value}"' if is_quoted else str(right.value)
            string = "'" + str(right.value).replace("'", "''") + "'"
            yield f"{name} is the name of an attribute here: if you mean a string, write {string}"


def _stars(text: str) -> Iterator[str]:
    """Yield hints about patterns with a star and no wildcard."""
    for before, token in pairwise(tokens_of(text)):
        pattern = str(token.value)
        if before.kind == "LIKE" and token.kind == "string" and "*" in pattern and not {"%", "_"} & {*pattern}:
            meant = pattern.replace("*", "%").replace("'", "''")
            yield f"* is an ordinary character in a pattern: if you mean any text, write LIKE '{meant}'"
