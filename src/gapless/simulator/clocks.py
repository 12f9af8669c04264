"""Simulates a broker's clock: the run's time with an offset and a drift, which a scenario can change.

Like a real one (`gapless.runtime.clock`), it never runs backwards during the life of a node: when
it is set back, it stops until the time that it shows has come. A new node starts with its current
value.
"""

__all__ = ["NodeClock"]


class NodeClock:
    """The clock of one simulated broker."""

    __slots__ = ("_ahead", "_drift", "_last", "_set_at")

    def __init__(self) -> None:
        self._ahead = self._set_at = self._last = 0
        self._drift = 0.0

    def set(self, now: int, ahead: int, drift: float) -> None:
        """Set the offset in microseconds and the drift, a fraction of elapsed time."""
        self._set_at, self._ahead, self._drift = now, ahead, drift

    def begin(self) -> None:
        """Restart the clock for a new node."""
        self._last = 0

    def __call__(self, now: int) -> int:
        """Return the time that the clock shows at this time of the run."""
        shown = now + self._ahead + int((now - self._set_at) * self._drift)
        if shown > self._last:
            self._last = shown
        return self._last
