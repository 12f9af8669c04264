"""Decides whether a string matches all of some patterns and none of others: the question that
covering asks about LIKE.

A pattern of n tokens is a nondeterministic automaton of n + 1 states (how many tokens are matched);
a set of states is the bits of an integer, and the automata run in parallel. Only characters that
occur in some pattern can distinguish patterns, so one additional character stands for all others.
The search visits finitely many combinations and is therefore exact; it gives up, with None, after a
bounded number of steps.
"""

from __future__ import annotations

from collections.abc import Sequence

from gapless.filters.like import ANY_ONE, ANY_RUN, Pattern
from gapless.filters.work import Work

STEPS_MAX = 10_000
"""Steps of single automata before `some_string` gives up: some milliseconds, far beyond typical patterns."""

TOKENS_MAX = 2048
"""Maximum number of tokens of all patterns together: beyond, a step would need more than a few
words of memory.
"""

_OTHER = ""


def some_string(required: Sequence[Pattern], forbidden: Sequence[Pattern], work: Work) -> bool | None:
    """Return whether some string matches every required and no forbidden pattern; None if that
    takes too long.
    """
    patterns = (*required, *forbidden)
    tokens = sum(len(pattern.tokens) for pattern in patterns)
    if tokens > TOKENS_MAX:
        return None
    work.spend(2 * tokens + len(patterns))
    machines = [_Machine(pattern) for pattern in patterns]
    characters = [*sorted({token for machine in machines for token in machine.literals}), _OTHER]
    moves = [[(machine.moving(character), machine.runs) for machine in machines] for character in characters]
    # A string is found if every required automaton can be at its end, and no forbidden one.
    finals = [(machine.final, place < len(required)) for place, machine in enumerate(machines)]
    start = tuple(machine.start for machine in machines)
    seen, waiting, steps = {start}, [start], 0
    while waiting:
        states = waiting.pop()
        if all((state & final != 0) is wanted for state, (final, wanted) in zip(states, finals, strict=True)):
            return True
        for character_moves in moves:
            steps += len(machines)
            if steps > STEPS_MAX:
                return None
            work.spend(2 + len(machines))
            after = tuple([_step(state, *move) for state, move in zip(states, character_moves, strict=True)])
            if after not in seen and all(after[: len(required)]):
                seen.add(after)
                waiting.append(after)
    return False


def _step(state: int, moving: int, runs: int) -> int:
    """Return the states after a character, given those of the tokens that move on with it, and
    those of `%`.
    """
    after = (state & moving) << 1 | state & runs
    # `%` are never adjacent, so one step over them is enough.
    return after | (after & runs) << 1


class _Machine:
    """A pattern as an automaton: bit i of a state is set if the tokens before i can have matched what was read."""

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
