"""Measures the recent lag of the event loop: by how much a periodic timer was late.

A loop that lags hears its peers late: it, or its machine, is overloaded.
"""

from collections import deque

__all__ = ["LoopLag"]

LOOKS = 20
"""The number of measurements that are kept: ten seconds with two per second."""


class LoopLag:
    """The recent lag of one timer."""

    def __init__(self) -> None:
        self._due_s: float | None = None
        self._late_s: deque[float] = deque(maxlen=LOOKS)

    def timer_fired(self, now_s: float, again_in_s: float) -> None:
        """Record that the timer fired, and is set to fire again after `again_in_s`."""
        if self._due_s is not None:
            self._late_s.append(max(0.0, now_s - self._due_s))
        self._due_s = now_s + again_in_s

    @property
    def most_ms(self) -> float:
        """Return the largest recent lag in milliseconds."""
        return 1000 * max(self._late_s, default=0.0)
