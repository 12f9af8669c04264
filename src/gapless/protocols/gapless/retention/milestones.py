"""When everything had reached everyone up to which position.

A client whose session is lost reads history from where it was when it last heard of its broker: if it had fallen behind
before that, it would know. The smallest story: c is far away, and falls behind; nobody waits for it any more, and all
who know that die before c hears it. c comes elsewhere. If it read from the last position that everyone had reached, it
would miss what came while it lay behind.
"""

from collections import deque

__all__ = ["TRANSIT_US", "Milestones"]

MOST = 64
TRANSIT_US = 1_000_000
"""How long what a broker says may be on its way to a client, and what that says then to another."""


class Milestones:
    """Those of one life: from its beginning on, and at most `MOST` of a span of time."""

    def __init__(self, span_us: int) -> None:
        self._every_us = span_us // MOST
        self._passed: deque[tuple[int, int]] = deque(maxlen=MOST + 1)

    def note(self, now: int, position: int) -> None:
        """Everything has reached everyone up to the position."""
        if not self._passed or now - self._passed[-1][0] >= self._every_us:
            self._passed.append((now, position))

    def before(self, time: int) -> int | None:
        """The last position that was noted before a time; None if that is too long ago."""
        return next((position for noted, position in reversed(self._passed) if noted < time), None)
