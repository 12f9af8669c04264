"""What happens again and again is logged less and less often, so that people can read the log.

The first time a thing is said at once; the next times after one second, two, four, and so on up to ten minutes, each
time with how often it happened meanwhile. What has not happened for a minute, or for twice its pause, is new when it
comes back.
"""

import time
from collections.abc import Callable, Hashable

__all__ = ["LogBackoff"]

FIRST_S = 1.0
LONGEST_S = 600.0
QUIET_S = 60.0
KEYS_MAX = 1_000
"""Things that are remembered; the one that was said longest ago is forgotten first."""


class _Said:
    __slots__ = ("at", "pause", "seen", "times")

    def __init__(self, now: float) -> None:
        self.at = self.seen = now
        self.pause = FIRST_S
        self.times = 0


class LogBackoff:
    """Of each thing that happens: whether it is time to say so."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._said: dict[Hashable, _Said] = {}

    def due(self, key: Hashable) -> int:
        """The thing has happened. How often since it was last said, if it has to be said now; else 0."""
        now = self._clock()
        said = self._said.get(key)
        if said is None or now - said.seen > max(QUIET_S, 2 * said.pause):
            self._said.pop(key, None)
            self._said[key] = _Said(now)
            while len(self._said) > KEYS_MAX:
                del self._said[next(iter(self._said))]
            return 1
        said.seen = now
        said.times += 1
        if now - said.at < said.pause:
            return 0
        times, said.times = said.times, 0
        said.at = now
        said.pause = min(2 * said.pause, LONGEST_S)
        self._said[key] = self._said.pop(key)
        return times

    def forget(self, key: Hashable) -> bool:
        """It is over. Tell whether it was ever said."""
        return self._said.pop(key, None) is not None
