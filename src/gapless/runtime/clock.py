"""What time it is: for what is measured here, for the protocol, and as the machine believes.

The protocol's clock (`SteadyClock`) shows the machine's time of day when the node begins, and then advances with the
machine's uptime. So a clock of the machine that is set, or jumps, moves no timestamp and ends no session. The clock
follows the machine's by at most `SLEW` of the time that has passed, which is more than a quartz drifts.
"""

import time
from collections.abc import Callable

__all__ = ["SteadyClock", "now_us"]

SLEW = 1 / 2000
"""By how much of the time that has passed the protocol's clock may approach the machine's: NTP slews as fast."""
LOOK_NS = 1_000_000_000
"""How often it looks at the machine's clock."""


def now_us() -> int:
    """Microseconds, monotonic: for what is measured here."""
    return time.monotonic_ns() // 1000


_UPTIME = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""Counts the time in which the machine was suspended, too, where there is such a clock."""


def _uptime_ns() -> int:
    return time.clock_gettime_ns(_UPTIME)


class SteadyClock:
    """The clock that a node is given: microseconds since 1970, never backwards, and never in jumps."""

    def __init__(self, wall_ns: Callable[[], int] = time.time_ns, uptime_ns: Callable[[], int] = _uptime_ns) -> None:
        self._wall_ns = wall_ns
        self._uptime_ns = uptime_ns
        self.set()

    def set(self) -> None:
        """Begin anew with the machine's time of day: a new node begins."""
        self._looked_ns = self._uptime_ns()
        self._offset_ns = self._wall_ns() - self._looked_ns
        self._last_us = 0

    def __call__(self) -> int:
        """The time."""
        uptime_ns = self._uptime_ns()
        if uptime_ns - self._looked_ns >= LOOK_NS:
            self._approach(uptime_ns)
        now_us = (self._offset_ns + uptime_ns) // 1000
        if now_us > self._last_us:
            self._last_us = now_us
        return self._last_us

    @property
    def jump_s(self) -> float:
        """By how many seconds the machine's clock is ahead of this one: how far it was set since the node began."""
        return (self._wall_ns() - self._uptime_ns() - self._offset_ns) / 1e9

    def _approach(self, uptime_ns: int) -> None:
        most_ns = int((uptime_ns - self._looked_ns) * SLEW)
        away_ns = self._wall_ns() - uptime_ns - self._offset_ns
        self._offset_ns += max(-most_ns, min(most_ns, away_ns))
        self._looked_ns = uptime_ns
