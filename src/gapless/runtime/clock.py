"""Clocks: a monotonic clock for measurements, and the protocol's clock.

The protocol's clock (`SteadyClock`) shows the host's time of day when the node starts, and then
advances with the host's uptime. So a host clock that is set, or jumps, moves no timestamp and ends
no session. The protocol's clock approaches the host's by at most `SLEW` of the elapsed time, which
exceeds the drift of a quartz clock.
"""

import time
from collections.abc import Callable

__all__ = ["SteadyClock", "now_us"]

SLEW = 1 / 2000
"""The fraction of elapsed time by which the protocol's clock can approach the host's: the slew rate of NTP."""
LOOK_NS = 1_000_000_000
"""The interval at which the host's clock is read, in nanoseconds."""


def now_us() -> int:
    """Return the monotonic time in microseconds, for measurements in this process."""
    return time.monotonic_ns() // 1000


_UPTIME = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""A monotonic clock that includes the time in which the machine was suspended, if the system has one."""


def _uptime_ns() -> int:
    return time.clock_gettime_ns(_UPTIME)


class SteadyClock:
    """The clock of a node: microseconds since 1970, without backward steps and without jumps."""

    def __init__(self, wall_ns: Callable[[], int] = time.time_ns, uptime_ns: Callable[[], int] = _uptime_ns) -> None:
        self._wall_ns = wall_ns
        self._uptime_ns = uptime_ns
        self.set()

    def set(self) -> None:
        """Restart from the host's time of day, for a new node."""
        self._looked_ns = self._uptime_ns()
        self._offset_ns = self._wall_ns() - self._looked_ns
        self._last_us = 0

    def __call__(self) -> int:
        """Return the time in microseconds since 1970."""
        uptime_ns = self._uptime_ns()
        if uptime_ns - self._looked_ns >= LOOK_NS:
            self._approach(uptime_ns)
        now_us = (self._offset_ns + uptime_ns) // 1000
        if now_us > self._last_us:
            self._last_us = now_us
        return self._last_us

    @property
    def jump_s(self) -> float:
        """Return by how many seconds the host's clock is ahead, because it was set since the node started."""
        return (self._wall_ns() - self._uptime_ns() - self._offset_ns) / 1e9

    def _approach(self, uptime_ns: int) -> None:
        most_ns = int((uptime_ns - self._looked_ns) * SLEW)
        away_ns = self._wall_ns() - uptime_ns - self._offset_ns
        self._offset_ns += max(-most_ns, min(most_ns, away_ns))
        self._looked_ns = uptime_ns
