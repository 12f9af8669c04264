"""What a filter may not mean as it is written, and how attributes with unusual names are written in filters.

A filter can be right and still say something else than its author thinks: `order-id = 1` subtracts `id` from `order`,
and `name = "ABC"` compares two attributes. Nothing is wrong with either, so they are read; but a command or a client's
log, which the author reads, should pass on these words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from gapless.filters.lexer import tokens_of
from gapless.filters.names import NAME, is_plain, keyword_of, render_name

_words = re.compile(rf"""'[^']*+'|"[^"]*+"|[0-9.][\w.]*+|({NAME}(?:-{NAME})*+)""").finditer
_is_hyphenated = re.compile(rf"{NAME}(?:-{NAME})++").fullmatch


def filter_hints(text: str) -> list[str]:
    """Sentences about a filter that can be read; none for nearly all of them."""
    return list(dict.fromkeys([*_subtractions(text), *_compared_with_names(text)]))


def attribute_hint(name: str) -> str | None:
    """How filters write an attribute whose name cannot stand by itself; None for nearly all of them."""
    if is_plain(name):
        return None
    hint = f"filters have to write the attribute {name} in double quotes, {render_name(name)}"
    return f"{hint}: without them it is a subtraction" if _is_hyphenated(name) else hint


def _subtractions(text: str) -> Iterator[str]:
    """Names joined by a hyphen without a blank."""
    for found in _words(text):
        word = found[1]
        if word and "-" in word and not any(map(keyword_of, word.split("-"))):
            yield f"{word} is a subtraction here: if you mean the attribute of this name, write {render_name(word)}"


def _compared_with_names(text: str) -> Iterator[str]:
    """A name in double quotes on the right, where most people mean a string."""
    tokens = tokens_of(text)
    for before, token in pairwise(tokens):
        if before.kind in ("=", "<>") and token.kind == "name" and text[token.position] == '"':
            name = str(token.value)
            string = "'" + name.replace("'", "''") + "'"
            yield f'"{name}" is the name of an attribute here: if you mean a string, write {string}'
