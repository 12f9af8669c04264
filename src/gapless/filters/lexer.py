"""Splits the text of a filter into tokens, each with its position.

`names` defines names and keywords. Strings are in single quotes, and two quotes inside stand for
one. Numbers are decimal integers of 64 bits or floats.
"""

from __future__ import annotations

import re
import sys
from math import isinf
from typing import NamedTuple

from gapless.errors import FilterError
from gapless.events import INTEGER_MAX
from gapless.filters.names import NAME, keyword_of

TEXT_LENGTH_MAX = 65_536
"""Maximum length of a filter: enough for an IN list of thousands, small compared with a frame."""


class Token(NamedTuple):
    """A token. `kind` is name, string, number, end, or the operator or upper-case keyword itself."""

    kind: str
    value: str | int | float
    position: int


# No backtracking (the second + of each repetition), so the time is linear in the length of the
# text, and a string without its closing quote is detected at the first quote.
_TOKEN = re.compile(
    rf"""\s*+(?:
      (?P<name>{NAME})
    | (?P<quoted>"[^"]*+(?:""[^"]*+)*+")
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
    '"': "this name has no closing quote",
    ".": "a dot may stand only inside a name or a number",
}
INTEGER_MIN_DIGITS = INTEGER_MAX + 1
"""The integer after INTEGER_MAX, which the lexer accepts because the parser may find a minus before it."""


def tokens_of(text: str) -> list[Token]:
    """Return all tokens of the text. The last one is of kind `end`."""
    if len(text) > TEXT_LENGTH_MAX:
        message = f"the filter has {len(text)} characters, more than {TEXT_LENGTH_MAX}: split it into several"
        raise FilterError(message, text, TEXT_LENGTH_MAX)
    half = lone_surrogate(text)
    if half is not None:
        message = f"{ascii(text[half])[1:-1]} is half of a character, which no network carries: leave it out"
        raise FilterError(message, text, half)
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


def lone_surrogate(text: str) -> int | None:
    """Return the position of an unpaired surrogate, as in file names that are not UTF-8, or None if there is none."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        return error.start
    return None


def _token(text: str, kind: str, word: str, position: int) -> Token:
    if kind == "name":
        keyword = keyword_of(word)
        return Token(keyword, word, position) if keyword else Token("name", sys.intern(word), position)
    if kind == "quoted":
        return Token("name", sys.intern(word[1:-1].replace('""', '"')), position)
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
    # Python refuses to read integers of thousands of digits, so their length is checked first.
    number = int(word) if len(word.lstrip("0")) < 20 else INTEGER_MIN_DIGITS + 1
    if number > INTEGER_MIN_DIGITS:
        raise FilterError("this integer does not fit in 64 bits: write it as a float, such as 1e19", text, position)
    return number


def _unreadable(text: str, position: int) -> FilterError:
    position += len(text[position:]) - len(text[position:].lstrip())
    character = text[position]
    message = _HINTS.get(character, f"{character} means nothing in a filter")
    return FilterError(message, text, position)
