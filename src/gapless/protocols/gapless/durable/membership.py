"""A client that is a member of a shared subscription.

Each time the client attaches, it starts a new **line** with its coordinator, in which deliveries are numbered, and
reports the events it has. It ignores assignments that refer to a report older than `SILENT_US` (or than the redelivery
timeout, if that is shorter): by then the coordinator may have assigned them to another member.
"""

from gapless.names import JoinedGroup, Revoked
from gapless.protocol import Activated, Skipped, Subscribe
from gapless.protocols.gapless.client_connection import ClientConnection
from gapless.protocols.gapless.durable.attachment import Attachment, AttachmentState, Held
from gapless.protocols.gapless.durable.client_messages import ClientAttach, ClientGroupReport
from gapless.protocols.gapless.durable.letters import BURIED, UNACKNOWLEDGED, Letters
from gapless.protocols.gapless.durable.messages import Deal, DealItem, DurableRecord, Item, Report, Returned
from gapless.protocols.parts.ranges import Ranges, add_range, add_ranges, without

__all__ = ["SILENT_US", "Membership"]

SILENT_US = 5_000_000
GAPS_MAX = 100
"""The maximum number of gaps that are remembered."""


class Membership(Attachment):
    """An attachment to a shared subscription."""

    def __init__(self, call: Subscribe, connection: ClientConnection, letters: Letters) -> None:
        super().__init__(call, connection, letters)
        self._lines = 0
        self._lease_us = 0
        self._received = 0
        """The last number received in the line."""
        self._is_announced = False
        """Whether the coordinator has received the list of the client's events."""
        self._returned: list[Returned] = []
        self._extended: list[int] = []
        self._buried = 0
        self._lost: Ranges = {}
        """The losses that were reported to the application."""
        self._gaps: list[tuple[int, int]] = []
        """The last gaps that were reported to the application."""
        self._losses = 0
        """The number of losses reported in this line."""

    def request(self) -> None:
        if self.state is AttachmentState.ATTACHED:
            self.state = AttachmentState.REQUESTED
        self._lines += 1
        call, session, was_attached = self.call, self._connection.session, self.generation > 0
        self.line = f"{call.subscription}#{session}.{self._lines}"
        self._connection.say(
            ClientAttach(
                session, call.subscription, call.name, call.filter, call.replace and not was_attached, True,
                int(call.redeliver_s * 1e6), call.max_deliveries,
                line=self.line, was_attached=was_attached,
            )
        )  # fmt: skip

    def attached(self, record: DurableRecord) -> None:
        """Start a line with the coordinator."""
        if not self.generation:
            self._connection.emit(JoinedGroup(self.call.subscription, record.name, record.progress.position))
            self._connection.emit(Activated(self.call.subscription))
        self.state = AttachmentState.ATTACHED
        self.generation, self._max_deliveries = record.generation, record.max_deliveries
        self._lease_us = min(record.redeliver_us, SILENT_US)
        self._losses, self._is_announced = 0, False
        self._returned, self._extended = [], []
        for number, held in enumerate(self._held(), 1):
            held.number, held.is_sent = number, False
        self._received = len(self._held())
        self.report()

    def repeat(self) -> None:
        self.request()

    def _held(self) -> list[Held]:
        return [*self.acked, *self.buried.values(), *self.open.values()]

    # ---- deliveries ----------------------------------------------------------------------------------------

    def take(self, deal: Deal) -> bool:
        """Process a message from the coordinator. Return whether the line has ended."""
        if deal.line != self.line:
            return False
        self._report_losses(deal)
        fresh = [item for item in deal.items if item.number > self._received]
        if fresh:
            self._received = fresh[-1].number
            is_late = self._connection.now - deal.since >= self._lease_us
            if is_late or self.state is not AttachmentState.ATTACHED:
                self._returned += [Returned(item.number, 0) for item in fresh]
                self.is_changed = True
                fresh = []
        for item in fresh:
            self._take_item(item)
        revoked = [held for held in self._held() if held.number in deal.revoked]
        for held in revoked:
            self.open.pop(held.count, None)
            self.buried.pop(held.count, None)
        if revoked:
            self._connection.emit(Revoked(self.call.subscription, [held.count for held in revoked]))
        stored = [held for held in self.acked if held.number in deal.acked]
        self.acked = [held for held in self.acked if held not in stored and held not in revoked]
        self.forget(stored)
        return deal.is_over

    def _take_item(self, item: DealItem) -> None:
        if self.is_last(item.event, item.deliveries - 1):
            self._buried += 1
            held = Held(item.event, item.deliveries - 1, BURIED + self._buried, item.number)
            self.bury(held, UNACKNOWLEDGED)
        else:
            self.deliver(item.event, item.deliveries, is_again=item.is_again, number=item.number)

    def _report_losses(self, deal: Deal) -> None:
        """Report gaps and lost numbers to the application that were not reported before."""
        name, emit = self.call.subscription, self._connection.emit
        for gap in deal.gaps:
            if gap not in self._gaps:
                self._gaps = [*self._gaps, gap][-GAPS_MAX:]
                emit(Skipped(name, {}, gap))
        if deal.losses > self._losses:
            self._losses, self.is_changed = deal.losses, True
        found: Ranges = {}
        for publisher, ranges in deal.lost.items():
            for first, last in ranges:
                for pair in without(self._lost.get(publisher, []), first, last):
                    add_range(found, publisher, *pair)
        add_ranges(self._lost, found)
        if found:
            emit(Skipped(name, found))

    # ---- reports -------------------------------------------------------------------------------------------

    def bury(self, held: Held, reason: str) -> None:
        super().bury(held, reason)
        self._extend([held])

    def returned(self, held: Held, delay_us: int) -> None:
        self._returned.append(Returned(held.number, delay_us))
        self.is_changed = True

    def extend(self, counts: list[int]) -> None:
        self._extend([self.open[count] for count in counts if count in self.open])

    def _extend(self, found: list[Held]) -> None:
        self._extended += [held.number for held in found]
        self.is_changed = True

    def report(self) -> None:
        acked = [held.number for held in self.acked if not held.is_sent]
        self.announce()
        holds = None if self._is_announced else [Item(held.event.publisher, held.event.seq) for held in self._held()]
        report = Report(
            self.line, self._connection.now, holds, acked, self._returned, self._extended, self._losses,
            self.state is AttachmentState.LEAVING,
        )  # fmt: skip
        self._is_announced, self.is_changed = True, False
        self._returned, self._extended = [], []
        self._connection.say(
            ClientGroupReport(self._connection.session, self.call.subscription, self.call.name, report)
        )
