"""Latency models: each defines a minimum and a maximum latency for each tree link.

- constant: the same for every link and message;
- jitter: drawn for every message, uniformly; a message never overtakes an earlier one of the
  same link;
- per link: drawn once for each link, so that links differ widely but each is steady. The draw
  depends only on the seed and the two names: other brokers and messages do not affect it.

A table can give any link a fixed latency. Two brokers that are not neighbours communicate with the
sum of the latencies on the path between them, and so do those that a bypass joins: it is as long as
the path that it bypasses. If the network is `direct`, any two brokers have their own link, and the
tree is irrelevant. A client has one latency to every broker.
"""

import random
from functools import cache
from itertools import pairwise

import msgspec

from gapless.overlay import Overlay

__all__ = ["Latency", "LinkTimes"]


class Latency(msgspec.Struct, frozen=True):
    """The latency model of a run, with times in microseconds."""

    least_us: int = 10_000
    most_us: int = 10_000
    per_link: bool = False
    """Whether latencies are drawn once per link. Otherwise they are drawn for each message, if minimum and maximum
    differ."""
    table: dict[tuple[str, str], int] = {}
    """The fixed latencies of some tree links, by the two names in either order."""
    client_us: int = 0
    direct: bool = False
    """Whether any two brokers have a link of their own."""


class LinkTimes:
    """The latencies of one tree for one seed."""

    def __init__(self, latency: Latency, overlay: Overlay, seed: int) -> None:
        self._latency = latency
        self._overlay = overlay
        self._seed = seed
        self._link = cache(self._find_link)
        self._is_uniform = not latency.table and not (latency.per_link and latency.least_us != latency.most_us)

    def between(self, a: str, b: str) -> tuple[int, int]:
        """Return the minimum and maximum latency between two brokers."""
        path = (a, b) if self._latency.direct else self._overlay.wire(a, b)
        if self._is_uniform:
            hops = len(path) - 1
            return hops * self._latency.least_us, hops * self._latency.most_us
        ranges = [self._link(*sorted(edge)) for edge in pairwise(path)]
        return sum(least for least, _ in ranges), sum(most for _, most in ranges)

    def _find_link(self, a: str, b: str) -> tuple[int, int]:
        fixed = self._latency.table.get((a, b), self._latency.table.get((b, a)))
        if fixed is not None:
            return fixed, fixed
        least, most = self._latency.least_us, self._latency.most_us
        if self._latency.per_link and least != most:
            drawn = random.Random(f"{self._seed}/latency/{a}/{b}").randint(least, most)
            return drawn, drawn
        return least, most
