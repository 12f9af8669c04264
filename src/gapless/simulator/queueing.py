"""The packet-switched delay model: what a message costs a broker, and the queues that build up.

After the evaluation of VCube-PS (paper 002, section IV). A message from one broker to another takes processing +
waiting + transmission + propagation. A broker has one processor and one transmitter. A message that arrives waits
for the processor and keeps it busy for the processing time; then the broker takes its step. Each copy that it sends
waits for the transmitter and keeps it busy for the transmission time; then it is on the link for the link's latency.

Both are first in, first out with a fixed time of service, so the backlog of work says how many messages are in the
broker: no queue is kept. A queue length is what a message finds on arrival, itself included, in either place; what
a broker holds at any moment is the sum over its two places. Clients sit beside their broker and cost nothing.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from gapless.protocol import Effect
from gapless.simulator.agenda import Agenda
from gapless.simulator.nodes import Link, Slot
from gapless.simulator.settings import NodeModel

__all__ = ["BrokerQueues", "QueueLength"]


class QueueLength(msgspec.Struct, frozen=True):
    """How long the queue of one broker was, over all messages that joined it."""

    peak: int
    mean: float
    """What a message found when it joined, itself included, on average."""
    messages: int


class _Queue:
    """The processor and the transmitter of one broker."""

    __slots__ = ("joined", "peak", "processor_free", "total", "transmitter_free")

    def __init__(self) -> None:
        self.processor_free = 0
        self.transmitter_free = 0
        self.peak = 0
        self.total = 0
        self.joined = 0


class Gate:
    """Stands before a broker at the end of one link: messages wait here for the processor."""

    __slots__ = ("link", "queues")

    def __init__(self, queues: "BrokerQueues", link: Link) -> None:
        self.queues = queues
        self.link = link

    def step(self, item: Any, now: int) -> Sequence[Effect]:
        """Queue for the processor; the broker itself takes its step when that is done."""
        receiver = self.link.receiver
        done = self.queues.process(receiver, now)
        self.queues.agenda.put(done, (receiver, item, self.link))
        return ()


class BrokerQueues:
    """The queues of all brokers."""

    def __init__(self, model: NodeModel, brokers: Iterable[Slot], agenda: Agenda) -> None:
        self.agenda = agenda
        self._processing = model.processing_us
        self._transmission = model.transmission_us
        self._queues = {slot.name: _Queue() for slot in brokers}

    def gate(self, link: Link) -> Gate:
        """What takes the messages of this link."""
        return Gate(self, link)

    def process(self, slot: Slot, now: int) -> int:
        """A message arrives: when will it have been processed?"""
        queue = self._queues[slot.name]
        queue.processor_free = max(queue.processor_free, now) + self._processing
        self._measure(queue, now)
        return queue.processor_free

    def transmit(self, slot: Slot, now: int) -> int:
        """A copy is sent: when will it be on the link?"""
        queue = self._queues[slot.name]
        queue.transmitter_free = max(queue.transmitter_free, now) + self._transmission
        self._measure(queue, now)
        return queue.transmitter_free

    def clear(self, slot: Slot) -> None:
        """The broker crashed: nothing waits any longer."""
        queue = self._queues[slot.name]
        queue.processor_free = queue.transmitter_free = 0

    def lengths(self) -> dict[str, QueueLength]:
        """By broker, over the whole run."""
        return {
            name: QueueLength(queue.peak, queue.total / queue.joined if queue.joined else 0.0, queue.joined)
            for name, queue in self._queues.items()
        }

    def _measure(self, queue: _Queue, now: int) -> None:
        length = _waiting(queue.processor_free - now, self._processing)
        length += _waiting(queue.transmitter_free - now, self._transmission)
        queue.peak = max(queue.peak, length)
        queue.total += length
        queue.joined += 1


def _waiting(backlog: int, service: int) -> int:
    """How many messages a backlog of work stands for, the one in service included."""
    return -(-backlog // service) if backlog > 0 and service > 0 else 0
