"""A durable subscription attached to one client: its deliveries, and which of them are acknowledged.

An acknowledgement by the client is cumulative: a position, up to which everything is acknowledged; beyond it the last
number of each publisher; and beyond those single numbers (`done`). It also contains how often negatively acknowledged
events were delivered (`tries`), so that the next client continues to count. Positions have places among the deliveries.
One acknowledgement is in flight at a time, and the next contains everything that accumulated in the meantime.
"""

from collections import deque
from dataclasses import dataclass
from enum import Enum

from gapless.events import Event
from gapless.protocol import Subscribe
from gapless.protocols.gapless.durable.client_messages import ClientAck, ClientAttach
from gapless.protocols.gapless.durable.messages import DurableRecord, Item, Outstanding
from gapless.protocols.parts.ranges import Ranges, add_range
from gapless.protocols.parts.transitions import Transitions, follow

__all__ = ["Attachment", "AttachmentState", "Delivered"]

POSITION_STEP_US = 5_000_000
"""How far a position advances without deliveries before it is acknowledged."""


class AttachmentState(Enum):
    """The state of an attachment; LEAVING while the last acknowledgement is in flight.

    Every state ends at once when the subscription is refused, moved, deleted, or attached to another client.
    """

    REQUESTED = "requested"
    ATTACHED = "attached"
    LEAVING = "leaving"


ATTACHMENTS: Transitions = {
    AttachmentState.REQUESTED: {AttachmentState.ATTACHED, AttachmentState.LEAVING},
    AttachmentState.ATTACHED: {AttachmentState.LEAVING},
    AttachmentState.LEAVING: set(),
}


@dataclass(eq=False)
class Delivered:
    """A delivered event, or a position."""

    count: int
    """The number of its last delivery to the client."""
    event: Event | None
    position: int = 0
    is_done: bool = False
    deliveries: int = 1


class Attachment:
    """One attachment of one client."""

    def __init__(self, call: Subscribe, session: int) -> None:
        self.call = call
        self.state = AttachmentState.REQUESTED
        self.line = f"{call.subscription}#{session}"
        self.generation = 0
        self.count = 0
        """The application has acknowledged everything up to this delivery."""
        self._position = self._reported_position = 0
        self._got: dict[str, tuple[int, int]] = {}
        """By publisher: the last number that is acknowledged beyond the position, and its timestamp."""
        self._left_out: Ranges = {}
        """Earlier acknowledgements beyond these numbers."""
        self.max_deliveries = 0
        self._tries: dict[Item, Outstanding] = {}
        """Unacknowledged events with a `nack`, and how often each was delivered."""
        self._delivered = 0
        self._order: deque[Delivered] = deque()
        self._open: dict[int, Delivered] = {}
        """The unacknowledged deliveries by number, in order."""
        self._each: list[int] = []
        """Deliveries acknowledged one by one that are not sent yet."""
        self._serial = 0
        self._under_way: tuple[int, int, list[int]] | None = None
        self._is_changed = False
        self.has_left = False
        """Whether the acknowledgement in flight says that the client leaves."""

    # ---- attaching ----------------------------------------------------------------------------------------

    def request(self, session: int) -> ClientAttach:
        """Send the client's call."""
        call = self.call
        return ClientAttach(
            session, call.subscription, call.name, call.filter, call.replace,
            max_deliveries=call.max_deliveries, line=self.line,
        )  # fmt: skip

    def attached(self, record: DurableRecord) -> None:
        """Begin the attachment."""
        self.state = AttachmentState.ATTACHED
        self.generation, self._serial = record.generation, record.serial
        self._position = self._reported_position = record.position
        self._got = {publisher: (seq, record.latest) for publisher, seq in record.got.items()}
        self._left_out = {publisher: list(ranges) for publisher, ranges in record.done.items()}
        self._delivered = record.delivered
        self.max_deliveries = record.max_deliveries
        self._tries = {Item(each.publisher, each.seq): each for each in record.outstanding}

    # ---- deliveries ---------------------------------------------------------------------------------------

    def left_out(self, publisher: str) -> list[tuple[int, int]]:
        """Return the numbers of a publisher that were acknowledged before, and may arrive again."""
        return self._left_out.get(publisher, [])

    def leaves_out(self, publisher: str, seq: int, timestamp: int) -> bool:
        """Return whether the event was acknowledged before."""
        ranges = self._left_out.get(publisher)
        if not ranges or not any(first <= seq <= last for first, last in ranges):
            return False
        self._order.append(Delivered(0, Event(publisher, seq, {}, b"", timestamp), is_done=True))
        return True

    def deliveries_of(self, event: Event) -> int:
        """Return how often the event was delivered, including a delivery now: negative acknowledgements by other
        clients count."""
        known = self._tries.get(Item(event.publisher, event.seq))
        return 1 if known is None else known.deliveries + 1

    def skipped(self, last: Event) -> None:
        """Count lost events as acknowledged, because they never arrive."""
        self._order.append(Delivered(0, last, is_done=True))
        self._is_changed = True
        self._pass_done()

    def delivered(self, count: int, event: Event) -> None:
        """Record a delivery."""
        delivered = self._open[count] = Delivered(count, event, deliveries=self.deliveries_of(event))
        self._order.append(delivered)
        self._delivered = max(self._delivered, event.stamp)

    def delivered_again(self, count: int, delivered: Delivered) -> None:
        """Record a redelivery after a `nack`."""
        delivered.count = count
        delivered.deliveries += 1
        self._open[count] = delivered

    def reached(self, position: int) -> None:
        """Record that everything up to a position was delivered."""
        if self._order and self._order[-1].event is None:
            self._order.pop()
        self._order.append(Delivered(0, None, position))
        self._pass_done()

    # ---- acknowledgements ---------------------------------------------------------------------------------

    @property
    def unacknowledged(self) -> int:
        """Return how many deliveries the application has not acknowledged."""
        return len(self._open)

    def acknowledge(self, count: int) -> None:
        """Acknowledge everything up to a delivery."""
        self.count = max(self.count, count)
        for number in list(self._open):
            if number > count:
                break
            self._done_with(self._open.pop(number))
        self._pass_done()

    def acknowledge_each(self, counts: list[int]) -> None:
        """Acknowledge these deliveries."""
        for count in counts:
            delivered = self._open.pop(count, None)
            if delivered is not None:
                self._done_with(delivered)
                self._each.append(count)
        self._pass_done()

    def _done_with(self, delivered: Delivered) -> None:
        delivered.is_done = self._is_changed = True
        if delivered.event is not None:
            self._tries.pop(Item(delivered.event.publisher, delivered.event.seq), None)

    def held(self, count: int) -> Delivered | None:
        """Return an unacknowledged delivery."""
        return self._open.get(count)

    def give_back(self, count: int) -> Delivered | None:
        """Record a negative acknowledgement: the delivery is repeated later."""
        delivered = self._open.pop(count, None)
        if delivered is not None and delivered.event is not None:
            event = delivered.event
            self._tries[Item(event.publisher, event.seq)] = Outstanding(
                event.publisher, event.seq, event.stamp, "", delivered.deliveries
            )
            self._is_changed = True
        return delivered

    def _pass_done(self) -> None:
        while self._order and (self._order[0].is_done or self._order[0].event is None):
            first = self._order.popleft()
            if first.event is not None:
                self._got[first.event.publisher] = first.event.seq, first.event.stamp
            elif first.position > self._position:
                self._position = first.position
                self._got = {name: last for name, last in self._got.items() if last[1] > first.position}
                self._is_changed |= first.position - self._reported_position >= POSITION_STEP_US

    @property
    def is_due(self) -> bool:
        """Return whether there is something to acknowledge, and nothing in flight."""
        is_leaving = self.state is AttachmentState.LEAVING
        return self.generation > 0 and self._under_way is None and (self._is_changed or is_leaving)

    def message(self, session: int) -> ClientAck:
        """Return the message with everything acknowledged so far; it replaces one that may have been lost."""
        each = [] if self._under_way is None else self._under_way[2]
        self._serial += 1
        self._under_way = self._serial, self.count, [*each, *self._each]
        self._each, self._is_changed = [], False
        self._reported_position = self._position
        self.has_left = self.state is AttachmentState.LEAVING
        got = {publisher: seq for publisher, (seq, _) in self._got.items()}
        latest = max((timestamp for _, timestamp in self._got.values()), default=0)
        call = self.call
        return ClientAck(
            session, call.subscription, call.name, self.generation, self._serial, self._position, got, latest,
            self._delivered, self._done(), self.has_left, list(self._tries.values()),
        )  # fmt: skip

    def _done(self) -> Ranges:
        found: Ranges = {}
        for publisher, ranges in self._left_out.items():
            rest = [pair for pair in ranges if pair[1] > self._got.get(publisher, (0, 0))[0]]
            if rest:
                found[publisher] = rest
        self._left_out = {publisher: list(ranges) for publisher, ranges in found.items()}
        for each in self._order:
            if each.is_done and each.event is not None:
                add_range(found, each.event.publisher, each.event.seq, each.event.seq)
        return found

    @property
    def each_under_way(self) -> list[int]:
        """Return the deliveries acknowledged one by one in the message in flight."""
        return [] if self._under_way is None else self._under_way[2]

    def stored(self, serial: int) -> tuple[int, list[int]] | None:
        """Note that an acknowledgement is stored. Return up to which delivery, and which others; None if it is not the
        last one."""
        if self._under_way is None or self._under_way[0] != serial:
            return None
        _, count, each = self._under_way
        self._under_way = None
        return count, each


follow(Attachment, "state", ATTACHMENTS)
