"""Simulates the cost of messages for brokers in a packet-switched network, and the resulting queues.

It follows the evaluation of VCube-PS (paper 002, section IV). A message from one broker to another
takes processing + waiting + transmission + propagation. A broker has one processor and one
transmitter. An arriving message waits for the processor and keeps it busy for the processing time;
then the broker takes its step. Each copy that it sends waits for the transmitter and keeps it busy
for the transmission time; then it is on the link for the link's latency.

Both are first in, first out with a fixed service time, so the backlog of work determines the number
of messages in the broker: no queue is stored. A queue length is what a message finds on arrival,
itself included, in either place; the number of messages at a broker is the sum over its two places.
If processing takes no time, nothing queues for it. Clients cost nothing, and neither do messages of
the free kinds; they still keep their order on the link.
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
    """The queue length of one broker, over all messages that joined the queue."""

    peak: int
    mean: float
    """The mean queue length that a message found when it joined the queue, including itself."""
    messages: int
    sent: int
    """The number of copies to be sent among the messages."""


class _Queue:
    """The queues of one broker, for its processor and its transmitter."""

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
        """Add an arriving message. Return when it will have been processed."""
        free = self.processor_free
        self.processor_free = free = (free if free > now else now) + self.processing
        if self.processing:
            self.processed += 1
            self._measure(now)
        return free

    def transmit(self, now: int) -> int:
        """Add a copy to be sent. Return when it will be on the link."""
        free = self.transmitter_free
        self.transmitter_free = free = (free if free > now else now) + self.transmission
        self.sent += 1
        self._measure(now)
        return free

    def _measure(self, now: int) -> None:
        """Record the number of messages, computed from the backlog of work, including the one in service."""
        length = 0
        if self.processor_free > now:
            length = -((now - self.processor_free) // self.processing)
        if self.transmitter_free > now:
            length -= (now - self.transmitter_free) // self.transmission
        if length > self.peak:
            self.peak = length
        self.total += length

    def length(self) -> QueueLength:
        """Return the statistics of the queue length over the whole run."""
        joined = self.processed + self.sent
        return QueueLength(self.peak, self.total / joined if joined else 0.0, joined, self.sent)


class Gate:
    """The queue for the processor of a broker, at the end of one link."""

    __slots__ = ("_event_queue", "_free", "_last", "_link", "_queue")

    def __init__(self, link: Link, queue: _Queue, event_queue: EventQueue, free: frozenset[str]) -> None:
        self._link = link
        self._queue = queue
        self._event_queue = event_queue
        self._free = free
        self._last = 0

    def step(self, item: Any, now: int) -> Sequence[Effect]:
        """Queue the message for the processor. The broker processes it later."""
        if self._free and type(item.message).__name__ in self._free:
            done = max(now, self._last)
        else:
            done = self._last = self._queue.process(now)
        self._event_queue.put(done, (self._link.receiver, item, self._link))
        return ()


class BrokerQueues:
    """The queues of all brokers in a run."""

    def __init__(self, model: NodeModel, brokers: Iterable[Slot], event_queue: EventQueue) -> None:
        self._event_queue = event_queue
        self._free = model.free
        self._queues = {slot.name: _Queue(model) for slot in brokers}

    def gate(self, link: Link) -> Gate:
        """Return the queue for the messages of this link."""
        return Gate(link, self._queues[link.receiver.name], self._event_queue, self._free)

    def transmit(self, sender: Slot, message: Any, now: int) -> int:
        """Add a copy to be sent; return when it will be on the link."""
        if self._free and type(message).__name__ in self._free:
            return now
        return self._queues[sender.name].transmit(now)

    def clear(self, slot: Slot) -> None:
        """Remove all messages from the queues of a crashed broker."""
        queue = self._queues[slot.name]
        queue.processor_free = queue.transmitter_free = 0

    def lengths(self) -> dict[str, QueueLength]:
        """Return the queue length of each broker, over the whole run."""
        return {name: queue.length() for name, queue in self._queues.items()}
