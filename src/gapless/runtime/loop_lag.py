"""How late the event loop runs: by how much a timer that repeats came later than it was set for, of late.

A loop that is late hears its peers late: it is overloaded, or its machine is.
"""

from collections import deque

__all__ = ["LoopLag"]

LOOKS = 20
"""How many times are remembered: ten seconds of a timer of half a second."""


class LoopLag:
    """Of one timer."""

    def __init__(self) -> None:
        self._due_s: float | None = None
        self._late_s: deque[float] = deque(maxlen=LOOKS)

    def came(self, now_s: float, again_in_s: float) -> None:
        """The timer came, and is set again."""
        if self._due_s is not None:
            self._late_s.append(max(0.0, now_s - self._due_s))
        self._due_s = now_s + again_in_s

    @property
    def most_ms(self) -> float:
        """By how much it was late at most, in milliseconds."""
        return 1000 * max(self._late_s, default=0.0)
