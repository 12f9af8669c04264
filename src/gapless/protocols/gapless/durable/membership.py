"""A client as a member of a shared subscription: its assignments, and which of them are acknowledged.

Whenever the client attaches, it begins a new **line** with its coordinator, in which deliveries have numbers, and
reports its events. It ignores assignments made before a report which it sent `SILENT_US` ago (or the redelivery
timeout, if that is less): by then the coordinator may have assigned them to another member.
"""

from dataclasses import dataclass
from enum import Enum
from math import inf

from gapless.events import Event
from gapless.protocol import Subscribe
from gapless.protocols.gapless.durable.client_messages import ClientAttach
from gapless.protocols.gapless.durable.messages import Deal, DealItem, DurableRecord, Item, Report, Returned
from gapless.protocols.parts.forgetting import forget_oldest
from gapless.protocols.parts.ranges import Ranges, add_range, add_ranges, without
from gapless.protocols.parts.transitions import Transitions, follow

__all__ = ["SILENT_US", "Held", "Membership", "MembershipState"]

SILENT_US = 5_000_000
REPORTS_MAX = 1_000
GAPS_MAX = 100
"""The number of reports whose sending times are remembered."""


class MembershipState(Enum):
    """The state of a membership: REQUESTED again when the coordinator is unreachable or the client has a new session;
    LEAVING while the last report is in flight. A refusal ends each of them at once."""

    REQUESTED = "requested"
    MEMBER = "member"
    LEAVING = "leaving"


MEMBERSHIPS: Transitions = {
    MembershipState.REQUESTED: {MembershipState.MEMBER, MembershipState.LEAVING},
    MembershipState.MEMBER: {MembershipState.REQUESTED, MembershipState.LEAVING},
    MembershipState.LEAVING: set(),
}


@dataclass(eq=False)
class Held:
    """An assigned event."""

    number: int
    count: int
    """The number of its delivery to the client."""
    event: Event
    deliveries: int
    is_acked: bool = False
    is_each: bool = False
    """Whether it was acknowledged individually."""
    is_asked: bool = False
    """Whether the application knows that its acknowledgement is in flight."""


class Membership:
    """One membership of one client."""

    def __init__(self, call: Subscribe) -> None:
        self.call = call
        self.state = MembershipState.REQUESTED
        self.line = ""
        self.was_member = False
        self.gone = 0
        """The coordinators up to this generation are unreachable."""
        self.generation = self.max_deliveries = 0
        self.is_dirty = False
        """Whether there is something to report."""
        self._lines = 0
        self._lease_us = 0
        self._reports = 0
        self._sent: dict[int, int] = {}
        """When each report of the line was sent."""
        self._received = 0
        self._held: dict[int, Held] = {}
        """By number in the line: events whose acknowledgement is not stored."""
        self._is_announced = False
        """Whether the coordinator knows the client's events."""
        self._acked: list[int] = []
        self._returned: list[Returned] = []
        self._extended: list[int] = []
        self._count = 0
        """The application has acknowledged everything up to this delivery."""
        self._asked = self._over = 0
        self._lost: Ranges = {}
        """The losses that were reported to the application,"""
        self._gaps: list[tuple[int, int]] = []
        """and the last gaps."""
        self._losses = 0
        """The number of losses reported in this line."""

    def request(self, session: int) -> ClientAttach:
        """Attach, or attach again in a new line."""
        self._lines += 1
        if self.state is MembershipState.MEMBER:
            self.state = MembershipState.REQUESTED
        call = self.call
        self.line = f"{call.subscription}#{session}.{self._lines}"
        return ClientAttach(
            session, call.subscription, call.name, call.filter, call.replace and not self.was_member, True,
            int(call.redeliver_s * 1e6), call.max_deliveries,
            line=self.line, was_attached=self.was_member, gone=self.gone,
        )  # fmt: skip

    def attached(self, record: DurableRecord) -> None:
        """Continue with the known coordinator."""
        self.state, self.was_member, self.is_dirty = MembershipState.MEMBER, True, True
        self.generation, self.max_deliveries = record.generation, record.max_deliveries
        self._lease_us = min(record.redeliver_us, SILENT_US)
        self._reports, self._losses, self._is_announced = 0, 0, False
        self._sent.clear()
        held = list(self._held.values())
        for number, each in enumerate(held, 1):
            each.number = number
        self._held = {each.number: each for each in held}
        self._received = len(held)
        self._acked = [each.number for each in held if each.is_acked]
        self._returned, self._extended = [], []

    # ---- deliveries ---------------------------------------------------------------------------------------

    def newly_lost(self, deal: Deal) -> dict[str, list[tuple[int, int]]]:
        """Return the lost numbers of each publisher, without those reported before."""
        if deal.losses > self._losses:
            self._losses, self.is_dirty = deal.losses, True
        found: Ranges = {}
        for publisher, ranges in deal.lost.items():
            for first, last in ranges:
                for pair in without(self._lost.get(publisher, []), first, last):
                    add_range(found, publisher, *pair)
        add_ranges(self._lost, found)
        return found

    def new_gaps(self, deal: Deal) -> list[tuple[int, int]]:
        """Return the gaps, without those reported before."""
        found = [(since, until) for since, until in deal.gaps if (since, until) not in self._gaps]
        self._gaps = [*self._gaps, *found][-GAPS_MAX:]
        return found

    def take_dealt(self, deal: Deal, now: int) -> list[DealItem]:
        """Return the items to deliver, which the caller must `take`. The others are returned to the coordinator."""
        fresh = [item for item in deal.items if item.number > self._received]
        if not fresh:
            return []
        self._received = fresh[-1].number
        is_late = now - self._sent.get(deal.since, -inf) >= self._lease_us
        if is_late or self.state is not MembershipState.MEMBER:
            self._returned += [Returned(item.number, 0) for item in fresh]
            self.is_dirty = True
            return []
        return fresh

    def take(self, item: DealItem, count: int) -> None:
        """Record that the item was delivered."""
        self._held[item.number] = Held(item.number, count, item.event, item.deliveries)

    def take_revoked(self, deal: Deal) -> list[int]:
        """Return the deliveries reassigned to another member."""
        found = [self._held.pop(number) for number in deal.revoked if number in self._held]
        return [each.count for each in found]

    def take_stored(self, deal: Deal) -> list[int]:
        """Return the individually acknowledged deliveries whose acknowledgements are stored."""
        found = [self._held.pop(number) for number in deal.acked if number in self._held]
        return [each.count for each in found if each.is_each]

    def newly_over(self) -> int | None:
        """Return the delivery up to which all acknowledgements are stored, or events reassigned; None if nothing is
        new."""
        count = min((each.count - 1 for each in self._held.values()), default=self._count)
        count = min(count, self._count)
        if count <= self._over:
            return None
        self._over = count
        return count

    # ---- acknowledgements ---------------------------------------------------------------------------------

    def acknowledge(self, count: int) -> None:
        """Acknowledge everything up to a delivery."""
        if count > self._count:
            self._count = count
            self._mark([each for each in self._held.values() if each.count <= count])

    def acknowledge_each(self, counts: list[int]) -> None:
        """Acknowledge these deliveries."""
        found = [each for each in self._held.values() if each.count in counts and not each.is_acked]
        for each in found:
            each.is_each = True
        self._mark(found)

    def acknowledge_letter(self, count: int) -> None:
        """Acknowledge a delivery whose dead letter is confirmed."""
        self._mark([each for each in self._held.values() if each.count == count])

    def held(self, count: int) -> Held | None:
        """Return an unacknowledged delivery."""
        return next((each for each in self._held.values() if each.count == count and not each.is_acked), None)

    def _mark(self, found: list[Held]) -> None:
        for each in found:
            if not each.is_acked:
                each.is_acked = self.is_dirty = True
                self._acked.append(each.number)

    def newly_each(self) -> list[int]:
        """Return the deliveries about to be acknowledged individually that were not returned before."""
        found = [each for each in self._held.values() if each.is_each and not each.is_asked]
        for each in found:
            each.is_asked = True
        return [each.count for each in found]

    def give_back(self, counts: list[int], delay_us: int) -> list[int]:
        """Record a negative acknowledgement of these deliveries. Return those that were the member's own."""
        found = [each for each in self._held.values() if each.count in counts and not each.is_acked]
        for each in found:
            del self._held[each.number]
            self._returned.append(Returned(each.number, delay_us))
            self.is_dirty = True
        return [each.count for each in found]

    def extend(self, counts: list[int]) -> None:
        """Extend the time for these deliveries."""
        self._extended += [each.number for each in self._held.values() if each.count in counts]
        self.is_dirty = True

    # ---- reports ------------------------------------------------------------------------------------------

    def newly_asked(self) -> int | None:
        """Return the delivery up to which everything is about to be acknowledged; None if nothing is new."""
        if self._count <= self._asked:
            return None
        self._asked = self._count
        return self._count

    def report(self, now: int) -> Report:
        """Return the report to the coordinator that is due now."""
        self._reports += 1
        self._sent[self._reports] = now
        forget_oldest(self._sent, REPORTS_MAX)
        holds = (
            None if self._is_announced else [Item(each.event.publisher, each.event.seq) for each in self._held.values()]
        )
        self._is_announced = True
        report = Report(
            self.line, self._reports, holds, self._acked, self._returned, self._extended, self._losses,
            self.state is MembershipState.LEAVING,
        )  # fmt: skip
        self._acked, self._returned, self._extended = [], [], []
        self.is_dirty = False
        return report


follow(Membership, "state", MEMBERSHIPS)
