"""Measures latencies in histograms, cheaply enough to be always on.

One publication and one delivery of each client are measured at a time. The next measurement begins when the last one
has ended.
"""

from bisect import bisect_left
from typing import Any

__all__ = ["Latencies"]

BOUNDS_US = (1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000, 5_000_000,
             10_000_000, 30_000_000, 60_000_000)  # fmt: skip


class Latencies:
    def __init__(self) -> None:
        self._counts = [0] * (len(BOUNDS_US) + 1)
        self._sum_us = 0

    def note(self, duration_us: int) -> None:
        """Record a duration."""
        self._counts[bisect_left(BOUNDS_US, duration_us)] += 1
        self._sum_us += duration_us

    def summary(self) -> dict[str, Any]:
        """Return the number of durations within each bound and their sum, for metrics."""
        buckets, total = {}, 0
        for bound, count in zip(BOUNDS_US, self._counts, strict=False):
            total += count
            buckets[f"{bound / 1e6:g}"] = total
        return {"buckets": buckets, "count": total + self._counts[-1], "sum_s": self._sum_us / 1e6}
