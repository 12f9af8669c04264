"""The calls of a client that send events: advertisements, publications, requests and replies."""

from collections.abc import AsyncIterable, Iterable
from typing import Any, TypeVar, overload

from gapless.client.advertisement import Advertisement
from gapless.client.arguments import check_kind, check_timeout
from gapless.client.client_base import ClientBase
from gapless.client.publications import Checked, EventLike, Payload, Publication
from gapless.client.publishing import LostCallback
from gapless.client.reader import Reader, decoded
from gapless.client.requests import Replies, reply_parts
from gapless.client.subscribing import check_filter
from gapless.events import Event, PublishedEvent

__all__ = ["REQUEST_S", "PublishingCalls"]

REQUEST_S = 10.0
"""The default timeout of a request."""

T = TypeVar("T")


class PublishingCalls(ClientBase):
    """Base class of `Client`: the calls that publish."""

    def __init__(self, *arguments: Any, **choices: Any) -> None:
        super().__init__(*arguments, **choices)
        self._replies = Replies(self._asker(), self._publishing)

    def _asker(self) -> Any:
        """Return this client, typed as one that can also subscribe, to receive replies."""
        return self

    async def advertise(self, filter: str) -> Advertisement:
        """Declare the events that this client will publish. Return when the network knows, so that publications are not
        delayed.

        Parameters:
            filter: matches all events that you will publish under this advertisement.

        Example: `await client.advertise("topic = 'price'")`
        """
        check_filter(filter)
        self._connection_manager.check_open()
        advertisement = Advertisement(self, self._connection_manager.new_name("a"), filter)
        await self._connection_manager.registrations.advertise(advertisement)
        return advertisement

    async def unadvertise(self, advertisement: Advertisement) -> None:
        """Withdraw an advertisement, as `advertisement.close()` does.

        Parameters:
            advertisement: the result of `advertise`.

        Example: `await client.unadvertise(prices)`
        """
        check_kind("an advertisement", advertisement, Advertisement, "advertise()")
        self._connection_manager.registrations.unadvertise(advertisement)

    async def publish(self, attributes: EventLike, payload: Payload = b"") -> PublishedEvent:
        """Publish an event. Return when it is confirmed: it reaches every matching subscriber even if up to f adjacent
        brokers fail.

        The result identifies the event and equals it, but has no position: the `Event` of a subscription has one.

        Parameters:
            attributes: strings, integers, floats and booleans by name, or values converted to them; or a msgspec
                struct, a dataclass or a pydantic model with such fields.
            payload: any bytes, which filters do not see; if the client has a codec, any value that it can encode.

        Example: `await client.publish({"topic": "price", "amount": 7}, b"any bytes")`
        """
        if self._publishing.middleware:
            with self._publishing.prepared((attributes, payload)) as checked:
                return await self._publish(checked)
        return await self._publish(self._publishing.check((attributes, payload)))

    async def _publish(self, checked: Checked) -> PublishedEvent:
        event = await self._publishing.publish(checked)
        await self._publishing.wait_until_safe(event)
        return event

    def publish_nowait(self, attributes: EventLike, payload: Payload = b"") -> PublishedEvent:
        """Publish an event without waiting until it is confirmed; `flush` waits for all of them.

        Raises a `WindowFullError`, and publishes nothing, if the maximum number of events are waiting to be confirmed.

        Parameters:
            attributes: as for `publish`.
            payload: as for `publish`.

        Example: `client.publish_nowait({"topic": "price", "amount": 7})`
        """
        return self._publishing.publish_now(self._publishing.check((attributes, payload)))

    async def flush(self) -> None:
        """Wait until everything published so far is confirmed.

        Example: `await client.flush()`
        """
        self._connection_manager.check_open()
        await self._publishing.wait_until_safe()

    async def publish_many(self, events: Iterable[Publication] | AsyncIterable[Publication]) -> int:
        """Publish events in order, as fast as the network accepts them. Return their number when all are confirmed.

        Events are sent as they are produced. An async iterable can be slow; a slow ordinary one blocks the event loop,
        which is logged. If one event is invalid, or the source fails, the events before it are published; if one was
        not advertised, so is the rest of its batch of at most 256.

        Parameters:
            events: attributes, or pairs of attributes and payload.

        Example: `await client.publish_many({"topic": "price", "amount": n} for n in range(1000))`
        """
        return await self._publishing.publish_many(events)

    @overload
    async def request(
        self, attributes: EventLike, payload: Payload = b"", *,
        reply: str = "TRUE", timeout_s: float | None = REQUEST_S,
    ) -> Event: ...  # fmt: skip

    @overload
    async def request(
        self, attributes: EventLike, payload: Payload = b"", *,
        type: type[T], reply: str = "TRUE", timeout_s: float | None = REQUEST_S,
    ) -> T: ...  # fmt: skip

    async def request(
        self,
        attributes: EventLike,
        payload: Payload = b"",
        *,
        type: type[Any] | None = None,
        reply: str = "TRUE",
        timeout_s: float | None = REQUEST_S,
    ) -> Event | Any:
        """Publish a request, and return the first reply to it.

        If no reply arrives in time, a `NoReplyError` says whether the request is confirmed, and so reaches all clients
        that answer such requests. If the handler of the request failed, a `RequestFailedError` carries the error.

        Parameters:
            attributes: as for `publish`.
            payload: as for `publish`.
            type: return the reply as an instance of this type.
            reply: a filter that replies match; the narrower it is, the fewer brokers have to know it.
            timeout_s: how long to wait; None means no limit. It travels with the request: the handler is not called,
                or is cancelled, when the timeout expires.

        Example: `quote = await client.request({"topic": "ask", "symbol": "ACME"}, timeout_s=2)`
        """
        check_filter(reply)
        reader = None if type is None else Reader(type, codec=self._publishing.codec)
        event = await self._replies.ask(attributes, payload, reply, check_timeout(timeout_s))
        return event if reader is None else reader.read(event)

    async def reply(self, request: Event, attributes: EventLike, payload: Payload = b"") -> PublishedEvent:
        """Publish the reply to a request that a subscription delivered. Return when it is confirmed.

        `answer` does this with its handler's result. A reply must be advertised like every other event; the first reply
        to a request counts.

        Parameters:
            request: an event that was published with `request`.
            attributes: as for `publish`.
            payload: as for `publish`.

        Example: `await client.reply(event, {"topic": "quote", "price": 7.5})`
        """
        check_kind("a request", request, Event, "a subscription")
        return await self.publish(*reply_parts(request, attributes, payload, self._publishing.codec))

    def decode(self, event: Event, type: type[T]) -> T:
        """Return the payload of an event, decoded by this client's codec and converted to the given type.

        Raises a `ConversionError` if the payload cannot be decoded, or does not fit the type.

        Parameters:
            event: a delivered event.
            type: a msgspec struct, a dataclass, or any type that msgspec supports, such as `dict` or `list[int]`.

        Example: `lines = client.decode(order, list[Line])`
        """
        found: T = decoded(event, self._publishing.codec, type)
        return found

    # ---- state --------------------------------------------------------------------------------------------

    @property
    def is_all_confirmed(self) -> bool:
        """Whether everything published so far is confirmed."""
        return self._publishing.is_all_confirmed

    @property
    def confirmed(self) -> int:
        """The number up to which all events that this client published are confirmed."""
        return self._publishing.unsafe.confirmed

    @property
    def lost_publications(self) -> list[tuple[int, int]]:
        """The first and last number of each range of this client's events that were confirmed and are nevertheless
        lost, because more than f adjacent brokers failed.
        """
        return self._publishing.lost

    @property
    def on_publications_lost(self) -> LostCallback | None:
        """A function that is called with ranges of lost publications when they become known. It runs in the event loop
        and must not block.
        """
        return self._publishing.lost_callback

    @on_publications_lost.setter
    def on_publications_lost(self, function: LostCallback | None) -> None:
        self._publishing.lost_callback = function

    @property
    def event_max(self) -> int:
        """The maximum size of an event in bytes, attributes and payload together."""
        return self._publishing.event_max
