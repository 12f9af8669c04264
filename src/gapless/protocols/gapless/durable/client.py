"""The durable subscriptions of a client: processes calls of the application and answers of the broker."""

from gapless import names
from gapless.printable import name_complaint
from gapless.protocol import Ended, Rejected, SetTimer, Subscribe
from gapless.protocols.gapless.client_connection import ClientConnection
from gapless.protocols.gapless.client_deliveries import ClientDeliveries
from gapless.protocols.gapless.client_publications import ClientPublications
from gapless.protocols.gapless.durable import client_messages as messages
from gapless.protocols.gapless.durable.attachment import Attachment, AttachmentState
from gapless.protocols.gapless.durable.exclusive import ExclusiveAttachment
from gapless.protocols.gapless.durable.letters import Letters
from gapless.protocols.gapless.durable.membership import Membership

__all__ = ["DURABLE_TIMERS", "DurableClient"]

GATHER, BEAT, AGAIN = DURABLE_TIMERS = ("durable-gather", "durable-beat", "durable-again")
GATHER_US = 20_000
"""How long acknowledgements are collected before they are sent, unless a caller is waiting for them."""
BEAT_US = 1_000_000
"""The interval of the heartbeats of a member of a shared subscription."""


class DurableClient:
    def __init__(
        self, connection: ClientConnection, publications: ClientPublications, deliveries: ClientDeliveries
    ) -> None:
        self._connection = connection
        self._deliveries = deliveries
        self._letters = Letters(connection, publications)
        self._attachments: dict[str, Attachment] = {}
        """The attachments, by subscription."""
        self._questions: dict[int | str, names.ListDurables | names.MoveDurable] = {}
        """Unanswered requests, by request number or subscription name."""
        self._found: dict[int, list[names.DurableInfo]] = {}
        self._timers: set[str] = set()

    def __contains__(self, subscription: str) -> bool:
        return subscription in self._attachments

    # ---- calls --------------------------------------------------------------------------------------------

    def call(
        self,
        call: names.Acknowledge
        | names.AcknowledgeEach
        | names.Nack
        | names.ExtendAck
        | names.ListDurables
        | names.MoveDurable,
    ) -> None:
        if isinstance(call, names.ListDurables | names.MoveDurable):
            self._questions[call.request] = call
            self._ask(call)
            return
        attachment = self._attachments.get(call.subscription)
        if attachment is None:
            return
        match call:
            case names.Acknowledge():
                attachment.acknowledge(call.count)
            case names.AcknowledgeEach():
                attachment.acknowledge_each(list(call.counts))
            case names.Nack():
                attachment.give_back(list(call.counts), call.delay_us)
                self._set_again()
            case names.ExtendAck():
                attachment.extend(list(call.counts))
        if isinstance(call, names.Acknowledge | names.AcknowledgeEach) and call.is_urgent:
            self._send_reports()

    def subscribe(self, call: Subscribe) -> None:
        objection = self._objection(call)
        if objection:
            self._connection.emit(Rejected(call, objection))
            return
        self._letters.advertise(call)
        kind = Membership if call.group else ExclusiveAttachment
        attachment = self._attachments[call.subscription] = kind(call, self._connection, self._letters)
        attachment.request()
        if call.group:
            self._set_timer(BEAT, BEAT_US)

    def _objection(self, call: Subscribe) -> str:
        complaint = name_complaint("the name of a durable subscription", call.name)
        if complaint:
            return complaint
        if call.since is not None or call.until is not None:
            return (
                f"the durable subscription {call.name!r} continues after the last acknowledged event; subscribe "
                "without `since` and `until`, or move it first"
            )
        if any(attachment.call.name == call.name for attachment in self._attachments.values()):
            return f"this client is already attached to the durable subscription {call.name!r}; detach it first"
        return ""

    def unsubscribe(self, subscription: str) -> None:
        """Start to leave a durable subscription. Its last acknowledgements are sent first."""
        attachment = self._attachments[subscription]
        if attachment.state is AttachmentState.REQUESTED:
            # The broker may still attach the client. In that case the client leaves when it receives the answer.
            self._drop(attachment)
            self._connection.emit(Ended(subscription, {}))
        elif attachment.state is AttachmentState.ATTACHED:
            attachment.leave()

    def taken(self, count: int) -> None:
        """Record that the application has taken all deliveries up to this one."""
        for attachment in list(self._attachments.values()):
            if attachment.call.ack == "auto":
                attachment.acknowledge(count)
            elif isinstance(attachment, ExclusiveAttachment) and (objection := attachment.objection()):
                self._lose(attachment.call.subscription, objection)

    # ---- the session --------------------------------------------------------------------------------------

    def ready(self) -> None:
        """Repeat calls that may not have arrived at the broker that has the session."""
        for attachment in list(self._attachments.values()):
            if isinstance(attachment, Membership):
                self._join_again(attachment)
            else:
                attachment.repeat()
        for question in list(self._questions.values()):
            self._ask(question)

    def _ask(self, call: names.ListDurables | names.MoveDurable) -> None:
        session = self._connection.session
        if isinstance(call, names.ListDurables):
            self._found[call.request] = []
            self._connection.say(messages.ClientList(session, call.request))
            return
        to = call.position
        after = None if to is None or to.is_network_wide else (to.timestamp, to.publisher, to.number)
        position = -1 if to is None else to.floor
        self._connection.say(messages.ClientMove(session, call.request, call.name, call.filter, position, after))

    # ---- answers ------------------------------------------------------------------------------------------

    def receive(self, message: messages.DurableReply) -> None:
        match message:
            case messages.DurableAttached():
                self._attached(message)
            case messages.DurableLost():
                self._lose(message.subscription, message.reason)
            case messages.AckResult():
                attachment = self._attachments.get(message.subscription)
                if isinstance(attachment, ExclusiveAttachment) and attachment.stored(message.serial):
                    self._drop(attachment)
                    self._deliveries.stop_resumed(message.subscription)
            case messages.DurableListed():
                self._listed(message)
            case messages.DurableMoved():
                if self._questions.pop(message.request, None) is not None:
                    self._connection.emit(names.DurableChanged(message.request, message.reason))

    def _attached(self, message: messages.DurableAttached) -> None:
        record, subscription = message.record, message.subscription
        attachment = self._attachments.get(subscription)
        if attachment is None:
            if not record.is_shared:  # the subscription was deleted before the answer arrived
                call = Subscribe(subscription, record.filter, name=record.name)
                attachment = ExclusiveAttachment(call, self._connection, self._letters)
                self._attachments[subscription] = attachment
                attachment.attached(record)
                attachment.leave()
        elif attachment.state is not AttachmentState.REQUESTED or attachment.line != message.line:
            return
        elif isinstance(attachment, ExclusiveAttachment):
            attachment.attached(record)
            self._deliveries.resume(attachment.call, attachment, record)
        elif isinstance(attachment, Membership):
            attachment.attached(record)

    def _lose(self, subscription: str, reason: str) -> None:
        """End an attachment that failed or was lost."""
        attachment = self._attachments.get(subscription)
        if attachment is None:
            return
        self._drop(attachment)
        if not attachment.generation:
            self._connection.emit(Rejected(attachment.call, reason))
        elif isinstance(attachment, Membership):
            self._connection.emit(Ended(subscription, {}, reason=reason))
        else:
            self._deliveries.end_resumed(subscription, reason)

    def _drop(self, attachment: Attachment) -> None:
        del self._attachments[attachment.call.subscription]
        self._letters.unadvertise(attachment.call)

    def _join_again(self, member: Membership) -> None:
        """Attach to a shared subscription again, because its coordinator is unreachable or the session is new."""
        if member.state is AttachmentState.LEAVING:
            self._lose(member.call.subscription, "")
        else:
            member.request()

    def _listed(self, message: messages.DurableListed) -> None:
        if message.request not in self._questions:
            return
        found = self._found[message.request]
        for record in message.records:
            known = record.progress
            has_all = max(known.position, known.latest) >= message.published
            lag_s = 0.0 if has_all else max(0, message.newest - known.position) / 1e6
            who = "" if record.owner is None else record.owner.broker if record.is_shared else record.client
            found.append(names.DurableInfo(record.name, record.filter, record.begin, who, lag_s, record.is_shared))
        if message.is_last:
            del self._questions[message.request], self._found[message.request]
            self._connection.emit(names.DurablesListed(message.request, found, message.newest))

    def dealt(self, message: messages.DealtNote) -> None:
        """Process a note from the coordinator of a shared subscription, in its order among the deliveries."""
        member = self._attachments.get(message.subscription)
        if isinstance(member, Membership) and member.take(message.deal):
            self._join_again(member)

    # ---- timers and acknowledgements ----------------------------------------------------------------------

    def timer_fired(self, key: str) -> None:
        self._timers.discard(key)
        if key == GATHER:
            self._send_reports()
            return
        for attachment in self._attachments.values():
            if key == AGAIN and isinstance(attachment, ExclusiveAttachment):
                attachment.deliver_again()
            elif key == BEAT and isinstance(attachment, Membership):
                if attachment.state is not AttachmentState.REQUESTED:
                    attachment.report()
                self._set_timer(BEAT, BEAT_US)
        self._set_again()

    def _set_timer(self, key: str, delay_us: int) -> None:
        if key not in self._timers:
            self._timers.add(key)
            self._connection.emit(SetTimer(key, delay_us))

    def _set_again(self) -> None:
        """Set the timer for the next redelivery after a negative acknowledgement."""
        exclusive = [each for each in self._attachments.values() if isinstance(each, ExclusiveAttachment)]
        due = min((each.next_again for each in exclusive if each.next_again is not None), default=None)
        if due is not None:
            self._connection.emit(SetTimer(AGAIN, max(0, due - self._connection.now)))

    def after_step(self) -> None:
        """Schedule the sending of acknowledgements, including those of events whose dead letters were confirmed."""
        for subscription, count in self._letters.take_confirmed():
            if subscription in self._attachments:
                self._attachments[subscription].letter_confirmed(count)
        if GATHER not in self._timers and any(each.is_due for each in self._attachments.values()):
            self._set_timer(GATHER, GATHER_US)

    def _send_reports(self) -> None:
        for attachment in self._attachments.values():
            if attachment.is_due:
                attachment.report()
