"""The same client for programs without an event loop: every call waits for its answer.

An event loop runs in a thread of its own, one for each client, and does what the asynchronous client does. Calls can be
made from any thread. Events are fetched in batches, so a loop over a subscription does not cross threads for each.
"""

import asyncio
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import wait
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from gapless.client import client as asynchronous
from gapless.client.batches import iterator_over
from gapless.client.connecting import connect as connect_asynchronously
from gapless.client.feed import Feed
from gapless.client.loop_thread import LoopThread
from gapless.client.publications import Payload, Publication
from gapless.client.subscription import OnFull
from gapless.client.subscription import Subscription as AsyncSubscription
from gapless.errors import ClosedError
from gapless.events import Event

__all__ = ["Advertisement", "Client", "Subscription", "connect"]

FETCH = 256


class Advertisement:
    """What this client may publish. Made by `Client.advertise`."""

    def __init__(self, loop: LoopThread, inner: asynchronous.Advertisement) -> None:
        self._loop = loop
        self._inner = inner
        self.name = inner.name
        self.filter = inner.filter

    def close(self) -> None:
        """Take it back: nothing published from now on relies on it."""
        self._loop.run(self._inner.close())


class Subscription:
    """Iterate over it: `for event in subscription`. Made by `Client.subscribe`."""

    def __init__(self, loop: LoopThread, inner: AsyncSubscription) -> None:
        self._loop = loop
        self._inner = inner
        self._fetched: deque[Event] = deque()
        self.name = inner.name
        self.filter = inner.filter

    @property
    def cuts(self) -> dict[str, int]:
        """The starting cut: for each publisher, the number of the first event that counts."""
        return dict(self._inner.cuts)

    @property
    def last(self) -> dict[str, int] | None:
        """The ending cut, once it is over."""
        return self._inner.last

    def __iter__(self) -> Iterator[Event]:
        return self

    def __next__(self) -> Event:
        while True:
            with suppress(IndexError):  # another thread may have taken it
                return self._fetched.popleft()
            if not self._loop.run(self._fetch(FETCH, None)):
                raise StopIteration

    def take(self, most: int = FETCH, *, timeout_s: float | None = None) -> list[Event]:
        """The next events, at least one and as many as are there; empty when the subscription is over.

        With a timeout, a `TimeoutError` if none comes in time.
        """
        while True:
            events: list[Event] = []
            with suppress(IndexError):
                while len(events) < most:
                    events.append(self._fetched.popleft())
            if events or not self._loop.run(self._fetch(most, timeout_s)):
                return events

    async def _fetch(self, most: int, timeout_s: float | None) -> int:
        """Lay events in where the caller takes them: a caller that is interrupted meanwhile loses none."""
        events = await asyncio.wait_for(self._inner.take(most), timeout_s)
        self._fetched.extend(events)
        return len(events)

    def close(self) -> None:
        """End it, with an exact ending cut. What was delivered before can still be taken."""
        self._loop.run(self._inner.close())


class Client:
    """One client of the network. Made by `connect`."""

    def __init__(self, loop: LoopThread, inner: asynchronous.Client) -> None:
        self._loop = loop
        self._inner = inner
        self._is_closed = False
        self.name = inner.name
        self.network = inner.network
        self.protocol = inner.protocol

    def advertise(self, filter: str) -> Advertisement:  # noqa: A002 - the word for it
        """Say what you will publish. Returns when the network knows."""
        return Advertisement(self._loop, self._loop.run(self._inner.advertise(filter)))

    def subscribe(self, filter: str, *, on_full: OnFull | None = None, queue: int = 10_000) -> Subscription:  # noqa: A002
        """Ask for what matches. Returns when the starting cut is fixed: from there on, nothing is missed."""
        inner = self._loop.run(self._inner.subscribe(filter, on_full=on_full, queue=queue))
        return Subscription(self._loop, inner)

    def publish(self, attributes: Mapping[str, Any], payload: Payload = b"") -> Event:
        """Publish an event. Returns when it is safe."""
        return self._loop.run(self._inner.publish(attributes, payload))

    def publish_many(self, events: Iterable[Publication]) -> int:
        """Publish events in order, as fast as the network takes them. Returns how many, when all are safe.

        Events leave as they come; the source may take its time, or wait for what this client receives.
        """
        remaining = iterator_over(events)
        feed = Feed(self._loop.loop, self._inner._batch_max)
        publishing = self._loop.start(self._inner._publish_fed(feed))
        publishing.add_done_callback(lambda _: feed.abandon())
        try:
            for item in remaining:
                if not feed.put(self._inner._check(item)):
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
    def broker(self) -> str:
        """The broker that serves this client, or is asked to; empty if the protocol does not tell."""
        return self._inner.broker

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


def connect(url: str, *, name: str = "client", timeout_s: float = 5.0, trace: str | Path | None = None) -> Client:
    """Connect to a network by the addresses of one or more of its brokers: `gapless://host:port,host:port`."""
    loop = LoopThread()

    async def open_client() -> asynchronous.Client:
        return await connect_asynchronously(url, name=name, timeout_s=timeout_s, trace=trace)

    try:
        return Client(loop, loop.run(open_client()))
    except BaseException:
        loop.stop()
        raise
