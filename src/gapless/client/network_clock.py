"""Estimates a lower bound of the network's time, from the timestamps that brokers give to events.

The clocks of different machines are never compared: the estimate is the newest timestamp plus the time that has passed
since, measured on this machine.
"""

import time

__all__ = ["NetworkClock"]


class NetworkClock:
    """One client's estimate of the network's time."""

    def __init__(self) -> None:
        self._newest = 0
        self._seen_s = 0.0

    def observe(self, timestamp: int) -> None:
        """Take a broker's timestamp into account, in microseconds since 1970."""
        if timestamp > self._newest:
            self._newest, self._seen_s = timestamp, time.monotonic()

    @property
    def newest(self) -> int:
        """Return the newest timestamp seen, or 0 if there is none."""
        return self._newest

    def now_s(self) -> float:
        """Return a lower bound of the network's time, in seconds since 1970; 0 before the first timestamp."""
        return self._newest / 1e6 + time.monotonic() - self._seen_s if self._newest else 0.0
