"""What time it is: here, and for the protocol."""

import time
from collections.abc import Callable

__all__ = ["WallClock", "now_us"]


def now_us() -> int:
    """Microseconds, monotonic: for what is measured here."""
    return time.monotonic_ns() // 1000


class WallClock:
    """The clock that a node is given: microseconds since 1970, so that brokers on several machines mean nearly the same
    time. It never runs backwards; where the machine's clock is set back, it stands still until that has caught up."""

    def __init__(self, clock: Callable[[], int] = time.time_ns) -> None:
        self._clock = clock
        self._last = 0

    def __call__(self) -> int:
        """The time."""
        self._last = max(self._last, self._clock() // 1000)
        return self._last
