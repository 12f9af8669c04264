"""Filter text to tokens, each with the place where it starts.

Keywords are recognised in any case; names keep theirs. A name starts with a letter, `_` or `$`, goes on with those and
digits, and may have dots between its parts: `sensor.temp`. A part may be spelled like a keyword (`order.in`), a whole
name may not. Numbers are decimal integers of 64 bits or floats; two quotes inside a string are one quote.
"""

from __future__ import annotations

import re
import sys
from math import isinf
from typing import NamedTuple

from gapless.errors import FilterError
from gapless.filters.syntax import INTEGER_MAX

TEXT_LENGTH_MAX = 65_536
"""Characters in one filter: room for an IN list of thousands, small beside a frame on the wire."""

KEYWORDS = frozenset(("AND", "OR", "NOT", "BETWEEN", "IN", "LIKE", "ESCAPE", "IS", "NULL", "TRUE", "FALSE"))


class Token(NamedTuple):
    """`kind` is name, string, number, end, or the operator or upper-case keyword itself."""

    kind: str
    value: str | int | float
    position: int


# Nothing that was read is given back (the second + of each repetition), so a text takes time by its length alone, and a
# string without its closing quote is noticed at its first one.
_TOKEN = re.compile(
    r"""\s*+(?:
      (?P<name>[^\W\d][\w$]*+(?:\.[\w$]++)*+|\$[\w$]*+(?:\.[\w$]++)*+)
    | (?P<float>(?:[0-9]++\.[0-9]*+|\.[0-9]++)(?:[eE][+-]?[0-9]++)?|[0-9]++[eE][+-]?[0-9]++)
    | (?P<integer>[0-9]++)
    | (?P<string>'[^']*+(?:''[^']*+)*+')
    | (?P<operator><>|<=|>=|!=|[-+*/=<>(),])
    | (?P<end>\Z)
    )""",
    re.VERBOSE,
)
_HINTS = {
    "'": "this string has no closing quote",
    '"': "strings are written in single quotes",
    ".": "a dot may stand only inside a name or a number",
}
INTEGER_MIN_DIGITS = INTEGER_MAX + 1
"""Allowed by the lexer only so that the parser can read it after a minus."""


def tokens_of(text: str) -> list[Token]:
    """All tokens of the text; the last one is of kind `end`."""
    if len(text) > TEXT_LENGTH_MAX:
        message = f"the filter has {len(text)} characters, more than {TEXT_LENGTH_MAX}: split it into several"
        raise FilterError(message, text, TEXT_LENGTH_MAX)
    tokens: list[Token] = []
    position = 0
    while found := _TOKEN.match(text, position):
        position = found.end()
        kind = found.lastgroup
        assert kind is not None
        tokens.append(_token(text, kind, found[kind], found.start(kind)))
        if kind in ("integer", "float") and text[position : position + 1].isidentifier():
            raise FilterError("a number must be followed by a space or an operator", text, position)
        if kind == "end":
            return tokens
    raise _unreadable(text, position)


def _token(text: str, kind: str, word: str, position: int) -> Token:
    if kind == "name":
        upper = word.upper()
        return Token(upper, word, position) if upper in KEYWORDS else Token("name", sys.intern(word), position)
    if kind == "operator":
        return Token("<>" if word == "!=" else word, word, position)
    if kind == "string":
        return Token("string", word[1:-1].replace("''", "'"), position)
    if kind == "integer":
        return Token("number", _integer(text, word, position), position)
    if kind == "float":
        number = float(word)
        if isinf(number):
            raise FilterError("this number is too large for a float", text, position)
        return Token("number", number, position)
    return Token("end", "", position)


def _integer(text: str, word: str, position: int) -> int:
    # Python refuses to read integers of thousands of digits, so their length is looked at first.
    number = int(word) if len(word.lstrip("0")) < 20 else INTEGER_MIN_DIGITS + 1
    if number > INTEGER_MIN_DIGITS:
        raise FilterError("this integer does not fit in 64 bits: write it as a float, such as 1e19", text, position)
    return number


def _unreadable(text: str, position: int) -> FilterError:
    position += len(text[position:]) - len(text[position:].lstrip())
    character = text[position]
    message = _HINTS.get(character, f"{character} means nothing in a filter")
    return FilterError(message, text, position)
