"""The work of a synchronous client in the threads of its callers: it runs sources of events and closes the event loop.

An event loop runs in its own thread, one for each client, and runs the asynchronous client.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from typing import Any, TypeVar

from gapless.client.acks import Making
from gapless.client.answering import Answer
from gapless.client.batches import iterator_over
from gapless.client.call_thread import CallThread
from gapless.client.feed import Feed
from gapless.client.loop_thread import LoopThread
from gapless.client.publications import Publication
from gapless.client.publishing import LostCallback
from gapless.client.sync_answering import Answering
from gapless.client.sync_durable_event import DurableEvent
from gapless.client.synchronous import Synchronous
from gapless.errors import ClosedError
from gapless.events import Event

__all__ = ["CallerSide", "started"]

C = TypeVar("C", bound="CallerSide")


def started(kind: type[C], opening: Coroutine[Any, Any, Any]) -> C:
    """Return the synchronous client for an asynchronous one that is being opened."""
    loop = LoopThread()
    try:
        return kind(loop, loop.run(opening))
    except BaseException:
        loop.stop()
        raise


class CallerSide(Synchronous):
    """Base class of the synchronous client: the methods that run code in the caller's thread."""

    def __init__(self, loop: LoopThread, inner: Any) -> None:
        super().__init__(loop, inner)
        inner._subscribing.making = Making(DurableEvent, loop.run)
        self._is_closed = False

    def _answer(
        self, filter: str, handler: Callable[[Event], Answer], *, concurrency: int, **choices: Any
    ) -> Answering:
        threads = ThreadPoolExecutor(max(1, concurrency), "gapless-answer")

        async def handle(request: Event) -> Answer:
            return await asyncio.get_running_loop().run_in_executor(threads, handler, request)

        called = handle if callable(handler) else handler
        opening = self._inner.answer(filter, called, concurrency=concurrency, **choices)
        answering = Answering(self._loop, self._loop.run(opening))
        answering._threads = threads
        return answering

    def _publish_many(self, events: Iterable[Publication]) -> int:
        """Iterate over the events in the caller's thread, and publish them as they are produced."""
        remaining = iterator_over(events)
        feed = Feed(self._loop.loop, self._inner._publishing.batch_max)
        publishing: Any = self._loop.start(self._inner._publishing.publish_fed(feed))
        publishing.add_done_callback(lambda _: feed.abandon())
        try:
            for item in remaining:
                if not feed.put(self._inner._publishing.check(item)):
                    break
            feed.end()
            count: int = publishing.result()
            return count
        except Exception:
            feed.end(is_cut_short=True)
            wait([publishing])
            raise
        except BaseException:
            publishing.cancel()
            raise

    def _on_publications_lost(self) -> LostCallback | None:
        inner = self._inner.on_publications_lost
        return inner.function if isinstance(inner, CallThread) else None

    def _set_on_publications_lost(self, function: LostCallback | None) -> None:
        self._inner.on_publications_lost = None if function is None else CallThread(function)

    def _close(self, *, leave: bool) -> None:
        if not self._is_closed:
            self._is_closed = True
            try:
                with suppress(ClosedError):  # its event loop may have ended
                    self._loop.run(self._inner.close(leave=leave))
            finally:
                self._loop.stop()
