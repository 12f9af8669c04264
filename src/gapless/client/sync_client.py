"""The same client for programs without an event loop: every call waits for its answer.

An event loop runs in a thread of its own, one for each client, and does what the asynchronous client does. Calls can be
made from any thread.
"""

from collections.abc import Iterable
from concurrent.futures import wait
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar, overload

from gapless.client import advertisement, client
from gapless.client.arguments import check_kind
from gapless.client.batches import iterator_over
from gapless.client.call_thread import CallThread
from gapless.client.client import REQUEST_S
from gapless.client.confirmations import Making
from gapless.client.connecting import CredentialsLike
from gapless.client.connecting import connect as connect_asynchronously
from gapless.client.feed import Feed
from gapless.client.loop_thread import LoopThread
from gapless.client.milestones import Milestones
from gapless.client.naming import REDELIVER_S
from gapless.client.positions import Since
from gapless.client.publications import EventLike, Payload, Publication
from gapless.client.publishing import TellLost
from gapless.client.standing import Standing
from gapless.client.subscription import OnFull
from gapless.client.sync_subscription import (
    BaseSubscription,
    Changes,
    ConfirmableEvent,
    ConfirmableSubscription,
    Requests,
    Subscription,
    TypedSubscription,
)
from gapless.errors import ClosedError
from gapless.events import Event, PublishedEvent
from gapless.names import AckMode, DurableInfo
from gapless.positions import Position
from gapless.protocol import Ready

__all__ = ["Advertisement", "Client", "connect"]

T = TypeVar("T")


class Advertisement:
    """What this client may publish. Made by `Client.advertise`."""

    def __init__(self, loop: LoopThread, inner: advertisement.Advertisement) -> None:
        self._loop = loop
        self._inner = inner
        self.name = inner.name
        self.filter = inner.filter

    def __repr__(self) -> str:
        return f"<Advertisement {self.name} of {self.filter!r}>"

    def close(self) -> None:
        """Take it back: nothing published from now on relies on it."""
        self._loop.run(self._inner.close())


class Client:
    """One client of the network. Made by `connect`."""

    def __init__(self, loop: LoopThread, inner: client.Client) -> None:
        self._loop = loop
        self._inner = inner
        inner._subscribing.making = Making(ConfirmableEvent, loop.run)
        self._is_closed = False
        self.name = inner.name
        self.network = inner.network
        self.protocol = inner.protocol

    def advertise(self, filter: str) -> Advertisement:  # noqa: A002 - the word for it
        """Say what you will publish. Returns when the network knows."""
        return Advertisement(self._loop, self._loop.run(self._inner.advertise(filter)))

    def unadvertise(self, advertisement: Advertisement) -> None:
        """Take an advertisement back."""
        check_kind("an advertisement", advertisement, Advertisement, "advertise()")
        self._loop.run(self._inner.unadvertise(advertisement._inner))

    @overload
    def subscribe(
        self,
        filter: str,
        *,
        since: Since | None = None,
        archive: Path | str | None = None,
        name: None = None,
        on_full: OnFull | None = None,
        queue: int = 10_000,
        ready: Ready = "whole",
    ) -> Subscription: ...

    @overload
    def subscribe(
        self,
        filter: str,
        *,
        name: str,
        confirm: AckMode = "auto",
        replace: bool = False,
        share: bool = False,
        redeliver_s: float = REDELIVER_S,
        on_full: OnFull | None = None,
        queue: int = 10_000,
    ) -> ConfirmableSubscription: ...

    @overload
    def subscribe(
        self,
        filter: str,
        *,
        type: type[T],
        since: Since | None = None,
        archive: Path | str | None = None,
        name: str | None = None,
        confirm: AckMode = "auto",
        replace: bool = False,
        share: bool = False,
        redeliver_s: float = REDELIVER_S,
        on_full: OnFull | None = None,
        queue: int = 10_000,
        ready: Ready = "whole",
    ) -> TypedSubscription[T]: ...

    def subscribe(
        self,
        filter: str,  # noqa: A002
        *,
        type: type[Any] | None = None,  # noqa: A002
        since: Since | None = None,
        archive: Path | str | None = None,
        name: str | None = None,
        confirm: AckMode = "auto",
        replace: bool = False,
        share: bool = False,
        redeliver_s: float = REDELIVER_S,
        on_full: OnFull | None = None,
        queue: int = 10_000,
        ready: Ready = "whole",
    ) -> Subscription | ConfirmableSubscription | TypedSubscription[Any]:
        """Ask for what matches. Every matching event whose publication begins after this has returned is delivered.

        The choices are those of the asynchronous client.
        """
        subscribe: Any = partial(
            self._inner.subscribe, filter, since=since, archive=archive, name=name, confirm=confirm, replace=replace,
            share=share, redeliver_s=redeliver_s, on_full=on_full, queue=queue, ready=ready,
        )  # fmt: skip
        if type is None:
            made = Subscription if name is None else ConfirmableSubscription
            return made(self._loop, self._loop.run(subscribe()))
        return TypedSubscription(self._loop, self._loop.run(subscribe(type=type)))

    @overload
    def read(
        self, filter: str, *, since: Since = "earliest", until: Since | None = None, archive: Path | str | None = None
    ) -> Subscription: ...

    @overload
    def read(
        self,
        filter: str,
        *,
        type: type[T],
        since: Since = "earliest",
        until: Since | None = None,
        archive: Path | str | None = None,
    ) -> TypedSubscription[T]: ...

    def read(
        self,
        filter: str,  # noqa: A002
        *,
        type: type[Any] | None = None,  # noqa: A002
        since: Since = "earliest",
        until: Since | None = None,
        archive: Path | str | None = None,
    ) -> Subscription | TypedSubscription[Any]:
        """What was published after one position and up to another, in causal order; then it ends.

        Without `until` that is everything that was published, and confirmed, before the call. What an `archive` holds
        is read there, and the rest from brokers.
        """
        read = partial(self._inner.read, filter, since=since, until=until, archive=archive)
        if type is None:
            return Subscription(self._loop, self._loop.run(read()))
        return TypedSubscription(self._loop, self._loop.run(read(type=type)))

    def named_subscriptions(self) -> list[DurableInfo]:
        """The named subscriptions of the network, by name: filter, position, how far behind, and who listens."""
        return self._loop.run(self._inner.named_subscriptions())

    def move_subscription(self, name: str, to: Since) -> None:
        """Let a named subscription go on after a position, written as `since`. Who listens to it is ended."""
        self._loop.run(self._inner.move_subscription(name, to))

    def end_subscription(self, name: str) -> None:
        """End a named subscription for good. Who listens to it is ended."""
        self._loop.run(self._inner.end_subscription(name))

    def position(self, at: Since = "now") -> Position:
        """The newest position: everything that was published, and confirmed, before this call lies up to it.

        With an age or a time, the position of that time. A broker answers; this machine's clock is not used.
        """
        return self._loop.run(self._inner.position(at))

    def milestones(self, *, since: Since = "earliest", until: Since | None = None) -> Milestones:
        """Positions between two others, about equally many events apart: where a range of history can be divided."""
        return self._loop.run(self._inner.milestones(since=since, until=until))

    def answer(
        self,
        filter: str,  # noqa: A002
        *,
        group: str | None = None,
        redeliver_s: float = REDELIVER_S,
        on_full: OnFull | None = None,
        queue: int = 10_000,
    ) -> Requests:
        """Ask for requests that match, to answer them. Returns when the starting cut is fixed.

        With a `group`, all who answer under that name share the requests, as with the asynchronous client.
        """
        answer = self._inner.answer(filter, group=group, redeliver_s=redeliver_s, on_full=on_full, queue=queue)
        return Requests(self._loop, self._loop.run(answer))

    @overload
    def request(
        self, attributes: EventLike, payload: Payload = b"", *,
        reply: str = "TRUE", timeout_s: float | None = REQUEST_S,
    ) -> Event: ...  # fmt: skip

    @overload
    def request(
        self, attributes: EventLike, payload: Payload = b"", *,
        type: type[T], reply: str = "TRUE", timeout_s: float | None = REQUEST_S,
    ) -> T: ...  # fmt: skip

    def request(
        self,
        attributes: EventLike,
        payload: Payload = b"",
        *,
        type: type[Any] | None = None,  # noqa: A002
        reply: str = "TRUE",
        timeout_s: float | None = REQUEST_S,
    ) -> Event | Any:
        """Publish a request, and return the first reply to it; a `NoReplyError` if none comes in time."""
        if type is None:
            return self._loop.run(self._inner.request(attributes, payload, reply=reply, timeout_s=timeout_s))
        return self._loop.run(self._inner.request(attributes, payload, type=type, reply=reply, timeout_s=timeout_s))

    def changes(self) -> Changes:
        """What becomes of the client's place in the network: connected, lost, moved; first, how it is now."""

        async def watch() -> Any:
            return self._inner.changes()

        return Changes(self._loop, self._loop.run(watch()))

    def unsubscribe(self, subscription: BaseSubscription[Any]) -> None:
        """End a subscription; returns when its ending cut is known."""
        check_kind("a subscription", subscription, BaseSubscription, "subscribe()")
        self._loop.run(self._inner.unsubscribe(subscription._inner))

    def publish(self, attributes: EventLike, payload: Payload = b"") -> PublishedEvent:
        """Publish an event. Returns when it is safe."""
        return self._loop.run(self._inner.publish(attributes, payload))

    def publish_many(self, events: Iterable[Publication]) -> int:
        """Publish events in order, as fast as the network takes them. Returns how many, when all are safe.

        Events leave as they come; the source may take its time, or wait for what this client receives.
        """
        remaining = iterator_over(events)
        feed = Feed(self._loop.loop, self._inner._publishing.batch_max)
        publishing = self._loop.start(self._inner._publishing.publish_fed(feed))
        publishing.add_done_callback(lambda _: feed.abandon())
        try:
            for item in remaining:
                if not feed.put(self._inner._publishing.check(item)):
                    break
            feed.end()
            return publishing.result()
        except Exception:
            feed.end(is_cut_short=True)
            wait([publishing])
            raise
        except BaseException:
            publishing.cancel()
            raise

    @property
    def lost_publications(self) -> list[tuple[int, int]]:
        """What this client published, was told to be safe, and is lost all the same, because more brokers failed than
        may: the first and last number of each range."""
        return list(self._inner.lost_publications)

    @property
    def on_publications_lost(self) -> TellLost | None:
        """Called with such ranges when they become known, in a thread of its own: it may wait, and make calls of this
        client. One call follows the other."""
        inner = self._inner.on_publications_lost
        return inner.function if isinstance(inner, CallThread) else None

    @on_publications_lost.setter
    def on_publications_lost(self, function: TellLost | None) -> None:
        self._inner.on_publications_lost = None if function is None else CallThread(function)

    @property
    def is_all_confirmed(self) -> bool:
        """Whether everything published so far is safe."""
        return self._inner.is_all_confirmed

    @property
    def confirmed(self) -> int:
        """Everything that it published up to this number is known to be safe."""
        return self._inner.confirmed

    @property
    def standing(self) -> Standing:
        """What another process has to know to go on as this client, should this one be no more."""
        return self._inner.standing

    @property
    def event_max(self) -> int:
        """How many bytes an event may have, attributes and payload together."""
        return self._inner.event_max

    @property
    def broker(self) -> str:
        """The broker that serves this client, or is asked to; empty if the protocol does not tell."""
        return self._inner.broker

    @property
    def addresses(self) -> dict[str, str]:
        """Where the brokers of the network are, by name, as the first of them told."""
        return self._inner.addresses

    @property
    def is_connected(self) -> bool:
        """Whether there is a connection to a broker now."""
        return self._inner.is_connected

    @property
    def hold_up(self) -> str:
        """For what the network waits, if nothing published has become safe for seconds; empty if all goes well."""
        return self._inner.hold_up

    def close(self, *, leave: bool = True) -> None:
        """End all subscriptions, take all advertisements back, and disconnect."""
        if not self._is_closed:
            self._is_closed = True
            try:
                with suppress(ClosedError):  # its loop has ended before
                    self._loop.run(self._inner.close(leave=leave))
            finally:
                self._loop.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def connect(
    url: str, *, name: str = "client", timeout_s: float = 5.0, trace: str | Path | None = None,
    credentials: CredentialsLike = None,
) -> Client:  # fmt: skip
    """Connect to a network by the addresses of one or more of its brokers: `gapless://host:port,host:port`."""
    loop = LoopThread()

    async def open_client() -> client.Client:
        return await connect_asynchronously(url, name=name, timeout_s=timeout_s, trace=trace, credentials=credentials)

    try:
        return Client(loop, loop.run(open_client()))
    except BaseException:
        loop.stop()
        raise
