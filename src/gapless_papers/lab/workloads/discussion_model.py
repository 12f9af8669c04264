"""Models a discussion among all nodes of a hypercube by its trees, queues and barriers alone (paper 002, Figure 6).

Each node publishes once, so no source ever waits for acknowledgements, and a run consists of a few rules. A message
goes down the tree of its source. Each node sends one copy after the other, forwards what arrives at once, and delivers
a message when the causes that it names are delivered. Sets of messages are bit sets: bit n is the message of node n.

The tests compare it with runs of the protocol. Unlike the protocol, the model also supports links on which messages
overtake each other.
"""

import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from heapq import heappop, heappush

import msgspec

from gapless_papers.lab.measures import Pair

__all__ = ["Discussion"]


class _Node:
    """The messages that one node has delivered, and those that wait for their causes."""

    def __init__(self) -> None:
        self.free_us = 0
        """When the transmitter has sent its whole queue."""
        self.delivered = 0
        self.barrier = 0
        self.received = 0
        self.waiting: list[tuple[int, int]] = []
        """Messages whose causes are missing, with their arrival times."""


class Discussion(msgspec.Struct, frozen=True):
    """All times are microseconds."""

    nodes: int
    wait: int
    latency_us: int
    jitter_us: int
    transmission_us: int
    largest_first: bool
    in_order: bool
    """Whether messages on one link keep their order."""
    reduces: bool
    """Whether transitive causes are removed from the barrier."""

    def run(self, opening: Mapping[int, int], pauses_us: Mapping[int, int], seed: int) -> Mapping[str, Iterable[Pair]]:
        """Run the discussion, given the times of the opening messages and how long each other node waits before it
        answers.
        """
        return _Run(self, pauses_us, random.Random(f"{seed}/discussion-jitter")).result(opening)


class _Run:
    def __init__(self, spec: Discussion, pauses_us: Mapping[int, int], dice: random.Random) -> None:
        self._spec = spec
        self._pauses_us = pauses_us
        self._dice = dice
        self._dimension = (spec.nodes - 1).bit_length()
        self._nodes = [_Node() for _ in range(spec.nodes)]
        self._barriers: dict[int, int] = {}
        self._last_us: dict[tuple[int, int], int] = {}
        self._sizes: Counter[int] = Counter()
        self._delays_us: Counter[int] = Counter()
        self._agenda: list[tuple[int, int, Callable[[int, int, int, int], None], int, int, int]] = []
        self._turn = 0

    def result(self, opening: Mapping[int, int]) -> Mapping[str, Iterable[Pair]]:
        for node, at_us in opening.items():
            self._call(at_us, self._speak, node)
        now = 0
        while self._agenda:
            now, _, act, node, message, height = heappop(self._agenda)
            act(now, node, message, height)
        return {
            "run-length": [("ms", now / 1000)],
            "barrier-size": [(str(size), count) for size, count in sorted(self._sizes.items())],
            "barrier-delay": [(f"{delay / 1000:g}", count) for delay, count in sorted(self._delays_us.items())],
        }

    def _call(
        self, at_us: int, act: Callable[[int, int, int, int], None], node: int, message: int = 0, height: int = 0
    ) -> None:
        self._turn += 1
        heappush(self._agenda, (at_us, self._turn, act, node, message, height))

    def _speak(self, now: int, node: int, message: int, height: int) -> None:
        own = self._nodes[node]
        self._barriers[node] = own.barrier
        self._sizes[own.barrier.bit_count()] += 1
        own.barrier = 1 << node
        own.delivered |= 1 << node
        self._pass_on(now, node, node, self._dimension)

    def _pass_on(self, now: int, node: int, message: int, height: int) -> None:
        spec, own = self._spec, self._nodes[node]
        levels = range(height)
        for level in reversed(levels) if spec.largest_first else levels:
            own.free_us = max(own.free_us, now) + spec.transmission_us
            other = node ^ 1 << level
            at_us = own.free_us + spec.latency_us
            if spec.jitter_us:
                at_us += self._dice.randint(0, spec.jitter_us)
                if spec.in_order:
                    at_us = self._last_us[node, other] = max(at_us, self._last_us.get((node, other), 0))
            self._call(at_us, self._receive, other, message, level)

    def _receive(self, now: int, node: int, message: int, height: int) -> None:
        self._pass_on(now, node, message, height)
        own = self._nodes[node]
        own.waiting.append((message, now))
        ready = True
        while ready:
            ready = False
            for place, (candidate, since) in enumerate(own.waiting):
                if not self._barriers[candidate] & ~own.delivered:
                    del own.waiting[place]
                    self._deliver(now, node, candidate, now - since)
                    ready = True
                    break

    def _deliver(self, now: int, node: int, message: int, delay_us: int) -> None:
        own = self._nodes[node]
        own.delivered |= 1 << message
        if self._spec.reduces:
            own.barrier &= ~self._barriers[message]
        own.barrier |= 1 << message
        self._delays_us[delay_us] += 1
        own.received += 1
        if own.received == self._spec.wait and node in self._pauses_us:
            self._call(now + self._pauses_us[node], self._speak, node)
