"""LIKE patterns and their canonical form.

`%` matches any sequence of characters, `_` exactly one, every other character itself; a pattern
matches the whole string, including line breaks, and is case-sensitive. There is an escape character
only if ESCAPE names one; it is allowed only before `%`, `_` or itself. `like_matcher` matches
strings, `some_string` compares patterns.

In canonical form no `%` is next to another, and none precedes a single wildcard: `%_%_` is `__%`.
So each *floating* piece (one between two `%`) starts with a character that can be searched for.
"""

from __future__ import annotations

import msgspec

ANY_RUN = "%%"
ANY_ONE = "__"


class PatternError(Exception):
    """The error for an invalid pattern, with the position of the mistake in the pattern."""

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(message)
        self.message = message
        self.offset = offset


class Pattern(msgspec.Struct, frozen=True, gc=False):
    """A parsed pattern. Its tokens are ANY_RUN, ANY_ONE (each two characters long, so not literals), or literal
    characters.
    """

    tokens: tuple[str, ...]

    @classmethod
    def parse(cls, text: str, escape: str | None = None) -> Pattern:
        """Parse a pattern; adjacent `%` are merged and moved after single wildcards."""
        tokens: list[str] = []
        position = 0
        while position < len(text):
            character = text[position]
            if character == escape:
                position += 1
                if position == len(text) or text[position] not in ("%", "_", escape):
                    raise PatternError(f"the escape character {escape} must stand before %, _ or itself", position - 1)
                tokens.append(text[position])
            elif character == "%":
                tokens.append(ANY_RUN)
            elif character == "_":
                tokens.append(ANY_ONE)
            else:
                tokens.append(character)
            position += 1
        return cls(_canonical(tokens))

    @property
    def literal(self) -> str | None:
        """Return the only string that matches, or None if the pattern has wildcards."""
        return None if ANY_RUN in self.tokens or ANY_ONE in self.tokens else "".join(self.tokens)

    @property
    def matches_everything(self) -> bool:
        return self.tokens == (ANY_RUN,)

    @property
    def pieces(self) -> list[tuple[str, ...]]:
        """Return the pieces before, between and after the `%`. The outer ones can be empty."""
        pieces: list[tuple[str, ...]] = []
        tokens, start = self.tokens, 0
        for _ in range(tokens.count(ANY_RUN)):
            end = tokens.index(ANY_RUN, start)
            pieces.append(tokens[start:end])
            start = end + 1
        return [*pieces, tokens[start:]]

    def to_text(self, escape: str) -> tuple[str, bool]:
        """Return the pattern's text with this escape character, and whether it was needed."""
        escaped = any(token in ("%", "_") for token in self.tokens)
        specials = ("%", "_", escape) if escaped else ()
        wildcards = {ANY_RUN: "%", ANY_ONE: "_"}
        return "".join(wildcards.get(t, escape + t if t in specials else t) for t in self.tokens), escaped


def _canonical(tokens: list[str]) -> tuple[str, ...]:
    result: list[str] = []
    for token in tokens:
        if token == ANY_RUN and result and result[-1] == ANY_RUN:
            continue
        if token == ANY_ONE and result and result[-1] == ANY_RUN:
            result[-1:] = [ANY_ONE, ANY_RUN]
            continue
        result.append(token)
    return tuple(result)
