"""LIKE patterns: what one string matches, and what several patterns have in common.

`%` stands for any run of characters, `_` for exactly one, every other character for itself; a pattern matches the
whole string, line ends included, case by case. There is an escape character only where ESCAPE names one; it may stand
only before `%`, `_` or itself.

`some_string` answers the one question that covering asks of patterns: is there a string that matches all of these and
none of those? A pattern of n tokens is a nondeterministic automaton of n + 1 states (how many tokens are behind us);
a set of states is the bits of an integer, and the patterns walk side by side. Only characters that occur in some
pattern can tell patterns apart, so one further character stands for all the others. The walk visits finitely many
combinations and is therefore exact; it gives up, with None, after a bounded number of steps.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

import msgspec

STEPS_MAX = 10_000
"""Steps of single automata before `some_string` gives up: some milliseconds, far beyond what people write."""

ANY_RUN = "%%"
ANY_ONE = "__"
_OTHER = ""


class PatternError(Exception):
    """A pattern that cannot be read: what is wrong, and at which character of the pattern."""

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(message)
        self.message = message
        self.offset = offset


class Pattern(msgspec.Struct, frozen=True, gc=False):
    """Tokens of a pattern: ANY_RUN, ANY_ONE (two characters long, so no literal), or one literal character."""

    tokens: tuple[str, ...]

    @classmethod
    def parse(cls, text: str, escape: str | None = None) -> Pattern:
        """Read the text of a pattern; neighbouring runs are one run, and a run goes after the single wildcards."""
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
        """The only string that matches, if the pattern has no wildcard."""
        return None if ANY_RUN in self.tokens or ANY_ONE in self.tokens else "".join(self.tokens)

    @property
    def matches_everything(self) -> bool:
        return self.tokens == (ANY_RUN,)

    def matches(self, text: str) -> bool:
        return compiled(self).fullmatch(text) is not None

    def to_text(self, escape: str) -> tuple[str, bool]:
        """The pattern as written with this escape character, and whether it was needed."""
        escaped = any(token in ("%", "_") for token in self.tokens)
        specials = ("%", "_", escape) if escaped else ()
        wildcards = {ANY_RUN: "%", ANY_ONE: "_"}
        return "".join(wildcards.get(t, escape + t if t in specials else t) for t in self.tokens), escaped


@lru_cache(maxsize=4096)
def compiled(pattern: Pattern) -> re.Pattern[str]:
    """The pattern as a regular expression."""
    wildcards = {ANY_RUN: ".*", ANY_ONE: "."}
    return re.compile("".join(wildcards.get(token) or re.escape(token) for token in pattern.tokens), re.DOTALL)


def some_string(required: Sequence[Pattern], forbidden: Sequence[Pattern]) -> bool | None:
    """Whether some string matches every required and no forbidden pattern; None if that takes too long to tell."""
    machines = [_Machine(pattern) for pattern in (*required, *forbidden)]
    characters = [*sorted({token for machine in machines for token in machine.characters}), _OTHER]
    start = tuple(machine.start for machine in machines)
    seen, waiting, steps = {start}, [start], 0
    while waiting:
        states = waiting.pop()
        if _accepted(machines, states, len(required)):
            return True
        for character in characters:
            steps += len(machines)
            if steps > STEPS_MAX:
                return None
            after = tuple(machine.step(state, character) for machine, state in zip(machines, states, strict=True))
            if after not in seen and all(after[: len(required)]):
                seen.add(after)
                waiting.append(after)
    return False


class _Machine:
    """A pattern as an automaton: bit i of a state is set if the tokens before i can have matched what was read."""

    def __init__(self, pattern: Pattern) -> None:
        tokens = pattern.tokens
        self.characters = [token for token in tokens if len(token) == 1]
        self.final = 1 << len(tokens)
        self.runs = sum(1 << i for i, token in enumerate(tokens) if token == ANY_RUN)
        self.ones = sum(1 << i for i, token in enumerate(tokens) if token == ANY_ONE)
        self.literals: dict[str, int] = {}
        for i, token in enumerate(tokens):
            if len(token) == 1:
                self.literals[token] = self.literals.get(token, 0) | 1 << i
        self.start = self._past_runs(1)

    def step(self, state: int, character: str) -> int:
        moving = state & (self.ones | self.literals.get(character, 0))
        return self._past_runs(moving << 1 | state & self.runs)

    def _past_runs(self, state: int) -> int:
        # Runs never stand side by side, so one step over them is enough.
        return state | (state & self.runs) << 1


def _accepted(machines: list[_Machine], states: tuple[int, ...], required: int) -> bool:
    return all(
        bool(state & machine.final) == (i < required)
        for i, (machine, state) in enumerate(zip(machines, states, strict=True))
    )


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
