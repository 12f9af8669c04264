"""Limits how often a recurring event is logged, by growing pauses.

The first occurrence is logged at once, the next after one second, two, four, and so on up to ten minutes. Each line has
the number of occurrences since the previous one. An event that has not occurred for a minute, or for twice its pause,
counts as new.
"""

import time
from collections.abc import Callable, Hashable

__all__ = ["LogBackoff"]

FIRST_S = 1.0
LONGEST_S = 600.0
QUIET_S = 60.0
KEYS_MAX = 1_000
"""The maximum number of events that are remembered; the least recently logged one is forgotten first."""


class _LogState:
    __slots__ = ("at", "pause", "seen", "times")

    def __init__(self, now: float) -> None:
        self.at = self.seen = now
        self.pause = FIRST_S
        self.times = 0


class LogBackoff:
    """Decides for each recurring event whether to log it now."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._states: dict[Hashable, _LogState] = {}

    def due(self, key: Hashable) -> int:
        """Count an occurrence. Return the number of occurrences since the last log line if another line is
        due, else 0.
        """
        now = self._clock()
        said = self._states.get(key)
        if said is None or now - said.seen > max(QUIET_S, 2 * said.pause):
            self._states.pop(key, None)
            self._states[key] = _LogState(now)
            while len(self._states) > KEYS_MAX:
                del self._states[next(iter(self._states))]
            return 1
        said.seen = now
        said.times += 1
        if now - said.at < said.pause:
            return 0
        times, said.times = said.times, 0
        said.at = now
        said.pause = min(2 * said.pause, LONGEST_S)
        self._states[key] = self._states.pop(key)
        return times

    def forget(self, key: Hashable) -> bool:
        """Forget the event. Return whether it was ever logged."""
        return self._states.pop(key, None) is not None
