"""Answers requests by calling a handler with each request and publishing its result as the reply.

**Workers share requests** if they answer as a group: the group is a shared durable subscription, so each request goes
to one of them. A request is acknowledged when its reply is published, together with all earlier requests that its
worker has finished. If a worker leaves, dies or takes too long, its unfinished requests go to another.

**Errors.** If the handler raises, the caller gets a `RequestFailedError` with the text of the error. The reply with the
error has the attribute `reply.error`; the client advertises all replies (`reply.to IS NOT NULL`), so the program need
not.

**Deadlines.** A request states how long its caller waits. The handler is not called for requests whose deadline has
passed, and is cancelled when it passes. The current time is estimated from brokers' timestamps: the newest that this
client has seen, plus the time since. So a handler may be called too late, but no request is dropped too early, whatever
the clock of this machine.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from inspect import isawaitable
from types import TracebackType
from typing import Protocol, Self, TypeAlias

from gapless.client.advertisement import Advertisement
from gapless.client.arguments import kind_of
from gapless.client.publications import EventLike, Payload, Publication
from gapless.client.requests import REPLY_TO, deadline_of, failure_of
from gapless.client.subscription import Subscription
from gapless.errors import CallError, DeniedError, GaplessError
from gapless.events import Event, PublishedEvent

__all__ = ["Answer", "Answering", "Handler"]

Answer: TypeAlias = Publication | None
"""The result of a handler: the attributes of the reply, a pair of attributes and payload, or None for no reply."""
Handler: TypeAlias = Callable[[Event], Awaitable[Answer]]

_logger = logging.getLogger("gapless.client")


class _Answerer(Protocol):
    name: str

    async def advertise(self, filter: str) -> Advertisement: ...
    async def publish(self, attributes: EventLike, payload: Payload = b"") -> PublishedEvent: ...
    async def reply(self, request: Event, attributes: EventLike, payload: Payload = b"") -> PublishedEvent: ...


class Answering:
    """Calls a handler with each request that matches a filter and publishes the results. `Client.answer` returns it.

    It answers until it is closed; use it in `async with`, or await `wait()`.
    """

    def __init__(
        self, client: _Answerer, filter: str, subscription: Subscription[Event], handler: Handler, concurrency: int,
        now_s: Callable[[], float],
    ) -> None:  # fmt: skip
        self.filter: str = filter
        """The filter that requests match."""
        self.name: str = subscription.name
        """The name of the group that shares the requests; empty without a group."""
        """The name of the group; empty if there is none."""
        self._client = client
        self._subscription = subscription
        self._handler = handler
        self._now_s = now_s
        self._advertisement: Advertisement | None = None
        self._workers = [asyncio.create_task(self._work()) for _ in range(concurrency)]

    def __repr__(self) -> str:
        group = f", group {self.name!r}" if self.name else ""
        return f"<{type(self).__name__} {self.filter!r}{group}>"

    async def _begin(self) -> Self:
        """Advertise replies, begin to handle requests, and return this object."""
        try:
            self._advertisement = await self._client.advertise(f"{REPLY_TO} IS NOT NULL")
        except DeniedError:
            _logger.warning(
                f"{self._client.name} is not allowed to publish every reply, so callers do not receive errors of its "
                "handlers; advertise the replies that it may publish, or allow it to publish reply.to IS NOT NULL",
                extra={"event": "request.errors_unsent"},
            )
        return self

    async def wait(self) -> None:
        """Wait until this object is closed. Raise an error if the network ended its subscription.

        Example: `await answering.wait()`
        """
        await asyncio.shield(asyncio.gather(*self._workers))

    async def close(self) -> None:
        """Stop answering. Requests whose handler is running stay unfinished: in a group, another worker gets them.

        Example: `await answering.close()`
        """
        for worker in self._workers:
            worker.cancel()
        await asyncio.wait(self._workers)
        await self._subscription.close()
        if self._advertisement is not None:
            await self._advertisement.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _work(self) -> None:
        async for request in self._subscription:
            await self._answer(request)
            if self._subscription._acks is not None:
                self._subscription._acks.finish(request)

    async def _answer(self, request: Event) -> None:
        deadline = deadline_of(request)
        left_s = None if deadline is None else deadline - self._now_s()
        if left_s is not None and left_s <= 0:
            _logger.info(
                f"request {request.id} arrived too late: its caller no longer waits",
                extra={"event": "request.expired"},
            )
            return
        try:
            async with asyncio.timeout(left_s) as waiting:
                coming: object = self._handler(request)
                if not isawaitable(coming):
                    raise CallError(
                        "the handler of requests must be an asynchronous function, but its result is "
                        f"{kind_of(coming)}; write it with async def, or use gapless.sync"
                    )
                answer: Answer = await coming
        except TimeoutError as error:
            if not waiting.expired():
                await self._fail(request, error)
            return
        except Exception as error:
            await self._fail(request, error)
            return
        if answer is not None:
            await self._publish(request, answer)

    async def _publish(self, request: Event, answer: Publication) -> None:
        try:
            await self._client.reply(request, *(answer if isinstance(answer, tuple) else (answer, b"")))
        except GaplessError as error:
            await self._fail(request, error)

    async def _fail(self, request: Event, error: Exception) -> None:
        _logger.warning(
            f"the handler of request {request.id} failed", exc_info=error, extra={"event": "request.failed"}
        )
        try:
            await self._client.publish(failure_of(request, error))
        except GaplessError as refusal:
            _logger.warning(
                f"cannot send the error of request {request.id} to its caller: {refusal}",
                extra={"event": "request.error_unsent"},
            )
