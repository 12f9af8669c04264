"""Generated from `gapless.client.publishing_calls` by `scripts/generate_sync_client.py`. Edit that file instead."""

from typing import Any, TypeVar, overload

from gapless.client import publishing_calls
from gapless.client.loop_thread import LoopThread
from gapless.client.publications import EventLike, Payload
from gapless.client.publishing_calls import REQUEST_S
from gapless.client.sync_advertisement import Advertisement
from gapless.events import Event, PublishedEvent

__all__ = ["PublishingCalls"]
T = TypeVar("T")


class PublishingCalls:
    """The sending side of `Client`."""

    def __init__(self, loop: LoopThread, inner: publishing_calls.PublishingCalls) -> None:
        self._loop = loop
        self._inner = inner

    def advertise(self, filter: str) -> Advertisement:
        """Announce what you will publish. Returns when the network knows it, so that publications are not held back.

        Parameters:
            filter: matches all that you will publish under this advertisement.

        Example: `client.advertise("topic = 'price'")`
        """
        call: Any = self._inner.advertise
        return Advertisement(self._loop, self._loop.run(call(filter)))

    def unadvertise(self, advertisement: Advertisement) -> None:
        """Withdraw an advertisement. `advertisement.close()` does the same.

        Parameters:
            advertisement: what `advertise` returned.

        Example: `client.unadvertise(prices)`
        """
        call: Any = self._inner.unadvertise
        self._loop.run(call(getattr(advertisement, "_inner", advertisement)))

    def publish(self, attributes: EventLike, payload: Payload = b"") -> PublishedEvent:
        """Publish an event. Returns when it is confirmed: it reaches every matching subscriber, whatever fails.

        The result names the event and equals it, but has no position: the `Event` of a subscription has one.

        Parameters:
            attributes: strings, integers, floats and booleans by name, and what is converted to them; or a msgspec
                struct, a dataclass or a pydantic model with such fields.
            payload: any bytes, which filters do not see; if the client has a codec, anything that this can encode.

        Example: `client.publish({"topic": "price", "amount": 7}, b"any bytes")`
        """
        call: Any = self._inner.publish
        found: PublishedEvent = self._loop.run(call(attributes, payload))
        return found

    def flush(self) -> None:
        """Return when everything published so far is confirmed.

        Example: `client.flush()`
        """
        call: Any = self._inner.flush
        self._loop.run(call())

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

        If no reply comes in time, a `NoReplyError` says whether the request is confirmed, and so reaches everyone who
        answers such requests. If the handler of the request failed, a `RequestFailedError` has its error.

        Parameters:
            attributes: as for `publish`.
            payload: as for `publish`.
            type: return the reply as an instance of this type.
            reply: a filter that replies match; the narrower it is, the fewer brokers have to know it.
            timeout_s: how long to wait. It travels with the request: its handler is not called, or is cancelled, when
                the time is over. None waits without a limit.

        Example: `quote = client.request({"topic": "ask", "symbol": "ACME"}, timeout_s=2)`
        """
        call: Any = self._inner.request
        found: Event | Any = self._loop.run(call(attributes, payload, type=type, reply=reply, timeout_s=timeout_s))
        return found

    def reply(self, request: Event, attributes: EventLike, payload: Payload = b"") -> PublishedEvent:
        """Publish the reply to a request that a subscription delivered. Returns when it is confirmed.

        `answer` does this with what its handler returns. A reply has to be advertised like all that is published; the
        first reply to a request counts.

        Parameters:
            request: an event that was published with `request`.
            attributes: as for `publish`.
            payload: as for `publish`.

        Example: `client.reply(event, {"topic": "quote", "price": 7.5})`
        """
        call: Any = self._inner.reply
        found: PublishedEvent = self._loop.run(call(request, attributes, payload))
        return found

    def decode(self, event: Event, type: type[T]) -> T:
        """Return the payload of an event as a value, by the codec of this client.

        Raises a `ConversionError` if the payload is none of its values, or does not fit the type.

        Parameters:
            event: an event that was delivered.
            type: a msgspec struct, a dataclass, or any type that msgspec knows, such as `dict` or `list[int]`.

        Example: `lines = client.decode(order, list[Line])`
        """
        call: Any = self._inner.decode
        found: T = call(event, type)
        return found

    @property
    def is_all_confirmed(self) -> bool:
        """Whether everything published so far is confirmed."""
        return self._inner.is_all_confirmed

    @property
    def confirmed(self) -> int:
        """Everything that this client published up to this number is confirmed."""
        return self._inner.confirmed

    @property
    def lost_publications(self) -> list[tuple[int, int]]:
        """The first and last number of each range of this client's events that were confirmed and are lost all the
        same, because more than f neighbouring brokers failed."""
        return self._inner.lost_publications

    @property
    def event_max(self) -> int:
        """How many bytes an event may have, attributes and payload together."""
        return self._inner.event_max
