"""The shared subscriptions of which a client is a member: its calls, its reports, and the coordinators' messages."""

from gapless.names import (
    Acknowledge,
    Acknowledged,
    AcknowledgeEach,
    EachAcknowledged,
    ExtendAck,
    JoinedGroup,
    Nack,
    Revoked,
)
from gapless.protocol import Activated, Ended, Rejected, SetTimer, Skipped, Subscribe
from gapless.protocols.gapless.client_connection import ClientConnection
from gapless.protocols.gapless.client_deliveries import ClientDeliveries
from gapless.protocols.gapless.durable.client_messages import ClientGroupReport, DealtNote, DurableAttached, GroupOver
from gapless.protocols.gapless.durable.letters import BURIED, FAILED, UNACKNOWLEDGED, Letters, is_last_delivery
from gapless.protocols.gapless.durable.membership import Membership, MembershipState

__all__ = ["BEAT", "JoinedGroups"]

BEAT = "durable-beat"
BEAT_US = 1_000_000
"""The interval of a member's heartbeat."""


class JoinedGroups:
    """The shared subscriptions of one client."""

    def __init__(self, connection: ClientConnection, deliveries: ClientDeliveries, letters: Letters) -> None:
        self._connection = connection
        self._deliveries = deliveries
        self._letters = letters
        self._members: dict[str, Membership] = {}
        """By subscription."""
        self._is_beating = False
        self._buried = 0

    def __contains__(self, subscription: str) -> bool:
        return subscription in self._members

    def has(self, name: str) -> bool:
        """Return whether the client is a member of the group, or is joining."""
        return any(member.call.name == name for member in self._members.values())

    # ---- joining -------------------------------------------------------------------------------------------

    def subscribe(self, call: Subscribe) -> None:
        """Join."""
        member = self._members[call.subscription] = Membership(call)
        self._ask(member)
        self._beat_later()

    def unsubscribe(self, subscription: str) -> None:
        """Leave: send the last report first."""
        member = self._members[subscription]
        if member.state is not MembershipState.MEMBER:
            self._end(member)
        else:
            member.state = MembershipState.LEAVING
            self._report(member)

    def ready(self) -> None:
        """Join again at the broker with the session."""
        for member in list(self._members.values()):
            self._join_again(member)

    def attached(self, message: DurableAttached) -> None:
        """Continue with the known coordinator."""
        member, record = self._members[message.subscription], message.record
        if member.state is MembershipState.REQUESTED and member.line == message.line:
            is_first = not member.was_member
            member.attached(record)
            self._report(member)
            if is_first:
                self._connection.emit(JoinedGroup(message.subscription, record.name, record.position))
                self._connection.emit(Activated(message.subscription))

    def over(self, message: GroupOver) -> None:
        """Join again, because the coordinator is unreachable."""
        member = self._members.get(message.subscription)
        if member is not None and member.line == message.line:
            self._join_again(member)

    def lose(self, subscription: str, reason: str) -> None:
        """End a membership that failed or was lost."""
        self._end(self._members[subscription], reason)

    def _ask(self, member: Membership) -> None:
        self._connection.say(member.request(self._connection.session))

    def _join_again(self, member: Membership) -> None:
        if member.state is MembershipState.LEAVING:
            self._end(member)
        else:
            self._ask(member)

    def _end(self, member: Membership, reason: str = "") -> None:
        del self._members[member.call.subscription]
        self._letters.unadvertise(member.call)
        if reason and not member.was_member:
            self._connection.emit(Rejected(member.call, reason))
        else:
            self._connection.emit(Ended(member.call.subscription, {}, reason=reason))

    # ---- deliveries ----------------------------------------------------------------------------------------

    def dealt(self, message: DealtNote) -> None:
        """Process a message of the coordinator of a shared subscription."""
        emit, subscription, deal = self._connection.emit, message.subscription, message.deal
        member = self._members.get(subscription)
        if member is None or member.line != deal.line:
            return
        for gap in member.new_gaps(deal):
            emit(Skipped(subscription, {}, gap))
        lost = member.newly_lost(deal)
        if lost:
            emit(Skipped(subscription, lost))
        for item in member.take_dealt(deal, self._connection.now):
            if is_last_delivery(member.call, member.max_deliveries, item.event, item.deliveries - 1):
                self._buried += 1
                count = BURIED + self._buried
                member.take(item, count)
                self._letters.write(member.call, count, item.event, item.deliveries - 1, UNACKNOWLEDGED)
            else:
                count = self._deliveries.hand_over(item.event, subscription, item.deliveries, is_again=item.is_again)
                member.take(item, count)
        revoked = member.take_revoked(deal)
        if revoked:
            emit(Revoked(subscription, revoked))
        each = member.take_stored(deal)
        if each:
            emit(EachAcknowledged(subscription, each))
        count = member.newly_over() or 0
        if count:
            emit(Acknowledged(subscription, count, True))
        if deal.is_over:
            member.gone = member.generation if deal.is_gone else member.gone
            self._join_again(member)

    def call(self, call: Acknowledge | AcknowledgeEach | Nack | ExtendAck) -> None:
        """Process a call of the application."""
        member = self._members[call.subscription]
        match call:
            case Acknowledge():
                member.acknowledge(call.count)
            case AcknowledgeEach():
                member.acknowledge_each(list(call.counts))
            case Nack():
                counts = [count for count in call.counts if not self._bury(member, count)]
                revoked = member.give_back(counts, call.delay_us)
                if revoked:
                    self._connection.emit(Revoked(call.subscription, revoked))
            case ExtendAck():
                member.extend(list(call.counts))

    def _bury(self, member: Membership, count: int) -> bool:
        """Publish a dead letter for this delivery, if it was the last one."""
        held = member.held(count)
        if held is None or not is_last_delivery(member.call, member.max_deliveries, held.event, held.deliveries):
            return False
        member.extend([count])
        self._letters.write(member.call, count, held.event, held.deliveries, FAILED)
        return True

    def taken(self, count: int) -> None:
        """Note that the application has taken everything up to this delivery."""
        for member in self._members.values():
            if member.call.ack == "auto":
                member.acknowledge(count)

    # ---- reports -------------------------------------------------------------------------------------------

    def letter_confirmed(self, subscription: str, count: int) -> None:
        """Acknowledge a delivery whose dead letter is confirmed."""
        if subscription in self._members:
            self._members[subscription].acknowledge_letter(count)

    @property
    def is_due(self) -> bool:
        """Return whether anything is to be reported."""
        return any(each.is_dirty and each.state is not MembershipState.REQUESTED for each in self._members.values())

    def send_reports(self) -> None:
        """Send new reports."""
        for member in self._members.values():
            if member.is_dirty and member.state is not MembershipState.REQUESTED:
                self._report(member)

    def beat(self) -> None:
        """Send a heartbeat, with or without news."""
        self._is_beating = False
        for member in self._members.values():
            if member.state is not MembershipState.REQUESTED:
                self._report(member)
        if self._members:
            self._beat_later()

    def _beat_later(self) -> None:
        if not self._is_beating:
            self._is_beating = True
            self._connection.emit(SetTimer(BEAT, BEAT_US))

    def _report(self, member: Membership) -> None:
        emit, call = self._connection.emit, member.call
        asked = member.newly_asked()
        if asked is not None:
            emit(Acknowledged(call.subscription, asked, False))
        each = member.newly_each()
        if each:
            emit(EachAcknowledged(call.subscription, each, False))
        report = member.report(self._connection.now)
        self._connection.say(ClientGroupReport(self._connection.session, call.subscription, call.name, report))
