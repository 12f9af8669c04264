"""Delivers durable subscriptions over HTTP: a stream sends events, and other requests acknowledge them.

A stream belongs to one broker's gateway, which keeps the unacknowledged deliveries. So acknowledgements must be sent to
the same broker as the stream. When the stream ends, unacknowledged events are delivered again to the next stream, at
this or any other broker.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import msgspec

from gapless.client import DurableEvent, DurableSubscription
from gapless.http.problems import ProblemError
from gapless.positions import Position

__all__ = ["AckRequest", "DurableStream", "DurableStreams"]

IDS_MAX = 10_000
UNACKED_MAX = 1_000
"""The maximum number of unacknowledged deliveries of one stream, at which it stops sending."""


class AckRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A request that acknowledges events, acknowledges everything up to a position, or returns events with `nack` for
    redelivery after a delay. Without a group, an event also acknowledges all earlier ones.
    """

    ids: list[str] = []
    position: str = ""
    nack: list[str] = []
    delay_s: float = 0.0


class DurableStream:
    """One stream of a durable subscription, with its unacknowledged deliveries."""

    def __init__(self, subscription: DurableSubscription, *, is_shared: bool) -> None:
        self._subscription = subscription
        self._is_shared = is_shared
        self._unacked: dict[str, DurableEvent] = {}

    @property
    def is_full(self) -> bool:
        """Return whether the stream has to wait for an acknowledgement before it sends more events."""
        return len(self._unacked) >= UNACKED_MAX

    def sent(self, event: DurableEvent) -> None:
        """Record that the stream is sending this event."""
        self._unacked[event.id] = event

    def holds(self, name: str) -> bool:
        """Return whether this event was sent by the stream and is not acknowledged."""
        return name in self._unacked

    async def ack(self, names: Sequence[str]) -> int:
        """Acknowledge these events. Return the number of deliveries that this acknowledges."""
        chosen = [self._unacked[name] for name in names if name in self._unacked]
        before = len(self._unacked)
        if self._is_shared:
            for event in chosen:
                await event.ack()
                self._unacked.pop(event.id, None)
        elif chosen:
            order = {name: place for place, name in enumerate(self._unacked)}
            last = max(chosen, key=lambda event: order[event.id])
            await self._subscription.ack(last)
            self._drop_until(last.id)
        return before - len(self._unacked)

    async def nack(self, names: Sequence[str], delay_s: float) -> int:
        """Request redelivery of these events. Return how many of them were unacknowledged."""
        chosen = [self._unacked[name] for name in names if name in self._unacked]
        for event in chosen:
            await event.nack(delay_s=delay_s)
            del self._unacked[event.id]
        return len(chosen)

    async def ack_until(self, position: Position) -> int:
        """Acknowledge all events up to a position. Return the number of deliveries that this acknowledges."""
        before = len(self._unacked)
        await self._subscription.ack(position)
        self._unacked = {name: event for name, event in self._unacked.items() if event.position > position}
        return before - len(self._unacked)

    def _drop_until(self, name: str) -> None:
        for each in list(self._unacked):
            del self._unacked[each]
            if each == name:
                return


class DurableStreams:
    """The streams of one gateway, by user and by name of the subscription. The members of a group share a name."""

    def __init__(self) -> None:
        self._streams: dict[tuple[str, str], list[DurableStream]] = {}

    @contextmanager
    def attached(self, user: str, name: str, stream: DurableStream | None) -> Iterator[None]:
        """Accept acknowledgements for a stream within the block. Without a stream, do nothing."""
        if stream is None:
            yield
            return
        streams = self._streams.setdefault((user, name), [])
        streams.append(stream)
        try:
            yield
        finally:
            streams.remove(stream)
            if not streams:
                del self._streams[user, name]

    async def ack(self, user: str, name: str, asked: AckRequest) -> int:
        """Acknowledge or return the events of a request. Return how many deliveries are no longer pending."""
        streams = self._streams.get((user, name), [])
        if not streams:
            raise ProblemError(
                "not-attached",
                f"this broker serves no stream of the durable subscription {name!r}; send acknowledgements "
                "to the broker that serves the stream, before it ends",
            )
        if bool(asked.ids) + bool(asked.position) + bool(asked.nack) != 1:
            raise ProblemError(
                "bad-request",
                "send exactly one of: ids to acknowledge, a position up to which to acknowledge, or ids to "
                "return with nack",
            )
        if len(asked.ids) + len(asked.nack) > IDS_MAX:
            raise ProblemError("too-large", f"a request can acknowledge at most {IDS_MAX:,} ids")
        if asked.position:
            return sum([await stream.ack_until(_position(asked.position)) for stream in streams])
        wanted = asked.ids or asked.nack
        unknown = [each for each in wanted if not any(stream.holds(each) for stream in streams)]
        if asked.nack:
            done = sum([await stream.nack(wanted, asked.delay_s) for stream in streams])
        else:
            done = sum([await stream.ack(wanted) for stream in streams])
        if unknown and not done:
            raise ProblemError(
                "conflict",
                f"{unknown[0]!r} is not pending here: it was acknowledged before, or was reassigned to another member",
                ids=unknown,
            )
        return done


def _position(text: str) -> Position:
    try:
        return Position(text)
    except ValueError as error:
        raise ProblemError("bad-request", str(error)) from None
