"""Generated from `gapless.client.publishing_calls` by `scripts/generate_sync_client.py`. Edit that file instead."""

from collections.abc import Iterable
from typing import Any, TypeVar, overload

from gapless.client.caller_side import CallerSide
from gapless.client.publications import EventLike, Payload, Publication
from gapless.client.publishing import LostCallback
from gapless.client.publishing_calls import REQUEST_S
from gapless.client.sync_advertisement import Advertisement
from gapless.events import Event, PublishedEvent

__all__ = ["PublishingCalls"]
T = TypeVar("T")


class PublishingCalls(CallerSide):
    """Base class of `Client`: the calls that publish."""

    @property
    def name(self) -> str:
        """The name of the client, unique in the network. Its events name it as their publisher."""
        found: str = self._inner.name
        return found

    @property
    def network(self) -> str:
        """The name of the network."""
        found: str = self._inner.network
        return found

    @property
    def protocol(self) -> str:
        """The name of the protocol that the brokers run."""
        found: str = self._inner.protocol
        return found

    def advertise(self, filter: str) -> Advertisement:
        """Declare the events that this client will publish. Return when the network knows, so that publications are not
        delayed.

        Parameters:
            filter: matches all events that you will publish under this advertisement.

        Example: `client.advertise("topic = 'price'")`
        """
        return Advertisement(self._loop, self._loop.run(self._inner.advertise(filter)))

    def unadvertise(self, advertisement: Advertisement) -> None:
        """Withdraw an advertisement, as `advertisement.close()` does.

        Parameters:
            advertisement: the result of `advertise`.

        Example: `client.unadvertise(prices)`
        """
        self._loop.run(self._inner.unadvertise(getattr(advertisement, "_inner", advertisement)))

    def publish(self, attributes: EventLike, payload: Payload = b"") -> PublishedEvent:
        """Publish an event. Return when it is confirmed: it reaches every matching subscriber even if up to f adjacent
        brokers fail.

        The result identifies the event and equals it, but has no position: the `Event` of a subscription has one.

        Parameters:
            attributes: strings, integers, floats and booleans by name, or values converted to them; or a msgspec
                struct, a dataclass or a pydantic model with such fields.
            payload: any bytes, which filters do not see; if the client has a codec, any value that it can encode.

        Example: `client.publish({"topic": "price", "amount": 7}, b"any bytes")`
        """
        found: PublishedEvent = self._loop.run(self._inner.publish(attributes, payload))
        return found

    def publish_nowait(self, attributes: EventLike, payload: Payload = b"") -> PublishedEvent:
        """Publish an event without waiting until it is confirmed; `flush` waits for all of them.

        Raises a `WindowFullError`, and publishes nothing, if the maximum number of events are waiting to be confirmed.

        Parameters:
            attributes: as for `publish`.
            payload: as for `publish`.

        Example: `client.publish_nowait({"topic": "price", "amount": 7})`
        """
        found: PublishedEvent = self._loop.call(lambda: self._inner.publish_nowait(attributes, payload))
        return found

    def flush(self) -> None:
        """Wait until everything published so far is confirmed.

        Example: `client.flush()`
        """
        self._loop.run(self._inner.flush())

    def publish_many(self, events: Iterable[Publication]) -> int:
        """Publish events in order, as fast as the network accepts them. Return their number when all are confirmed.

        Events are sent as they are produced. The source runs in your thread, and can wait for events that this client
        receives. If one event is invalid, or the source fails, the events before it are published; if one was not
        advertised, so is the rest of its batch of at most 256.

        Parameters:
            events: attributes, or pairs of attributes and payload.

        Example: `client.publish_many({"topic": "price", "amount": n} for n in range(1000))`
        """
        return self._publish_many(events)

    @overload
    def request(
        self, attributes: EventLike, payload: Payload = b"", *, reply: str = "TRUE", timeout_s: float | None = REQUEST_S
    ) -> Event: ...

    @overload
    def request(
        self,
        attributes: EventLike,
        payload: Payload = b"",
        *,
        type: type[T],
        reply: str = "TRUE",
        timeout_s: float | None = REQUEST_S,
    ) -> T: ...

    def request(
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

        Example: `quote = client.request({"topic": "ask", "symbol": "ACME"}, timeout_s=2)`
        """
        found: Event | Any = self._loop.run(
            self._inner.request(attributes, payload, type=type, reply=reply, timeout_s=timeout_s)
        )
        return found

    def reply(self, request: Event, attributes: EventLike, payload: Payload = b"") -> PublishedEvent:
        """Publish the reply to a request that a subscription delivered. Return when it is confirmed.

        `answer` does this with its handler's result. A reply must be advertised like every other event; the first reply
        to a request counts.

        Parameters:
            request: an event that was published with `request`.
            attributes: as for `publish`.
            payload: as for `publish`.

        Example: `client.reply(event, {"topic": "quote", "price": 7.5})`
        """
        found: PublishedEvent = self._loop.run(self._inner.reply(request, attributes, payload))
        return found

    def decode(self, event: Event, type: type[T]) -> T:
        """Return the payload of an event, decoded by this client's codec and converted to the given type.

        Raises a `ConversionError` if the payload cannot be decoded, or does not fit the type.

        Parameters:
            event: a delivered event.
            type: a msgspec struct, a dataclass, or any type that msgspec supports, such as `dict` or `list[int]`.

        Example: `lines = client.decode(order, list[Line])`
        """
        found: T = self._inner.decode(event, type)
        return found

    @property
    def is_all_confirmed(self) -> bool:
        """Whether everything published so far is confirmed."""
        found: bool = self._inner.is_all_confirmed
        return found

    @property
    def confirmed(self) -> int:
        """The number up to which all events that this client published are confirmed."""
        found: int = self._inner.confirmed
        return found

    @property
    def lost_publications(self) -> list[tuple[int, int]]:
        """The first and last number of each range of this client's events that were confirmed and are nevertheless
        lost, because more than f adjacent brokers failed.
        """
        found: list[tuple[int, int]] = list(self._inner.lost_publications)
        return found

    @property
    def on_publications_lost(self) -> LostCallback | None:
        """A function that is called with ranges of lost publications when they become known. It runs in its own thread:
        it can block, and make calls of this client.
        """
        return self._on_publications_lost()

    @on_publications_lost.setter
    def on_publications_lost(self, function: LostCallback | None) -> None:
        self._set_on_publications_lost(function)

    @property
    def event_max(self) -> int:
        """The maximum size of an event in bytes, attributes and payload together."""
        found: int = self._inner.event_max
        return found
