"""The durable subscriptions with one attached client: its calls, its acknowledgements, and their answers."""

from gapless.names import (
    Acknowledge,
    Acknowledged,
    AcknowledgeEach,
    Attached,
    EachAcknowledged,
    ExtendAck,
    Nack,
    Revoked,
)
from gapless.protocol import Ended, Rejected, SetTimer, Subscribe
from gapless.protocols.gapless.client_connection import ClientConnection
from gapless.protocols.gapless.client_deliveries import ClientDeliveries
from gapless.protocols.gapless.durable.attachment import Attachment, AttachmentState, Delivered
from gapless.protocols.gapless.durable.client_messages import AckResult, DurableAttached
from gapless.protocols.gapless.durable.letters import FAILED, Letters, is_last_delivery

__all__ = ["AGAIN", "ExclusiveSubscriptions"]

AGAIN = "durable-again"
MANUAL_MAX = 100_000
"""How many deliveries can wait to be acknowledged by the application."""


class ExclusiveSubscriptions:
    """The exclusive durable subscriptions of one client."""

    def __init__(self, connection: ClientConnection, deliveries: ClientDeliveries, letters: Letters) -> None:
        self._connection = connection
        self._deliveries = deliveries
        self._letters = letters
        self._attachments: dict[str, Attachment] = {}
        """By subscription."""
        self._again: list[tuple[int, str, Delivered]] = []
        """Events with a `nack`: when each is redelivered, and for which subscription."""

    def __contains__(self, subscription: str) -> bool:
        return subscription in self._attachments

    def has(self, name: str) -> bool:
        """Return whether the client is attached to the durable subscription, or is attaching."""
        return any(attachment.call.name == name for attachment in self._attachments.values())

    # ---- attaching -----------------------------------------------------------------------------------------

    def subscribe(self, call: Subscribe) -> None:
        """Attach."""
        attachment = self._attachments[call.subscription] = Attachment(call, self._connection.session)
        self._connection.say(attachment.request(self._connection.session))

    def unsubscribe(self, subscription: str) -> None:
        """Leave: send the last acknowledgement first."""
        attachment = self._attachments[subscription]
        if attachment.state is AttachmentState.REQUESTED:
            # The broker may still attach the client, which leaves when it is notified.
            self._drop(attachment)
            self._connection.emit(Ended(subscription, {}))
            return
        attachment.state = AttachmentState.LEAVING
        self._send_report(attachment)

    def attached(self, message: DurableAttached) -> None:
        """Begin the attachment."""
        record, subscription = message.record, message.subscription
        attachment = self._attachments.get(subscription)
        if attachment is None:
            if not record.is_shared:  # it was ended before the answer arrived
                call = Subscribe(subscription, record.filter, name=record.name)
                attachment = self._attachments[subscription] = Attachment(call, self._connection.session)
                attachment.attached(record)
                attachment.state = AttachmentState.LEAVING
                self._send_report(attachment)
        elif attachment.state is AttachmentState.REQUESTED:
            attachment.attached(record)
            self._connection.emit(
                Attached(
                    subscription, record.name, record.generation, record.position, dict(record.got), record.delivered
                )
            )
            self._deliveries.resume(attachment.call, attachment, record)

    def lose(self, subscription: str, reason: str) -> None:
        """End an attachment that failed or was lost."""
        attachment = self._attachments.get(subscription)
        if attachment is None:
            return
        self._drop(attachment)
        if attachment.state is AttachmentState.REQUESTED:
            self._connection.emit(Rejected(attachment.call, reason))
        else:
            self._deliveries.end_resumed(subscription, reason)

    def _drop(self, attachment: Attachment) -> None:
        del self._attachments[attachment.call.subscription]
        self._letters.unadvertise(attachment.call)

    def ready(self) -> None:
        """Repeat calls that may not have arrived, at the broker with the session."""
        for attachment in self._attachments.values():
            if attachment.state is AttachmentState.REQUESTED:
                self._connection.say(attachment.request(self._connection.session))
            else:
                self._say(attachment)

    # ---- deliveries ----------------------------------------------------------------------------------------

    def call(self, call: Acknowledge | AcknowledgeEach | Nack | ExtendAck) -> None:
        """Process a call of the application. Extending the time has no effect, because there is no other member."""
        attachment = self._attachments[call.subscription]
        match call:
            case Acknowledge():
                attachment.acknowledge(call.count)
            case AcknowledgeEach():
                attachment.acknowledge_each(list(call.counts))
            case Nack():
                for count in call.counts:
                    self._give_back(attachment, count, call.delay_us)

    def _give_back(self, attachment: Attachment, count: int, delay_us: int) -> None:
        call, held = attachment.call, attachment.held(count)
        if held is None or held.event is None:
            return
        if is_last_delivery(call, attachment.max_deliveries, held.event, held.deliveries):
            self._letters.write(call, count, held.event, held.deliveries, FAILED)
            return
        delivered = attachment.give_back(count)
        assert delivered is not None
        self._connection.emit(Revoked(call.subscription, [count]))
        now = self._connection.now
        self._again.append((now + delay_us, call.subscription, delivered))
        self._connection.emit(SetTimer(AGAIN, max(0, min(each[0] for each in self._again) - now)))

    def deliver_again(self) -> None:
        """Redeliver events whose delay after a `nack` is over."""
        now = self._connection.now
        due = [each for each in self._again if each[0] <= now]
        self._again = [each for each in self._again if each[0] > now]
        for _, subscription, delivered in due:
            attachment = self._attachments.get(subscription)
            if attachment is not None and attachment.state is AttachmentState.ATTACHED and delivered.event is not None:
                deliveries = delivered.deliveries + 1
                count = self._deliveries.hand_over(delivered.event, subscription, deliveries, is_again=True)
                attachment.delivered_again(count, delivered)
        if self._again:
            self._connection.emit(SetTimer(AGAIN, min(each[0] for each in self._again) - now))

    def taken(self, count: int) -> None:
        """Note that the application has taken everything up to this delivery."""
        for attachment in list(self._attachments.values()):
            call = attachment.call
            if call.ack == "auto":
                attachment.acknowledge(count)
            elif attachment.unacknowledged > MANUAL_MAX:
                self.lose(
                    call.subscription,
                    f"{MANUAL_MAX:,} events of the durable subscription {call.name!r} wait to be "
                    "acknowledged, which is the limit; acknowledge them, and subscribe again",
                )

    # ---- acknowledgements ----------------------------------------------------------------------------------

    def letter_confirmed(self, subscription: str, count: int) -> None:
        """Acknowledge a delivery whose dead letter is confirmed."""
        if subscription in self._attachments:
            self._attachments[subscription].acknowledge_each([count])

    @property
    def is_due(self) -> bool:
        """Return whether anything is to be acknowledged."""
        return any(each.is_due for each in self._attachments.values())

    def send_reports(self) -> None:
        """Send due acknowledgements."""
        for attachment in self._attachments.values():
            self._send_report(attachment)

    def _send_report(self, attachment: Attachment) -> None:
        if attachment.is_due:
            self._say(attachment)

    def _say(self, attachment: Attachment) -> None:
        message = attachment.message(self._connection.session)
        self._connection.emit(Acknowledged(attachment.call.subscription, attachment.count, False))
        if attachment.each_under_way:
            self._connection.emit(EachAcknowledged(attachment.call.subscription, attachment.each_under_way, False))
        self._connection.say(message)

    def stored(self, message: AckResult) -> None:
        """Note that an acknowledgement is stored."""
        attachment = self._attachments.get(message.subscription)
        stored = None if attachment is None else attachment.stored(message.serial)
        if attachment is None or stored is None:
            return
        count, each = stored
        self._connection.emit(Acknowledged(message.subscription, count, True))
        if each:
            self._connection.emit(EachAcknowledged(message.subscription, each))
        if attachment.has_left:
            self._drop(attachment)
            self._deliveries.stop_resumed(message.subscription)
        else:
            self._send_report(attachment)
