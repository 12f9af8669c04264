"""The packet-switched delay model: what a message costs a broker, and the queues that build up.

After the evaluation of VCube-PS (paper 002, section IV). A message from one broker to another takes processing +
waiting + transmission + propagation. A broker has one processor and one transmitter. A message that arrives waits
for the processor and keeps it busy for the processing time; then the broker takes its step. Each copy that it sends
waits for the transmitter and keeps it busy for the transmission time; then it is on the link for the link's latency.

Both are first in, first out with a fixed time of service, so the backlog of work says how many messages are in the
broker: no queue is kept. A queue length is what a message finds on arrival, itself included, in either place; what
a broker holds at any moment is the sum over its two places. Where processing takes no time, nothing queues for it.
Clients sit beside their broker and cost nothing, and neither do messages of the kinds that are called free; they still
keep their place among those of the same link.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from gapless.protocol import Effect
from gapless.simulator.event_queue import EventQueue
from gapless.simulator.nodes import Link, Slot
from gapless.simulator.settings import NodeModel

__all__ = ["BrokerQueues", "QueueLength"]


class QueueLength(msgspec.Struct, frozen=True):
    """How long the queue of one broker was, over all messages that joined it."""

    peak: int
    mean: float
    """What a message found when it joined, itself included, on average."""
    messages: int
    sent: int
    """How many of them were copies to be sent."""


class _Queue:
    """The processor and the transmitter of one broker."""

    __slots__ = (
        "peak", "processed", "processing", "processor_free", "sent", "total", "transmission", "transmitter_free",
    )  # fmt: skip

    def __init__(self, model: NodeModel) -> None:
        self.processing = model.processing_us
        self.transmission = model.transmission_us
        self.processor_free = 0
        self.transmitter_free = 0
        self.peak = 0
        self.total = 0
        self.processed = 0
        self.sent = 0

    def process(self, now: int) -> int:
        """A message arrives: when will it have been processed?"""
        free = self.processor_free
        self.processor_free = free = (free if free > now else now) + self.processing
        if self.processing:
            self.processed += 1
            self._measure(now)
        return free

    def transmit(self, now: int) -> int:
        """A copy is sent: when will it be on the link?"""
        free = self.transmitter_free
        self.transmitter_free = free = (free if free > now else now) + self.transmission
        self.sent += 1
        self._measure(now)
        return free

    def _measure(self, now: int) -> None:
        """A backlog of work stands for so many messages, the one in service included."""
        length = 0
        if self.processor_free > now:
            length = -((now - self.processor_free) // self.processing)
        if self.transmitter_free > now:
            length -= (now - self.transmitter_free) // self.transmission
        if length > self.peak:
            self.peak = length
        self.total += length

    def length(self) -> QueueLength:
        """Over the whole run."""
        joined = self.processed + self.sent
        return QueueLength(self.peak, self.total / joined if joined else 0.0, joined, self.sent)


class Gate:
    """Stands before a broker at the end of one link: messages wait here for the processor."""

    __slots__ = ("_event_queue", "_free", "_last", "_link", "_queue")

    def __init__(self, link: Link, queue: _Queue, event_queue: EventQueue, free: frozenset[str]) -> None:
        self._link = link
        self._queue = queue
        self._event_queue = event_queue
        self._free = free
        self._last = 0

    def step(self, item: Any, now: int) -> Sequence[Effect]:
        """Queue for the processor; the broker itself takes its step when that is done."""
        if self._free and type(item.message).__name__ in self._free:
            done = max(now, self._last)
        else:
            done = self._last = self._queue.process(now)
        self._event_queue.put(done, (self._link.receiver, item, self._link))
        return ()


class BrokerQueues:
    """The queues of all brokers."""

    def __init__(self, model: NodeModel, brokers: Iterable[Slot], event_queue: EventQueue) -> None:
        self._event_queue = event_queue
        self._free = model.free
        self._queues = {slot.name: _Queue(model) for slot in brokers}

    def gate(self, link: Link) -> Gate:
        """What takes the messages of this link."""
        return Gate(link, self._queues[link.receiver.name], self._event_queue, self._free)

    def transmit(self, sender: Slot, message: Any, now: int) -> int:
        """A copy is sent: when will it be on the link?"""
        if self._free and type(message).__name__ in self._free:
            return now
        return self._queues[sender.name].transmit(now)

    def clear(self, slot: Slot) -> None:
        """The broker crashed: nothing waits any longer."""
        queue = self._queues[slot.name]
        queue.processor_free = queue.transmitter_free = 0

    def lengths(self) -> dict[str, QueueLength]:
        """By broker, over the whole run."""
        return {name: queue.length() for name, queue in self._queues.items()}
