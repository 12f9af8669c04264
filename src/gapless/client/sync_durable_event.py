"""Generated from `gapless.client.durable_event` by `scripts/generate_sync_client.py`. Edit that file instead."""

from types import TracebackType
from typing import Any, ClassVar, Self

from gapless.client import durable_event
from gapless.errors import CallError
from gapless.events import Event

__all__ = ["DurableEvent"]


class DurableEvent(Event, frozen=True, dict=True, gc=True, eq=False):
    """An event of a durable subscription. It equals the published event; a copy of it cannot be acknowledged.

    `with event:` acknowledges it if the block succeeds, and calls `nack` if the block raises.
    """

    redelivered: bool = False
    """Whether the event may have been delivered before without an acknowledgement, to this client or to another. If
    False, the event is certainly new. After a crash, events published up to ten seconds later are marked, too."""
    delivery_count: int = 1
    """How many times the event was delivered, including this time. In a group this counts all deliveries to any member;
    otherwise it counts negative acknowledgements (`nack`), by this client or an earlier one."""
    _acks: ClassVar[Any] = None
    """The `Acks` object of the event's subscription. It is set on each event, like `_number`, but is not a field, so it
    is not shown, copied or encoded."""
    _number: ClassVar[int] = 0
    """The number of the event's delivery."""

    def ack(self) -> None:
        """Acknowledge this event only. Return when it can never be delivered again.

        With `ack="auto"` this acknowledges everything taken so far, except events with a `nack`.

        Example: `event.ack()`
        """
        call: Any = durable_event.DurableEvent.ack
        self._taken().run(call(self))

    def nack(self, *, delay_s: float = 0.0) -> None:
        """Request redelivery of the event, in a group to another member if there is one. Requires `ack="manual"`.

        Parameters:
            delay_s: the delay before the redelivery in seconds, up to a day.

        Example: `event.nack(delay_s=5)`
        """
        call: Any = durable_event.DurableEvent.nack
        self._taken().run(call(self, delay_s=delay_s))

    def in_progress(self) -> None:
        """Restart the redelivery timeout of this event (`redeliver_s` of its group). Requires `ack="manual"`.

        Raises an `AckTooLateError` if the event was redelivered to another member.

        Example: `event.in_progress()`
        """
        call: Any = durable_event.DurableEvent.in_progress
        self._taken().run(call(self))

    def __enter__(self) -> Self:
        self._taken()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        call: Any = durable_event.DurableEvent.__aexit__
        self._taken().run(call(self, kind, error, trace))

    def _taken(self) -> Any:
        """Return the `Acks` of the subscription that delivered the event, or raise an error."""
        if self._acks is None:
            raise CallError(
                f"this copy of {self.id} was not delivered by a subscription; acknowledge the delivered event itself"
            )
        return self._acks
