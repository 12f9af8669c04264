"""Keeps the recent figures of a broker for plots: one sample every `EVERY_S`, the last `SAMPLES_MAX` of them.

A console plots them from the moment it is opened. They are in memory only, so a restarted broker starts without any;
Prometheus keeps them for longer.
"""

from collections import deque
from collections.abc import Mapping
from typing import Any

import msgspec

__all__ = ["EVERY_S", "SAMPLES_MAX", "Sample", "Samples"]

EVERY_S = 5.0
SAMPLES_MAX = 360
"""The maximum number of samples, which covers half an hour."""


class Sample(msgspec.Struct, frozen=True, array_like=True):
    """The figures of a broker at one time. Counters count from its start; a protocol may not report all of them."""

    time: float
    """Seconds since 1970."""
    published: int | None
    delivered: int | None
    bytes_out: int
    lag: int | None
    """The number of pending deliveries of the client that lags most."""
    history: int | None
    """The size of the history in bytes."""
    late_ms: float
    confirmation: list[int] | None
    """A histogram of latencies: how many were within each bound, and their total number."""
    delivery: list[int] | None


class Samples:
    """The recent samples of one broker."""

    def __init__(self) -> None:
        self._kept: deque[Sample] = deque(maxlen=SAMPLES_MAX)
        self._slot = -1
        self._bounds: dict[str, list[float]] = {}

    def look(self, time: float, overview: Mapping[str, Any], bytes_out: int, late_ms: float) -> None:
        """Take a sample, unless there is one in this interval. Intervals are aligned to the clock, so that the samples
        of several brokers match.
        """
        if int(time // EVERY_S) == self._slot:
            return
        self._slot = int(time // EVERY_S)
        lag = max(overview["lag"].values(), default=0) if "lag" in overview else None
        history = overview["history"]["bytes"] if "history" in overview else None
        self._kept.append(
            Sample(
                round(time, 1), overview.get("published"), overview.get("delivered"), bytes_out, lag, history,
                round(late_ms, 1), self._counts(overview, "confirmation"), self._counts(overview, "delivery"),
            )
        )  # fmt: skip

    def _counts(self, overview: Mapping[str, Any], name: str) -> list[int] | None:
        latency = overview.get(f"{name}_latency")
        if latency is None:
            return None
        self._bounds[name] = [float(bound) for bound in latency["buckets"]]
        return [*latency["buckets"].values(), latency["count"]]

    def report(self) -> dict[str, Any]:
        """Return all samples, oldest first, and the bounds of the latencies in seconds."""
        return {"every_s": EVERY_S, "bounds": self._bounds, "rows": list(self._kept)}
