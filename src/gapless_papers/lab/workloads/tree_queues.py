"""Computes latencies in the trees of a hypercube from the queues alone (paper 002, Figures 5 and 7, Table I).

Messages wait for nothing but transmitters: acknowledgements and the hop to a root are free, processing is a delay, and
every node subscribes to everything. So a run is a network of FIFO queues with a constant service time. A copy travels
for at least `latency_us`, so everything that arrives within a span of that length was sent before the span began: the
arrivals of a span are known when it begins, and their copies are computed at once. The n-th of the copies that one node
has to send in a span leaves at the latest of `arrival + waiting ones + 1` over those before it: a running maximum.

In VCube-PS a source's next message on a topic starts when the last acknowledgement of the one before is back. That is
the latest of `reception + path back up` over all nodes, which is beyond the span, too.

The tests compare it with runs of the protocols.
"""

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from gapless_papers.lab.measures import Pair

__all__ = ["TreeQueues"]

_Calls = Sequence[tuple[int, int, str]]
"""The time in microseconds, the node, and the topic of each call."""
_FAR = 1 << 50
"""An offset later than the end of any run, which separates the nodes within one running maximum."""


class TreeQueues:
    """The transmitters of all nodes."""

    def __init__(self, nodes: int, latency_us: int, transmission_us: int, *, largest_first: bool) -> None:
        self._nodes = nodes
        self._dimension = (nodes - 1).bit_length()
        self._latency_us = latency_us
        self._transmission_us = transmission_us
        self._largest_first = largest_first
        self._free_us = np.zeros(nodes, np.int64)
        self._sent = np.zeros(nodes, np.int64)
        self._found = np.zeros(nodes, np.int64)
        self._peak = np.zeros(nodes, np.int64)
        self._spans: dict[int, list[Any]] = defaultdict(list)
        """By number of the span, its arrivals: message, node, height, depth, time."""

    def run(self, calls: _Calls, roots: Mapping[str, int] | None) -> Mapping[str, Iterable[Pair]]:
        """Return all measures of a run with these calls, down the tree of the topic's root or of the source."""
        called_us = np.array([at_us for at_us, _, _ in calls], np.int64)
        source = np.array([number for _, number, _ in calls], np.int64)
        waiting: dict[tuple[int, str], deque[int]] = defaultdict(deque)
        for message, (at_us, number, topic) in enumerate(calls):
            if roots is not None:
                away = roots[topic] != number
                self._start(message, roots[topic], at_us + self._latency_us * away)
                continue
            line = waiting[number, topic]
            line.append(message)
            if len(line) == 1:
                self._start(message, number, at_us)
        left = np.full(len(calls), self._nodes - 1, np.int64)
        back_us = np.zeros(len(calls), np.int64)
        total_us = last_us = 0
        while self._spans:
            message, node, height, depth, at_us = self._next_span()
            self._pass_on(message, node, height, depth, at_us)
            has_received = node != source[message]
            total_us += int((at_us - called_us[message])[has_received].sum())
            last_us = max(last_us, int(at_us.max()))
            if roots is not None:
                continue
            np.maximum.at(back_us, message[has_received], (at_us + depth * self._latency_us)[has_received])
            np.subtract.at(left, message[has_received], 1)
            for done in np.unique(message[has_received & (left[message] == 0)]):
                number, topic = calls[done][1:]
                line = waiting[number, topic]
                line.popleft()
                if line:
                    self._start(line[0], number, max(int(back_us[done]), calls[line[0]][0]))
        mean_us = total_us / (len(calls) * (self._nodes - 1))
        return {
            "reception-latency": [("mean", mean_us / 1000)],
            "run-length": [("ms", last_us / 1000)],
            **self._queues(),
        }

    def _start(self, message: int, node: int, at_us: int) -> None:
        self._arrive(*(np.array([value], np.int64) for value in (message, node, self._dimension, 0, at_us)))

    def _arrive(self, message: Any, node: Any, height: Any, depth: Any, at_us: Any) -> None:
        spans = at_us // self._latency_us
        for span in np.unique(spans):
            here = spans == span
            self._spans[int(span)].append((message[here], node[here], height[here], depth[here], at_us[here]))

    def _next_span(self) -> Any:
        parts = self._spans.pop(min(self._spans))
        columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
        order = np.lexsort((columns[4], columns[1]))
        return [column[order] for column in columns]

    def _pass_on(self, message: Any, node: Any, height: Any, depth: Any, at_us: Any) -> None:
        """Schedule the copies that the nodes forward; the arrivals are sorted by node and then by time."""
        copy = np.repeat(np.arange(len(node)), height)
        if not len(copy):
            return
        place = np.arange(len(copy)) - np.repeat(np.cumsum(height) - height, height)
        level = height[copy] - 1 - place if self._largest_first else place
        sender, since_us = node[copy], at_us[copy]
        first = np.flatnonzero(np.r_[True, sender[1:] != sender[:-1]])
        segment = np.cumsum(np.r_[False, sender[1:] != sender[:-1]])
        rank = np.arange(len(copy)) - first[segment]
        start = since_us - rank * self._transmission_us
        start[first] = np.maximum(start[first], self._free_us[sender[first]])
        start = np.maximum.accumulate(start + segment * _FAR) - segment * _FAR
        gone_us = start + (rank + 1) * self._transmission_us
        self._free_us[sender] = gone_us  # the last entry of each node remains
        length = -((since_us - gone_us) // self._transmission_us)
        self._sent += np.bincount(sender, minlength=self._nodes)
        self._found += np.bincount(sender, length, self._nodes).astype(np.int64)
        np.maximum.at(self._peak, sender, length)
        self._arrive(message[copy], sender ^ (1 << level), level, depth[copy] + 1, gone_us + self._latency_us)

    def _queues(self) -> Mapping[str, Iterable[Pair]]:
        names = [f"b{number}" for number in range(self._nodes)]
        means = self._found / np.maximum(self._sent, 1)
        return {
            "queue-length": list(zip(names, means.tolist(), strict=True)),
            "queue-peak": list(zip(names, self._peak.tolist(), strict=True)),
        }
