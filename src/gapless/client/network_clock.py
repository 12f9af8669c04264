"""A lower bound of the network's time, from the timestamps that brokers give to events. No clock of this machine is
compared with one of another: only time that passes here is added."""

import time

__all__ = ["NetworkClock"]


class NetworkClock:
    """Of one client."""

    def __init__(self) -> None:
        self._newest = 0
        self._seen_s = 0.0

    def saw(self, timestamp: int) -> None:
        """Note the timestamp of something that brokers sent, in microseconds since 1970."""
        if timestamp > self._newest:
            self._newest, self._seen_s = timestamp, time.monotonic()

    @property
    def newest(self) -> int:
        """The newest timestamp that was seen; 0 if there was none."""
        return self._newest

    def now_s(self) -> float:
        """Not later than the network's time, in seconds since 1970; 0 as long as nothing was seen."""
        return self._newest / 1e6 + time.monotonic() - self._seen_s if self._newest else 0.0
