"""The durable subscriptions of a client's node: calls of the application, and answers of the broker."""

from typing import Protocol

from gapless.events import Event
from gapless.names import (
    Acknowledge,
    Acknowledged,
    AcknowledgeEach,
    Attached,
    DeadLettered,
    DurableChanged,
    DurableInfo,
    DurablesListed,
    EachAcknowledged,
    ExtendAck,
    JoinedGroup,
    ListDurables,
    MoveDurable,
    Nack,
    Revoked,
)
from gapless.printable import name_complaint
from gapless.protocol import (
    Activated,
    Advertise,
    Effect,
    Ended,
    Publish,
    Rejected,
    SetTimer,
    Skipped,
    Subscribe,
    Unadvertise,
)
from gapless.protocols.gapless.durable.attachment import Attachment, AttachmentState, Delivered
from gapless.protocols.gapless.durable.letters import Letter, Letters, is_letter_of, letter_filter, letter_of
from gapless.protocols.gapless.durable.membership import Membership, MembershipState
from gapless.protocols.gapless.durable.messages import (
    AckResult,
    ClientGroupReport,
    ClientList,
    ClientMove,
    DealtNote,
    DurableAttached,
    DurableListed,
    DurableLost,
    DurableMoved,
    DurableRecord,
    DurableRefused,
    DurableReply,
    GroupOver,
)

__all__ = ["DURABLE_TIMERS", "DurableClient", "Host"]

GATHER = "durable-gather"
GATHER_US = 20_000
"""How long acknowledgements gather that nobody waits for."""
BEAT = "durable-beat"
BEAT_US = 1_000_000
"""How often a member reports that it is there."""
AGAIN = "durable-again"
DURABLE_TIMERS = (GATHER, BEAT, AGAIN)
MANUAL_MAX = 100_000
"""How many deliveries may wait to be acknowledged by the application."""
BURIED = 1 << 62
"""From here on the client counts what it was dealt and does not deliver any more, as it becomes a dead letter."""
FAILED, UNACKNOWLEDGED = "nack", "not acknowledged"
"""Why there is a dead letter."""


class Host(Protocol):
    """The client's node that this is a part of."""

    @property
    def session(self) -> int:
        """The number of its session."""
        ...

    @property
    def now(self) -> int:
        """The time of this step."""
        ...

    def emit(self, effect: Effect) -> None:
        """To its runtime."""
        ...

    def say(self, message: object) -> None:
        """To its broker, if that has the session."""
        ...

    def resume(self, call: Subscribe, attachment: Attachment, record: DurableRecord) -> None:
        """Begin a subscription that goes on after what is acknowledged."""
        ...

    def end_resumed(self, subscription: str, reason: str) -> None:
        """End it, and say why."""
        ...

    def stop_resumed(self, subscription: str) -> None:
        """Let the broker end it; nothing more is delivered."""
        ...

    def hand_over(self, event: Event, subscription: str, deliveries: int, *, is_again: bool) -> int:
        """Deliver an event to the application; returns which delivery that is."""
        ...

    def advertise_letters(self, call: Advertise | Unadvertise) -> None:
        """Announce the dead letters of a subscription, or take that back."""
        ...

    def publish_letter(self, call: Publish) -> int:
        """Publish a dead letter; returns its number, or 0 if there is no room now."""
        ...


class DurableClient:
    """All of one client."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._attachments: dict[str, Attachment] = {}
        """By subscription."""
        self._memberships: dict[str, Membership] = {}
        self._questions: dict[int | str, ListDurables | MoveDurable] = {}
        """Those without an answer."""
        self._found: dict[int, list[DurableInfo]] = {}
        self._again: list[tuple[int, str, Delivered]] = []
        """Events that were given back: when each is delivered again, and for which subscription."""
        self._is_gathering = self._is_beating = False
        self._letters = Letters()
        self._buried = 0

    def __contains__(self, subscription: str) -> bool:
        return subscription in self._attachments or subscription in self._memberships

    # ---- calls --------------------------------------------------------------------------------------------

    def call(self, call: Acknowledge | AcknowledgeEach | Nack | ExtendAck | ListDurables | MoveDurable) -> None:
        """A call of the application, except to subscribe and unsubscribe."""
        if isinstance(call, ListDurables | MoveDurable):
            self._questions[call.request] = call
            self._ask(call)
            return
        attachment, member = self._attachments.get(call.subscription), self._memberships.get(call.subscription)
        if attachment is not None:
            self._call_attachment(attachment, call)
        elif member is not None:
            self._call_member(member, call)
        if isinstance(call, Acknowledge | AcknowledgeEach) and call.is_urgent:
            self._tell_all()
        else:
            self._tell_later()

    def _call_attachment(self, attachment: Attachment, call: Acknowledge | AcknowledgeEach | Nack | ExtendAck) -> None:
        match call:
            case Acknowledge():
                attachment.acknowledge(call.count)
            case AcknowledgeEach():
                attachment.acknowledge_each(list(call.counts))
            case Nack():
                for count in call.counts:
                    self._give_back(attachment, count, call.delay_us)
            case ExtendAck():
                pass  # there is nobody else to deliver them to

    def _give_back(self, attachment: Attachment, count: int, delay_us: int) -> None:
        held = attachment.held(count)
        if held is None or held.event is None:
            return
        if self._is_last(attachment.call, attachment.max_deliveries, held.event, held.deliveries):
            self._bury(attachment.call, count, held.event, held.deliveries, FAILED)
            return
        delivered = attachment.give_back(count)
        assert delivered is not None
        self._host.emit(Revoked(attachment.call.subscription, [count]))
        self._again.append((self._host.now + delay_us, attachment.call.subscription, delivered))
        self._host.emit(SetTimer(AGAIN, max(0, min(each[0] for each in self._again) - self._host.now)))

    def _call_member(self, member: Membership, call: Acknowledge | AcknowledgeEach | Nack | ExtendAck) -> None:
        match call:
            case Acknowledge():
                member.acknowledge(call.count)
            case AcknowledgeEach():
                member.acknowledge_each(list(call.counts))
            case Nack():
                counts = [count for count in call.counts if not self._bury_held(member, count)]
                revoked = member.give_back(counts, call.delay_us)
                if revoked:
                    self._host.emit(Revoked(call.subscription, revoked))
            case ExtendAck():
                member.extend(list(call.counts))

    # ---- dead letters -------------------------------------------------------------------------------------

    @staticmethod
    def _is_last(call: Subscribe, most: int, event: Event, deliveries: int) -> bool:
        """Whether the event is not delivered again."""
        return call.max_deliveries > 0 and 0 < most <= deliveries and not is_letter_of(call.name, event)

    def _bury_held(self, member: Membership, count: int) -> bool:
        held = member.held(count)
        if held is None or not self._is_last(member.call, member.max_deliveries, held.event, held.deliveries):
            return False
        member.extend([count])
        self._bury(member.call, count, held.event, held.deliveries, FAILED)
        return True

    def _bury(self, call: Subscribe, count: int, event: Event, deliveries: int, reason: str) -> None:
        letter = letter_of(call.name, event, deliveries, reason, call.letter_max)
        if self._letters.add(Letter(call.subscription, count, event, deliveries, reason, letter)):
            self._send_letters()

    def _send_letters(self) -> None:
        waiting = self._letters.waiting
        while waiting:
            seq = self._host.publish_letter(waiting[0].call)
            if not seq:
                return
            sent = self._letters.sent(seq)
            self._host.emit(
                DeadLettered(
                    sent.subscription, sent.event.publisher, sent.event.seq, sent.deliveries, sent.reason, seq,
                    sent.count if sent.count < BURIED else 0,
                )
            )  # fmt: skip

    def confirmed(self, last: int) -> None:
        """The client's publications up to a number are confirmed: the events of dead letters are done."""
        for letter in self._letters.confirmed(last):
            attachment = self._attachments.get(letter.subscription)
            member = self._memberships.get(letter.subscription)
            if attachment is not None:
                attachment.acknowledge_each([letter.count])
            elif member is not None:
                member.acknowledge_letter(letter.count)
        self._send_letters()
        self._tell_later()

    def _objection(self, call: Subscribe) -> str:
        complaint = name_complaint("the name of a durable subscription", call.name)
        if complaint:
            return complaint
        if call.since is not None or call.until is not None:
            return (
                f"the durable subscription {call.name!r} goes on after what was acknowledged; subscribe without "
                "`since` and `until`, or move it first"
            )
        names = [attachment.call.name for attachment in self._attachments.values()]
        names += [member.call.name for member in self._memberships.values()]
        if call.name in names:
            return f"this client is attached to the durable subscription {call.name!r} already; close that one first"
        return ""

    def subscribe(self, call: Subscribe) -> None:
        """Attach."""
        objection = self._objection(call)
        if objection:
            self._host.emit(Rejected(call, objection))
            return
        if call.max_deliveries:
            self._host.advertise_letters(Advertise(_letters_of(call), letter_filter(call.name)))
        if call.group:
            member = self._memberships[call.subscription] = Membership(call)
            self._host.say(member.request(self._host.session))
            self._beat_later()
        else:
            attachment = self._attachments[call.subscription] = Attachment(call, self._host.session)
            self._host.say(attachment.request(self._host.session))

    def unsubscribe(self, subscription: str) -> None:
        """Leave: send the last acknowledgements first."""
        member = self._memberships.get(subscription)
        if member is not None:
            if member.state is not MembershipState.MEMBER:
                self._end_member(member)
            else:
                member.state = MembershipState.LEAVING
                self._report(member)
            return
        attachment = self._attachments[subscription]
        if attachment.state is AttachmentState.REQUESTED:
            # The broker may attach the client all the same: it leaves when it hears so.
            self._drop(attachment.call, self._attachments)
            self._host.emit(Ended(subscription, {}))
            return
        attachment.state = AttachmentState.LEAVING
        self._tell(attachment)

    def _drop(self, call: Subscribe, place: dict[str, Attachment] | dict[str, Membership]) -> None:
        del place[call.subscription]
        if call.max_deliveries:
            self._host.advertise_letters(Unadvertise(_letters_of(call)))

    # ---- the session --------------------------------------------------------------------------------------

    def ready(self) -> None:
        """A broker has the session: say again what may not have arrived."""
        session = self._host.session
        for attachment in self._attachments.values():
            if attachment.state is AttachmentState.REQUESTED:
                self._host.say(attachment.request(session))
            else:
                self._say_ack(attachment)
        for member in list(self._memberships.values()):
            if member.state is MembershipState.LEAVING:
                self._end_member(member)
            else:
                self._host.say(member.request(session))
        for question in list(self._questions.values()):
            self._ask(question)

    def _ask(self, call: ListDurables | MoveDurable) -> None:
        session = self._host.session
        if isinstance(call, ListDurables):
            self._found[call.request] = []
            self._host.say(ClientList(session, call.request))
            return
        to = call.position
        after = None if to is None or to.is_network_wide else (to.timestamp, to.publisher, to.number)
        self._host.say(ClientMove(session, call.request, call.name, call.filter, -1 if to is None else to.floor, after))

    # ---- deliveries ---------------------------------------------------------------------------------------

    def taken(self, count: int) -> None:
        """The application has taken everything up to this delivery."""
        for attachment in list(self._attachments.values()):
            if attachment.call.ack == "auto":
                attachment.acknowledge(count)
            elif attachment.unacknowledged > MANUAL_MAX:
                self._lose(
                    attachment,
                    f"{MANUAL_MAX:,} events of the durable subscription {attachment.call.name!r} wait to be "
                    "acknowledged, which is the limit; acknowledge them, and subscribe again",
                )
        for member in self._memberships.values():
            if member.call.ack == "auto":
                member.acknowledge(count)
        self._tell_later()

    def reached(self, attachment: Attachment, position: int) -> None:
        """Everything up to a position was delivered."""
        attachment.reached(position)
        self._tell_later()

    def _deliver_again(self) -> None:
        now = self._host.now
        due = [each for each in self._again if each[0] <= now]
        self._again = [each for each in self._again if each[0] > now]
        for _, subscription, delivered in due:
            attachment = self._attachments.get(subscription)
            if attachment is not None and attachment.state is AttachmentState.ATTACHED and delivered.event is not None:
                deliveries = delivered.deliveries + 1
                count = self._host.hand_over(delivered.event, subscription, deliveries, is_again=True)
                attachment.delivered_again(count, delivered)
        if self._again:
            self._host.emit(SetTimer(AGAIN, min(each[0] for each in self._again) - now))

    # ---- answers ------------------------------------------------------------------------------------------

    def receive(self, message: DurableReply) -> None:
        """The broker answers."""
        match message:
            case DurableAttached():
                self._attached(message)
            case DurableRefused() | DurableLost():
                self._refused(message)
            case AckResult():
                self._stored(message)
            case DurableListed():
                self._listed(message)
            case DurableMoved():
                if self._questions.pop(message.request, None) is not None:
                    self._host.emit(DurableChanged(message.request, message.reason))
            case GroupOver():
                member = self._memberships.get(message.subscription)
                if member is not None and member.line == message.line:
                    self._attach_again(member)

    def _attached(self, message: DurableAttached) -> None:
        record, subscription = message.record, message.subscription
        member = self._memberships.get(subscription)
        if member is not None:
            if member.state is MembershipState.REQUESTED and member.line == message.line:
                is_first = not member.was_member
                member.attached(record)
                self._report(member)
                if is_first:
                    self._host.emit(JoinedGroup(subscription, record.name, record.position))
                    self._host.emit(Activated(subscription))
            return
        attachment = self._attachments.get(subscription)
        if attachment is None:
            if not record.is_shared:  # it was ended before the answer came
                call = Subscribe(subscription, record.filter, name=record.name)
                attachment = self._attachments[subscription] = Attachment(call, self._host.session)
                attachment.attached(record)
                attachment.state = AttachmentState.LEAVING
                self._tell(attachment)
        elif attachment.state is AttachmentState.REQUESTED:
            attachment.attached(record)
            got = dict(record.got)
            self._host.emit(
                Attached(subscription, record.name, record.generation, record.position, got, record.delivered)
            )
            self._host.resume(attachment.call, attachment, record)

    def _refused(self, message: DurableRefused | DurableLost) -> None:
        member = self._memberships.get(message.subscription)
        attachment = self._attachments.get(message.subscription)
        if member is not None:
            self._end_member(member, message.reason)
        elif attachment is not None:
            self._lose(attachment, message.reason)

    def _lose(self, attachment: Attachment, reason: str) -> None:
        subscription = attachment.call.subscription
        self._drop(attachment.call, self._attachments)
        if attachment.state is AttachmentState.REQUESTED:
            self._host.emit(Rejected(attachment.call, reason))
        else:
            self._host.end_resumed(subscription, reason)

    def _stored(self, message: AckResult) -> None:
        attachment = self._attachments.get(message.subscription)
        stored = None if attachment is None else attachment.stored(message.serial)
        if attachment is None or stored is None:
            return
        count, each = stored
        self._host.emit(Acknowledged(message.subscription, count, True))
        if each:
            self._host.emit(EachAcknowledged(message.subscription, each))
        if attachment.has_left:
            self._drop(attachment.call, self._attachments)
            self._host.stop_resumed(message.subscription)
        else:
            self._tell(attachment)

    def _listed(self, message: DurableListed) -> None:
        if message.request not in self._questions:
            return
        found = self._found[message.request]
        for record in message.records:
            lag_s = max(0, message.newest - record.position) / 1e6
            who = "" if record.owner is None else record.owner.broker if record.is_shared else record.client
            found.append(DurableInfo(record.name, record.filter, record.begin, who, lag_s, record.is_shared))
        if message.is_last:
            del self._questions[message.request], self._found[message.request]
            self._host.emit(DurablesListed(message.request, found, message.newest))

    def dealt(self, message: DealtNote) -> None:
        """The coordinator of a shared subscription has something to say."""
        subscription, deal = message.subscription, message.deal
        member = self._memberships.get(subscription)
        if member is None or member.line != deal.line:
            return
        lost = member.newly_lost(deal)
        if deal.gap is not None or lost:
            self._host.emit(Skipped(subscription, lost, deal.gap))
        for item in member.take_dealt(deal, self._host.now):
            if self._is_last(member.call, member.max_deliveries, item.event, item.deliveries - 1):
                self._buried += 1
                member.take(item, BURIED + self._buried)
                self._bury(member.call, BURIED + self._buried, item.event, item.deliveries - 1, UNACKNOWLEDGED)
                continue
            count = self._host.hand_over(item.event, subscription, item.deliveries, is_again=item.is_again)
            member.take(item, count)
        revoked = member.take_revoked(deal)
        if revoked:
            self._host.emit(Revoked(subscription, revoked))
        each = member.take_stored(deal)
        if each:
            self._host.emit(EachAcknowledged(subscription, each))
        count = member.newly_over() or 0
        if count:
            self._host.emit(Acknowledged(subscription, count, True))
        if deal.is_over and member.state is MembershipState.LEAVING:
            self._end_member(member)
        elif deal.is_over:
            member.gone = member.generation if deal.is_gone else member.gone
            self._attach_again(member)
        self._tell_later()

    def _attach_again(self, member: Membership) -> None:
        if member.state is MembershipState.LEAVING:
            self._end_member(member)
        else:
            self._host.say(member.request(self._host.session))

    def _end_member(self, member: Membership, reason: str = "") -> None:
        self._drop(member.call, self._memberships)
        if reason and not member.was_member:
            self._host.emit(Rejected(member.call, reason))
        else:
            self._host.emit(Ended(member.call.subscription, {}, reason=reason))

    # ---- reports ---------------------------------------------------------------------------------------------

    def _tell(self, attachment: Attachment) -> None:
        if attachment.is_due:
            self._say_ack(attachment)

    def _say_ack(self, attachment: Attachment) -> None:
        message = attachment.message(self._host.session)
        self._host.emit(Acknowledged(attachment.call.subscription, attachment.count, False))
        if attachment.each_under_way:
            self._host.emit(EachAcknowledged(attachment.call.subscription, attachment.each_under_way, False))
        self._host.say(message)

    def _report(self, member: Membership) -> None:
        asked = member.newly_asked()
        if asked is not None:
            self._host.emit(Acknowledged(member.call.subscription, asked, False))
        each = member.newly_each()
        if each:
            self._host.emit(EachAcknowledged(member.call.subscription, each, False))
        report = member.report(self._host.now)
        self._host.say(ClientGroupReport(self._host.session, member.call.subscription, member.call.name, report))

    def _tell_all(self) -> None:
        for attachment in self._attachments.values():
            self._tell(attachment)
        for member in self._memberships.values():
            if member.is_dirty and member.state is not MembershipState.REQUESTED:
                self._report(member)

    def _tell_later(self) -> None:
        is_dirty = any(each.is_due for each in self._attachments.values())
        is_dirty = is_dirty or any(each.is_dirty for each in self._memberships.values())
        if is_dirty and not self._is_gathering:
            self._is_gathering = True
            self._host.emit(SetTimer(GATHER, GATHER_US))

    def _beat_later(self) -> None:
        if not self._is_beating:
            self._is_beating = True
            self._host.emit(SetTimer(BEAT, BEAT_US))

    def timer_fired(self, key: str) -> None:
        """A timer has run out."""
        if key == GATHER:
            self._is_gathering = False
            self._tell_all()
        elif key == AGAIN:
            self._deliver_again()
        else:
            self._is_beating = False
            for member in self._memberships.values():
                if member.state is not MembershipState.REQUESTED:
                    self._report(member)
            if self._memberships:
                self._beat_later()


def _letters_of(call: Subscribe) -> str:
    """The advertisement of the dead letters of a subscription; refused, it refuses the subscription."""
    return f"{call.subscription}#0"
