"""Virtual time, and FIFO channels with random latency. A crash loses a suffix of each channel; a cut only delays."""

import heapq
import random
from collections.abc import Callable
from typing import Any, Protocol

from model.tree import Incarnation

Address = Incarnation | str
"""A broker's incarnation, the name of a client, or the name of a broker for the incarnation that runs on arrival."""


class Receiver(Protocol):
    """A node of the simulation."""

    alive: bool

    def receive(self, source: Any, clock: int, kind: str, arguments: tuple[Any, ...]) -> None: ...


class Simulator:
    """A discrete-event simulation with a seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.now, self.messages, self._sequence = 0.0, 0, 0
        self.nodes: dict[Address, Receiver] = {}
        self.trace: Callable[[str], None] | None = None
        self._queue: list[tuple[float, int, Callable[..., None], tuple[Any, ...]]] = []
        self._base: dict[tuple[Any, Any], float] = {}
        self._last: dict[tuple[Any, Any], float] = {}
        self._sent: dict[tuple[Any, Any], int] = {}
        self._received: dict[tuple[Any, Any], int] = {}
        self._lost: dict[tuple[Any, Any], int] = {}
        self.cuts: dict[tuple[str, str], float] = {}
        """(from, to): the time before which no message passes from one name to the other."""

    def after(self, delay: float, action: Callable[..., None], *arguments: Any) -> None:
        self._sequence += 1
        heapq.heappush(self._queue, (self.now + delay, self._sequence, action, arguments))

    def send(self, source: Address, to: Address, clock: int, kind: str, arguments: tuple[Any, ...]) -> None:
        channel = (source, to)
        if channel not in self._base:
            self._base[channel] = self.random.choice((0.5, 1, 1, 2, 4, 8))
        latency = self._base[channel] * (0.5 + self.random.random()) * (10 if self.random.random() < 0.05 else 1)
        time = max(self.now + latency, self._last.get(channel, 0.0) + 0.001)
        if self.cuts and isinstance(source, tuple):
            name = to[0] if isinstance(to, tuple) else to
            time = max(time, self.cuts.get((source[0], name), 0.0) + self.random.random())
        self._last[channel] = time
        self._sent[channel] = number = self._sent.get(channel, 0) + 1
        self.messages += 1
        self._sequence += 1
        heapq.heappush(self._queue, (time, self._sequence, self._deliver, (channel, number, clock, kind, arguments)))

    def _deliver(
        self, channel: tuple[Any, Any], number: int, clock: int, kind: str, arguments: tuple[Any, ...]
    ) -> None:
        self._received[channel] = number
        node = self.nodes.get(channel[1])
        if node is None or not node.alive or number > self._lost.get(channel, number):
            return
        if self.trace:
            self.trace(f"{self.now:8.2f}  {channel[0]} -> {channel[1]}  {kind} {arguments}")
        node.receive(channel[0], clock, kind, arguments)

    def crash(self, node: Incarnation) -> None:
        """Stop the node; each of its channels loses a random suffix."""
        self.nodes[node].alive = False
        for channel, sent in self._sent.items():
            if channel[0] == node:
                self._lost[channel] = self.random.randint(self._received.get(channel, 0), sent)

    def run(self, until: float) -> None:
        queue = self._queue
        while queue and queue[0][0] <= until:
            self.now, _, action, arguments = heapq.heappop(queue)
            action(*arguments)
        self.now = max(self.now, until)
