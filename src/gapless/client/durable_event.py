"""The class of events that a durable subscription delivers, which can be acknowledged, also negatively."""

from types import TracebackType
from typing import Any, ClassVar, Self

from gapless.errors import CallError
from gapless.events import Event

__all__ = ["DurableEvent"]


class DurableEvent(Event, frozen=True, dict=True, gc=True, eq=False):
    """An event of a durable subscription. It equals the published event; a copy of it cannot be acknowledged.

    `async with event:` acknowledges it if the block succeeds, and calls `nack` if the block raises.
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

    async def ack(self) -> None:
        """Acknowledge this event only. Return when it can never be delivered again.

        With `ack="auto"` this acknowledges everything taken so far, except events with a `nack`.

        Example: `await event.ack()`
        """
        await self._taken().ack_event(self._number, self)

    async def nack(self, *, delay_s: float = 0.0) -> None:
        """Request redelivery of the event, in a group to another member if there is one. Requires `ack="manual"`.

        Parameters:
            delay_s: the delay before the redelivery in seconds, up to a day.

        Example: `await event.nack(delay_s=5)`
        """
        self._taken().nack(self._number, self, delay_s)

    async def in_progress(self) -> None:
        """Restart the redelivery timeout of this event (`redeliver_s` of its group). Requires `ack="manual"`.

        Raises an `AckTooLateError` if the event was redelivered to another member.

        Example: `await event.in_progress()`
        """
        self._taken().in_progress(self._number, self)

    async def __aenter__(self) -> Self:
        self._taken()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            await self._taken().ack_event(self._number, self)
        elif isinstance(error, Exception):
            self._taken().failed_at(self._number, self)

    def _taken(self) -> Any:
        """Return the `Acks` of the subscription that delivered the event, or raise an error."""
        if self._acks is None:
            raise CallError(
                f"this copy of {self.id} was not delivered by a subscription; acknowledge the delivered event itself"
            )
        return self._acks
