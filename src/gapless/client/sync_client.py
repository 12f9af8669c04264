"""The same client for programs without an event loop: every call waits for its answer.

An event loop runs in a thread of its own, one for each client, and does what the asynchronous client does. Calls can be
made from any thread. Most of them are generated from the asynchronous ones (`scripts/generate_sync_client.py`); here is
what has a part in the thread of its caller.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from gapless.client import answering, client
from gapless.client.acks import Making
from gapless.client.answering import Answer
from gapless.client.batches import iterator_over
from gapless.client.call_thread import CallThread
from gapless.client.codecs import CodecLike
from gapless.client.connecting import CredentialsLike
from gapless.client.connecting import connect as connect_asynchronously
from gapless.client.durables import REDELIVER_S
from gapless.client.feed import Feed
from gapless.client.identity import Identity
from gapless.client.loop_thread import LoopThread
from gapless.client.middleware import Middleware
from gapless.client.publications import EventLike, Payload, Publication
from gapless.client.publishing import TellLost
from gapless.client.sync_admin import Admin
from gapless.client.sync_publishing_calls import PublishingCalls
from gapless.client.sync_subscribing_calls import SubscribingCalls
from gapless.client.sync_subscription import ConnectionChanges, DurableEvent
from gapless.errors import ClosedError
from gapless.events import Event, PublishedEvent

__all__ = ["Answering", "Client", "connect"]


class Answering:
    """Calls a handler with each request, in threads of its own. Made by `Client.answer`.

    It answers until it is closed; use it in `with`, or call `wait()`.
    """

    def __init__(self, loop: LoopThread, inner: answering.Answering, threads: ThreadPoolExecutor) -> None:
        self._loop = loop
        self._inner = inner
        self._threads = threads
        self.filter: str = inner.filter
        self.name: str = inner.name

    def __repr__(self) -> str:
        return repr(self._inner)

    def wait(self) -> None:
        """Return when it was closed; an error says why the network ended it."""
        self._loop.run(self._inner.wait())

    def close(self) -> None:
        """Stop answering. Requests whose handler is running stay unfinished: in a group, another worker gets them."""
        self._loop.run(self._inner.close())
        self._threads.shutdown(wait=False, cancel_futures=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Client(SubscribingCalls, PublishingCalls):
    """One client of a network. Made by `connect`.

    Calls can be made at any time and from any thread; they wait for a broker where none is connected.

    Example: `with gapless.sync.connect("gapless://127.0.0.1:7400") as client:`
    """

    def __init__(self, loop: LoopThread, inner: client.Client) -> None:
        SubscribingCalls.__init__(self, loop, inner)
        self._inner: client.Client = inner
        inner._subscribing.making = Making(DurableEvent, loop.run)
        self._is_closed = False
        self.name: str = inner.name
        self.network: str = inner.network
        self.protocol: str = inner.protocol
        self.admin = Admin(loop, inner.admin)
        """Lists, moves and deletes durable subscriptions, and ends clients."""

    def __repr__(self) -> str:
        return repr(self._inner)

    def answer(
        self,
        filter: str,
        handler: Callable[[Event], Answer],
        *,
        group: str | None = None,
        concurrency: int = 1,
        redeliver_s: float = REDELIVER_S,
        max_pending: int | None = None,
    ) -> Answering:
        """Answer requests that match a filter: call a handler with each, in a thread, and publish what it returns as
        the reply.

        If the handler raises, the caller gets a `RequestFailedError` with the text. The reply of a handler that is
        still running when its caller stops waiting is dropped.

        Parameters:
            filter: which requests.
            handler: a function of the request. It returns the attributes of the reply, or attributes and a payload, or
                None for no reply.
            group: share the requests with all who answer with the same group, a durable subscription of this name: each
                goes to one of them. Requests that come while no worker is there wait for the next.
            concurrency: how many requests are handled at the same time, each in a thread.
            redeliver_s: in a group, redeliver a request to another worker when it is not finished for so long.
            max_pending: as for `subscribe`.

        Example: `with client.answer("topic = 'ask'", price, group="quotes") as answering:`
        """
        threads = ThreadPoolExecutor(max(1, concurrency), "gapless-answer")

        async def handle(request: Event) -> Answer:
            return await asyncio.get_running_loop().run_in_executor(threads, handler, request)

        opening = self._inner.answer(
            filter, handle if callable(handler) else handler, group=group, concurrency=concurrency,
            redeliver_s=redeliver_s, max_pending=max_pending,
        )  # fmt: skip
        return Answering(self._loop, self._loop.run(opening), threads)

    def connection_changes(self) -> ConnectionChanges:
        """Return an iterator over the changes of this client's connection; the first is the current state.

        Example: `for change in client.connection_changes(): print(change.kind, change.broker)`
        """

        async def watch() -> Any:
            return self._inner.connection_changes()

        return ConnectionChanges(self._loop, self._loop.run(watch()))

    def publish_nowait(self, attributes: EventLike, payload: Payload = b"") -> PublishedEvent:
        """Publish an event without waiting until it is confirmed; `flush` waits for all of them.

        A bounded number of events may wait to be confirmed. If so many do, a `WindowFullError` is raised, and nothing
        is published.

        Parameters:
            attributes: as for `publish`.
            payload: as for `publish`.

        Example: `client.publish_nowait({"topic": "price", "amount": 7})`
        """

        async def publish() -> PublishedEvent:
            return self._inner.publish_nowait(attributes, payload)

        return self._loop.run(publish())

    def publish_many(self, events: Iterable[Publication]) -> int:
        """Publish events in order, as fast as the network takes them. Returns how many, when all are confirmed.

        Events are sent as they are produced; the source runs in your thread, and may wait for what this client
        receives.

        Parameters:
            events: attributes, or pairs of attributes and payload.

        Example: `client.publish_many({"topic": "price", "amount": n} for n in range(1000))`
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
    def on_publications_lost(self) -> TellLost | None:
        """A function that is called with such ranges when they become known, in a thread of its own: it may block, and
        make calls of this client. One call follows the other."""
        inner = self._inner.on_publications_lost
        return inner.function if isinstance(inner, CallThread) else None

    @on_publications_lost.setter
    def on_publications_lost(self, function: TellLost | None) -> None:
        self._inner.on_publications_lost = None if function is None else CallThread(function)

    @property
    def identity(self) -> Identity:
        """The state that another process needs to take over this client's identity."""
        return self._inner.identity

    @property
    def broker(self) -> str:
        """The broker that serves this client, or is asked to; empty if the protocol does not tell."""
        return self._inner.broker

    @property
    def addresses(self) -> dict[str, str]:
        """The addresses of the network's brokers by name, as the first of them told."""
        return self._inner.addresses

    @property
    def is_connected(self) -> bool:
        """Whether a broker is connected now."""
        return self._inner.is_connected

    @property
    def blocked_reason(self) -> str:
        """What the brokers wait for, and for how long, if this client's publications wait and none has been confirmed
        for seconds. Empty otherwise, and if the protocol confirms nothing."""
        return self._inner.blocked_reason

    def close(self, *, leave: bool = True) -> None:
        """End all subscriptions, withdraw all advertisements, and disconnect.

        Parameters:
            leave: False only disconnects; brokers keep the session for a while, as if the client were away.

        Example: `client.close()`
        """
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
    url: str | None = None, *, name: str = "client", timeout_s: float = 5.0, trace: str | Path | None = None,
    credentials: CredentialsLike = None, codec: CodecLike = None, middleware: Sequence[Middleware] = (),
) -> Client:  # fmt: skip
    """Connect to a network.

    Parameters:
        url: the addresses of one or more brokers, `gapless://host:port,host:port`, or `gapless+tls://…` with TLS.
            Without it, the environment variable `GAPLESS_URL` has the URL, and `GAPLESS_CREDENTIALS` the path of the
            credentials.
        name: the first part of the client's name, for logs and traces; what makes it unique is appended.
        timeout_s: how long to look for a broker.
        trace: a directory in which the client records what it does.
        credentials: for TLS, `gapless.Credentials`, or the path of a file with them.
        codec: "json", "msgpack", "arrow", or an object with `encode` and `decode`: payloads may be any values that it
            can encode, and `client.decode(event)` reads them.
        middleware: `gapless.Middleware` objects, called with each event that is published, delivered or acknowledged,
            in the thread of the client.

    Example: `with gapless.sync.connect("gapless://127.0.0.1:7400") as client:`
    """
    opening = connect_asynchronously(
        url, name=name, timeout_s=timeout_s, trace=trace, credentials=credentials, codec=codec, middleware=middleware
    )
    loop = LoopThread()
    try:
        return Client(loop, loop.run(opening))
    except BaseException:
        loop.stop()
        raise
