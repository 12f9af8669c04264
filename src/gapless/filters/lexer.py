"""Splits the text of a filter into tokens, each with its position.

`names` defines names and keywords. Strings are in single quotes, and two quotes inside stand for
one. Numbers are decimal integers of 64 bits or floats.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from math import isinf
from sys import intern
from typing import NamedTuple, cast

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
    | (?P<unreadable>.)
    )""",
    re.VERBOSE | re.DOTALL,
)
_HINTS = {
    "'": "this string has no closing quote",
    '"': "this name has no closing quote",
    ".": "a dot is allowed only inside a name or a number",
}
INTEGER_MIN_DIGITS = INTEGER_MAX + 1
"""The integer after INTEGER_MAX, which the lexer accepts because the parser may find a minus before it."""


def tokens_of(text: str) -> list[Token]:
    """Return all tokens of the text. The last one is of kind `end`."""
    if len(text) > TEXT_LENGTH_MAX:
        message = f"the filter has {len(text)} characters, more than {TEXT_LENGTH_MAX}: split it into several"
        raise FilterError(message, text, TEXT_LENGTH_MAX)
    half = None if text.isascii() else lone_surrogate(text)
    if half is not None:
        message = f"{ascii(text[half])[1:-1]} is half of a surrogate pair, which cannot be sent: leave it out"
        raise FilterError(message, text, half)
    tokens: list[Token] = []
    for found in _TOKEN.finditer(text):
        kind = found.lastgroup
        assert kind is not None
        word, position = found[kind], found.start(kind)
        if kind == "name":
            keyword = keyword_of(word)
            tokens.append(_token((keyword, word, position) if keyword else (kind, intern(word), position)))
        elif kind == "operator":
            tokens.append(_token(("<>" if word == "!=" else word, word, position)))
        elif kind == "string":
            tokens.append(_token((kind, word[1:-1].replace("''", "'"), position)))
        elif kind == "integer" or kind == "float":
            number = _integer(text, word, position) if kind == "integer" else _float(text, word, position)
            tokens.append(_token(("number", number, position)))
            end = found.end()
            if text[end : end + 1].isidentifier():
                raise FilterError("a number must be followed by a space or an operator", text, end)
        elif kind == "quoted":
            tokens.append(_token(("name", intern(word[1:-1].replace('""', '"')), position)))
        elif kind == "end":
            break
        else:
            raise FilterError(_HINTS.get(word, f"{word} means nothing in a filter"), text, position)
    tokens.append(_token(("end", "", len(text))))
    return tokens


def lone_surrogate(text: str) -> int | None:
    """Return the position of an unpaired surrogate, as in file names that are not UTF-8, or None if there is none."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        return error.start
    return None


_token = cast(Callable[[tuple[str, str | int | float, int]], Token], partial(tuple.__new__, Token))
"""Returns a token, in a third of the time that its class takes."""


def _float(text: str, word: str, position: int) -> float:
    number = float(word)
    if isinf(number):
        raise FilterError("this number is too large for a float", text, position)
    return number


def _integer(text: str, word: str, position: int) -> int:
    # Python refuses to read integers of thousands of digits, so their length is checked first.
    number = int(word) if len(word.lstrip("0")) < 20 else INTEGER_MIN_DIGITS + 1
    if number > INTEGER_MIN_DIGITS:
        raise FilterError("this integer does not fit in 64 bits: write it as a float, such as 1e19", text, position)
    return number
