"""A durable subscription that is not shared. The attached client reads it like an ordinary subscription.

Each acknowledgement contains everything that is acknowledged but not stored, and so replaces earlier ones. It also
contains the number of deliveries of negatively acknowledged events (`tries`), so that the next client continues to
count. Only one is in flight at a time.
"""

from gapless.events import Event
from gapless.names import Attached
from gapless.protocols.gapless.durable.attachment import Attachment, AttachmentState, Held
from gapless.protocols.gapless.durable.client_messages import ClientAck, ClientAttach
from gapless.protocols.gapless.durable.messages import DurableRecord, Item, Outstanding
from gapless.protocols.gapless.durable.progress import ProgressTracker

__all__ = ["ExclusiveAttachment"]

MANUAL_MAX = 100_000
"""The maximum number of deliveries that wait for an acknowledgement of the application."""


class ExclusiveAttachment(Attachment):
    """An attachment to a durable subscription that is not shared."""

    progress: ProgressTracker
    """The acknowledgements since the client was attached."""
    _serial = 0
    _in_flight = 0
    """The serial of the acknowledgement in flight; 0 if there is none."""

    def request(self) -> None:
        call, session = self.call, self._connection.session
        self.line = self.line or f"{call.subscription}#{session}"
        self._connection.say(
            ClientAttach(
                session, call.subscription, call.name, call.filter, call.replace,
                max_deliveries=call.max_deliveries, line=self.line,
            )
        )  # fmt: skip

    def attached(self, record: DurableRecord) -> None:
        self.state = AttachmentState.ATTACHED
        self.generation, self._serial, self._max_deliveries = record.generation, record.serial, record.max_deliveries
        self.progress = ProgressTracker(record)
        self._tries = {Item(each.publisher, each.seq): each for each in record.progress.outstanding}
        """Negatively acknowledged events, with the number of their deliveries."""
        self._again: list[tuple[int, Held]] = []
        """Negatively acknowledged events to be redelivered, each with the time at which it is due."""
        known = record.progress
        self._connection.emit(
            Attached(
                self.call.subscription, record.name, record.generation, known.position, dict(known.got), known.delivered
            )
        )

    def repeat(self) -> None:
        if self.state is AttachmentState.REQUESTED:
            self.request()
        else:
            self.report()

    # ---- deliveries ----------------------------------------------------------------------------------------

    def take(self, event: Event) -> None:
        """Deliver an event, unless it was acknowledged earlier."""
        key = Item(event.publisher, event.seq)
        if self.progress.record_arrival(key, event.stamp):
            known = self._tries.get(key)
            deliveries = 1 if known is None else known.deliveries + 1
            self.deliver(event, deliveries, is_again=deliveries > 1)
            self.progress.delivered = max(self.progress.delivered, event.stamp)

    def skip(self, publisher: str, last: int, timestamp: int) -> None:
        """Count lost events as acknowledged, because they will never arrive."""
        self.progress.lost(publisher, last, timestamp)
        self.is_changed = True

    def reached(self, position: int) -> None:
        """Record that everything up to a position was delivered."""
        self.progress.reached(position)
        self.progress.advance()
        self.is_changed |= self.progress.has_advanced

    def extend(self, counts: list[int]) -> None:
        """Do nothing: acknowledgements of an exclusive subscription have no time limit."""

    def returned(self, held: Held, delay_us: int) -> None:
        event = held.event
        self._tries[Item(event.publisher, event.seq)] = Outstanding(
            event.publisher, event.seq, event.stamp, "", held.deliveries
        )
        self._again.append((self._connection.now + delay_us, held))
        self.is_changed = True

    @property
    def next_again(self) -> int | None:
        """Return the time of the next redelivery after a `nack`; None if none is scheduled."""
        return min((due for due, _ in self._again), default=None) if self.generation else None

    def deliver_again(self) -> None:
        """Redeliver events whose delay after a `nack` is over."""
        now = self._connection.now
        due = [held for at, held in self._again if at <= now]
        self._again = [each for each in self._again if each[0] > now]
        if self.state is AttachmentState.ATTACHED:
            for held in due:
                self.deliver(held.event, held.deliveries + 1, is_again=True)

    def objection(self) -> str:
        """Return the reason to end the attachment if too many deliveries are unacknowledged; otherwise an
        empty string."""
        if self.call.ack == "auto" or len(self.open) <= MANUAL_MAX:
            return ""
        return (
            f"{MANUAL_MAX:,} events of the durable subscription {self.call.name!r} wait to be "
            "acknowledged, which is the limit; acknowledge them, and subscribe again"
        )

    # ---- acknowledgements ----------------------------------------------------------------------------------

    def _ack(self, found: list[Held]) -> None:
        super()._ack(found)
        for held in found:
            key = Item(held.event.publisher, held.event.seq)
            self.progress.acknowledge(key)
            self._tries.pop(key, None)

    @property
    def is_due(self) -> bool:
        return super().is_due and not self._in_flight

    def report(self) -> None:
        self.announce()
        self.progress.advance()
        self._serial += 1
        self._in_flight, self.is_changed = self._serial, False
        self._is_last = self.state is AttachmentState.LEAVING
        call, progress = self.call, self.progress.write(list(self._tries.values()))
        self._connection.say(
            ClientAck(
                self._connection.session, call.subscription, call.name, self.generation, self._serial, progress,
                self._is_last,
            )
        )  # fmt: skip

    def stored(self, serial: int) -> bool:
        """Process the confirmation that an acknowledgement is stored. Return whether the client has left."""
        if serial != self._in_flight:
            return False
        self._in_flight = 0
        stored = [held for held in self.acked if held.is_sent]
        self.acked = [held for held in self.acked if not held.is_sent]
        self.forget(stored)
        if not self._is_last and self.is_due:
            self.report()
        return self._is_last
