"""Records the effects of nodes in a trace.

Every act is recorded when it is carried out, so each publication precedes its deliveries. Messages
are recorded only on request: a message is entered when it is sent, and its arrival time when it
arrives, because a crash can lose it.
"""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from gapless.names import Acknowledged, Attached, DeadLettered, EachAcknowledged, JoinedGroup, MoveDurable, Revoked
from gapless.protocol import (
    Activated,
    Confirmed,
    CutFixed,
    CutsVoided,
    Deliver,
    Effect,
    Ended,
    ProtocolSpec,
    Published,
    Received,
    Skipped,
    Subscribe,
)  # fmt: skip
from gapless.simulator.nodes import Link, Slot
from gapless.trace import Recorder

__all__ = ["MessageLog", "Recording"]


class Recording:
    """Records the actions of clients in a run."""

    def __init__(self, recorder: Recorder, protocol: ProtocolSpec) -> None:
        self._recorder = recorder
        self._protocol = protocol

    def handlers(self) -> dict[type, Callable[[Slot, Any, int], None]]:
        """Return handlers that record effects, by type."""
        return {
            Published: self._published,
            Deliver: self._delivered,
            CutFixed: self._cut_fixed,
            CutsVoided: self._cuts_voided,
            Activated: self._activated,
            Ended: self._ended,
            Confirmed: self._confirmed,
            Skipped: self._skipped,
            Attached: self._opened,
            Acknowledged: self._acknowledged,
            EachAcknowledged: self._each_acknowledged,
            DeadLettered: self._dead_lettered,
            JoinedGroup: self._joined,
            Revoked: self._revoked,
        }

    def subscribed(self, client: str, call: Subscribe, now: int) -> None:
        """Record that a client is about to subscribe."""
        ready = self._protocol.ready(call)
        self._recorder.subscribe(
            client, call.subscription, call.filter, now, ready=ready, since=call.since, until=call.until
        )

    def moved(self, call: MoveDurable) -> None:
        """Record that a client is about to move or delete a durable subscription."""
        self._recorder.move_name(call.name)

    def refused(self, call: Subscribe) -> None:
        """Record that the subscription was rejected."""
        self._recorder.refuse(call.subscription)

    def _published(self, slot: Slot, effect: Published, now: int) -> None:
        self._recorder.publish(slot.name, effect.event, now)

    def _delivered(self, slot: Slot, effect: Deliver, now: int) -> None:
        self._recorder.deliver(slot.name, effect.event, effect.subscription, now, redelivered=effect.redelivered)

    def _cut_fixed(self, slot: Slot, effect: CutFixed, now: int) -> None:
        self._recorder.fix_cut(effect.subscription, effect.publisher, effect.from_seq)

    def _cuts_voided(self, slot: Slot, effect: CutsVoided, now: int) -> None:
        self._recorder.void_cuts(effect.subscription)

    def _activated(self, slot: Slot, effect: Activated, now: int) -> None:
        self._recorder.activate(effect.subscription, now)

    def _confirmed(self, slot: Slot, effect: Confirmed, now: int) -> None:
        self._recorder.confirm(slot.name, effect.seq, now)

    def _skipped(self, slot: Slot, effect: Skipped, now: int) -> None:
        self._recorder.skip(effect.subscription, effect.lost, effect.gap)

    def _opened(self, slot: Slot, effect: Attached, now: int) -> None:
        self._recorder.open_name(effect.subscription, effect.name, effect.generation, effect.position, effect.got, now)

    def _acknowledged(self, slot: Slot, effect: Acknowledged, now: int) -> None:
        self._recorder.acknowledged(effect.subscription, effect.count, now, is_stored=effect.is_stored)

    def _each_acknowledged(self, slot: Slot, effect: EachAcknowledged, now: int) -> None:
        self._recorder.acknowledged_each(effect.subscription, effect.counts, now, is_stored=effect.is_stored)

    def _dead_lettered(self, slot: Slot, effect: DeadLettered, now: int) -> None:
        self._recorder.dead_letter(effect.subscription, effect.publisher, effect.seq)

    def _joined(self, slot: Slot, effect: JoinedGroup, now: int) -> None:
        self._recorder.join_group(effect.subscription, effect.name, effect.position, now)

    def _revoked(self, slot: Slot, effect: Revoked, now: int) -> None:
        self._recorder.revoke(effect.subscription, effect.counts)

    def _ended(self, slot: Slot, effect: Ended, now: int) -> None:
        self._recorder.end(effect.subscription, effect.last_seq, now, is_complete=effect.is_complete)


class MessageRecord:
    """The record of one message. It replaces the receiver to record the arrival, and then passes the message on."""

    __slots__ = ("arrived", "give", "link", "message", "sent", "size")

    def __init__(self, link: Link, message: Any, sent: int, give: Callable[[Slot, Any], None]) -> None:
        self.link = link
        self.message = message
        self.sent = sent
        self.arrived: int | None = None
        self.size = len(msgspec.msgpack.encode(message))
        self.give = give

    def step(self, item: Received, now: int) -> Sequence[Effect]:
        """Record the arrival of the message, and pass it on."""
        self.arrived = now
        if self.link.gate is self.link.receiver:
            self.give(self.link.receiver, item)
        else:
            self.link.gate.step(item, now)
        return ()


class MessageLog:
    """The log of all messages in a run, in the order in which they were sent."""

    def __init__(self, give: Callable[[Slot, Any], None]) -> None:
        self._records: list[MessageRecord] = []
        self._give = give

    def add(self, link: Link, message: Any, now: int) -> MessageRecord:
        """Add a message. The returned record must receive its arrival."""
        record = MessageRecord(link, message, now, self._give)
        self._records.append(record)
        return record

    def write_to(self, recorder: Recorder) -> None:
        """Write all messages into the trace."""
        for record in self._records:
            kind = type(record.message).__name__
            link = record.link
            recorder.message(kind, link.sender.name, link.receiver.name, record.sent, record.arrived, record.size)
