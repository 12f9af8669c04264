"""The same client for programs without an event loop: every call waits for its answer.

An event loop runs in a thread of its own, one for each client, and does what the asynchronous client does. Calls can be
made from any thread. Events are fetched in batches, so a loop over a subscription does not cross threads for each.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Coroutine, Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from gapless.client import client as asynchronous
from gapless.client.subscription import OnFull
from gapless.client.subscription import Subscription as AsyncSubscription
from gapless.errors import ClosedError
from gapless.events import Event
from gapless.runtime.event_loop import new_event_loop

__all__ = ["Advertisement", "Client", "Subscription", "connect"]

FETCH = 256

T = TypeVar("T")


class _Loop:
    """An event loop in a thread."""

    def __init__(self) -> None:
        self._loop = new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="gapless", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T], timeout_s: float | None = None) -> T:
        """Let the loop do it, and wait."""
        if self._loop.is_closed():
            work.close()
            raise ClosedError("the client is closed")
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result(timeout_s)
        except BaseException:
            future.cancel()
            raise

    def stop(self) -> None:
        """End the thread."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class Advertisement:
    """What this client may publish. Made by `Client.advertise`."""

    def __init__(self, loop: _Loop, inner: asynchronous.Advertisement) -> None:
        self._loop = loop
        self._inner = inner
        self.name = inner.name
        self.filter = inner.filter

    def close(self) -> None:
        """Take it back: nothing published from now on relies on it."""
        self._loop.run(self._inner.close())


class Subscription:
    """Iterate over it: `for event in subscription`. Made by `Client.subscribe`."""

    def __init__(self, loop: _Loop, inner: AsyncSubscription) -> None:
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
        if not self._fetched:
            self._fetched.extend(self._loop.run(self._inner.take(FETCH)))
        if not self._fetched:
            raise StopIteration
        return self._fetched.popleft()

    def take(self, most: int = FETCH, *, timeout_s: float | None = None) -> list[Event]:
        """The next events, at least one and as many as are there; empty when the subscription is over.

        With a timeout, a `TimeoutError` if none comes in time.
        """
        if self._fetched:
            return [self._fetched.popleft() for _ in range(min(most, len(self._fetched)))]
        return self._loop.run(asyncio.wait_for(self._inner.take(most), timeout_s))

    def close(self) -> None:
        """End it, with an exact ending cut. What was delivered before can still be taken."""
        self._loop.run(self._inner.close())


class Client:
    """One client of the network. Made by `connect`."""

    def __init__(self, loop: _Loop, inner: asynchronous.Client) -> None:
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

    def publish(self, attributes: Mapping[str, Any], payload: bytes = b"") -> Event:
        """Publish an event. Returns when it is safe."""
        return self._loop.run(self._inner.publish(attributes, payload))

    def publish_many(self, events: Iterable[asynchronous.Publication]) -> int:
        """Publish events in order, as fast as the network takes them. Returns how many, when all are safe."""
        return self._loop.run(self._inner.publish_many(events))

    @property
    def broker(self) -> str:
        """The broker that serves this client, or is asked to; empty if the protocol does not tell."""
        return self._inner.broker

    @property
    def is_connected(self) -> bool:
        """Whether there is a connection to a broker now."""
        return self._inner.is_connected

    def close(self, *, leave: bool = True) -> None:
        """End all subscriptions, take all advertisements back, and disconnect."""
        if not self._is_closed:
            self._is_closed = True
            try:
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
    loop = _Loop()

    async def open_client() -> asynchronous.Client:
        return await asynchronous.connect(url, name=name, timeout_s=timeout_s, trace=trace)

    try:
        return Client(loop, loop.run(open_client()))
    except BaseException:
        loop.stop()
        raise
