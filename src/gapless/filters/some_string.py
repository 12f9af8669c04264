"""Decides whether a string between two bounds matches all of some patterns and none of others.

A pattern of n tokens is a nondeterministic automaton of n + 1 states (how many tokens are matched);
a set of states is the bits of an integer, and the automata run in parallel. A bound is an automaton,
too: it counts how many characters of the bound were read, until one differs. Only characters that
occur in some pattern or bound can distinguish them, and those between two such characters all do the
same, so one of these stands for all. The search visits finitely many combinations and is therefore
exact; it gives up, with None, after a bounded number of steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from sys import maxunicode

from gapless.filters.like import ANY_ONE, ANY_RUN, Pattern
from gapless.filters.work import Work

STEPS_MAX = 10_000
"""Steps of single automata before `some_string` gives up: some milliseconds, far beyond typical patterns."""

TOKENS_MAX = 2048
"""The maximum number of tokens of all patterns together. With more, a step would need more than a few words
of memory."""

ABOVE = -1
"""The state of a bound after a character above it; -2 stands for a character below it."""
BELOW = -2


def some_string(
    required: Sequence[Pattern], forbidden: Sequence[Pattern], work: Work, low: str = "", high: str | None = None
) -> bool | None:
    """Return whether some string from `low` up to, but without, `high` matches every required and no forbidden pattern.
    Return None if that takes too many steps.
    """
    patterns = (*required, *forbidden)
    size = sum(len(pattern.tokens) for pattern in patterns) + len(low) + len(high or "")
    if size > TOKENS_MAX:
        return None
    work.spend(2 * size + len(patterns))
    machines = [_Machine(pattern) for pattern in patterns]
    characters = _characters({*low, *(high or ""), *(token for machine in machines for token in machine.literals)})
    moves = [
        (character, [(machine.moving(character), machine.runs) for machine in machines]) for character in characters
    ]
    # A string is found if every required automaton can be at its end, and no forbidden one.
    finals = [(machine.final, place < len(required)) for place, machine in enumerate(machines)]
    lowest, highest = (0 if low else ABOVE), (BELOW if high is None else 0)
    start = (lowest, highest, *(machine.start for machine in machines))
    seen, waiting, steps = {start}, [start], 0
    while waiting:
        above, below, *states = waiting.pop()
        is_between = above in (ABOVE, len(low)) and below != len(high or "")
        if is_between and all(
            (state & final != 0) is wanted for state, (final, wanted) in zip(states, finals, strict=True)
        ):
            return True
        for character, character_moves in moves:
            steps += 1 + len(machines)
            if steps > STEPS_MAX:
                return None
            work.spend(2 + len(machines))
            over, under = _read(low, above, character), _read(high or "", below, character)
            if over == BELOW or under in (ABOVE, len(high or "")):
                continue
            after = (over, under, *(_step(state, *move) for state, move in zip(states, character_moves, strict=True)))
            if after not in seen and all(after[2 : 2 + len(required)]):
                seen.add(after)
                waiting.append(after)
    return False


def _read(bound: str, state: int, character: str) -> int:
    """Return the state of a bound after a character."""
    if state < 0:
        return state
    if state == len(bound):
        return ABOVE
    expected = bound[state]
    return state + 1 if character == expected else ABOVE if character > expected else BELOW


def _characters(named: set[str]) -> list[str]:
    """Return the named characters, and one character of each range between two of them."""
    found: list[str] = []
    free = 0
    for character in [*sorted(named), None]:
        end = maxunicode + 1 if character is None else ord(character)
        if free < end:
            found.append(chr(free))
        if character is not None:
            found.append(character)
            free = end + 1
    return found


def _step(state: int, moving: int, runs: int) -> int:
    """Return the states after a character. `moving` are the states whose token accepts it, `runs` those of `%`."""
    after = (state & moving) << 1 | state & runs
    # `%` are never adjacent, so one step over them is enough.
    return after | (after & runs) << 1


class _Machine:
    """A pattern as an automaton. Bit i of a state is set if the tokens before i can match the characters read
    so far.
    """

    def __init__(self, pattern: Pattern) -> None:
        self.runs = self._ones = 0
        self.literals: dict[str, int] = {}
        bit = 1
        for token in pattern.tokens:
            if token == ANY_RUN:
                self.runs |= bit
            elif token == ANY_ONE:
                self._ones |= bit
            else:
                self.literals[token] = self.literals.get(token, 0) | bit
            bit <<= 1
        self.final = bit
        self.start = 1 | (self.runs & 1) << 1

    def moving(self, character: str) -> int:
        return self._ones | self.literals.get(character, 0)
