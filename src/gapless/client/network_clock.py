"""A lower bound of the network's time, from the timestamps that brokers give to events.

It never compares clocks of different machines: it only adds the time that has passed on this one.
"""

import time

__all__ = ["NetworkClock"]


class NetworkClock:
    """The network's time, as one client estimates it."""

    def __init__(self) -> None:
        self._newest = 0
        self._seen_s = 0.0

    def saw(self, timestamp: int) -> None:
        """Note a broker's timestamp, in microseconds since 1970."""
        if timestamp > self._newest:
            self._newest, self._seen_s = timestamp, time.monotonic()

    @property
    def newest(self) -> int:
        """Return the newest known timestamp; 0 if there is none."""
        return self._newest

    def now_s(self) -> float:
        """Return a lower bound of the network's time, in seconds since 1970; 0 before the first timestamp."""
        return self._newest / 1e6 + time.monotonic() - self._seen_s if self._newest else 0.0
