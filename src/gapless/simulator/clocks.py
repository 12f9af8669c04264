"""The clock that a simulated broker is given: the run's time, but ahead of it, faster or slower, and set now and then.

As a real one (`gapless.runtime.clock`), it never runs backwards while a node lives: when it is set back, it stands
still until the time it shows has come. A node that begins anew takes it as it is.
"""

__all__ = ["NodeClock"]


class NodeClock:
    """Of one broker."""

    __slots__ = ("_ahead", "_drift", "_last", "_set_at")

    def __init__(self) -> None:
        self._ahead = self._set_at = self._last = 0
        self._drift = 0.0

    def set(self, now: int, ahead: int, drift: float) -> None:
        """From now on it is so many microseconds ahead, and gains `drift` of the time that passes."""
        self._set_at, self._ahead, self._drift = now, ahead, drift

    def begin(self) -> None:
        """A new node is given it."""
        self._last = 0

    def __call__(self, now: int) -> int:
        """What it shows at this time of the run."""
        shown = now + self._ahead + int((now - self._set_at) * self._drift)
        if shown > self._last:
            self._last = shown
        return self._last
