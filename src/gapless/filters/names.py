"""Defines the names of attributes and the keywords of filters.

A name starts with a letter, `_` or `$`, continues with those and digits, and can have dots between its parts:
`sensor.temp`. A part can be spelled like a keyword (`order.in`), a whole name cannot. Any name can be written in double
quotes: `"order-id"`, `"in"`, `"1st"`; there, two double quotes stand for one. Names are case-sensitive. Keywords are
recognised in any case, but in ASCII letters only, because some other letters have upper-case forms in ASCII, such as
the dotless i.
"""

from __future__ import annotations

import re

KEYWORDS = frozenset(("AND", "OR", "NOT", "BETWEEN", "IN", "LIKE", "ESCAPE", "IS", "NULL", "TRUE", "FALSE"))
LONGEST = max(map(len, KEYWORDS))

NAME = r"(?:[^\W\d]|\$)[\w$]*+(?:\.[\w$]++)*+"
"""A regular expression for names that need no quotes; it needs no backtracking."""

_plain = re.compile(NAME).fullmatch


def keyword_of(word: str) -> str | None:
    """Return the word as an upper-case keyword, or None if it is not a keyword."""
    if len(word) > LONGEST:
        return None
    upper = word.upper()
    return upper if upper in KEYWORDS and word.isascii() else None


def is_plain(name: str) -> bool:
    """Return whether the name can be written without quotes."""
    return _plain(name) is not None and keyword_of(name) is None


def render_name(name: str) -> str:
    """Return the name as filter text, in double quotes if it needs them."""
    return name if is_plain(name) else '"' + name.replace('"', '""') + '"'
