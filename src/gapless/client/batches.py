"""Splits a sequence, generator or asynchronous source of events into batches as events become available.

A batch is sent as soon as nothing more can be added without waiting. A list or a tuple is split only into full batches,
however busy the machine is.

Any other ordinary iterable may block, so the first batch has one event. Each batch is twice as large as the one before
while the iterable is fast; after a slow event, the next batch has one event again. The event loop runs between two
batches, so that events are sent and heartbeats continue. An iterable that blocks for long at one event still blocks the
event loop, which is logged; an async iterable does not.
"""

import asyncio
import logging
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator, Sequence
from itertools import islice
from time import monotonic
from typing import Any, NamedTuple

from gapless.errors import EventError

__all__ = ["batches", "iterator_over"]

QUICK_S = 0.005
"""The time after which a batch is sent even if it is not full."""

BLOCKED_S = 0.5
"""The time for which a source can block the event loop before a warning is logged."""


def iterator_over(events: Iterable[Any]) -> Iterator[Any]:
    """Return an iterator over the events, or raise an `EventError` if they are not iterable."""
    try:
        return iter(events)
    except TypeError:
        shown = "None" if events is None else f"a {type(events).__name__}"
        raise EventError(f"publish_many takes an iterable of events, but this is {shown}") from None


def batches(
    events: Iterable[Any] | AsyncIterable[Any], most: int, end: "asyncio.Future[None]"
) -> AsyncIterator[list[Any]]:
    """Yield batches of at most `most` events. Stop waiting for further events if `end` fails."""
    if isinstance(events, AsyncIterable):
        return _of_what_comes(events, most, end)
    if isinstance(events, list | tuple):
        return _of_a_list(events, most)
    return _of_what_is_there(iterator_over(events), most, 1 if not isinstance(events, Sequence) else most)


async def _of_a_list(events: list[Any] | tuple[Any, ...], most: int) -> AsyncIterator[list[Any]]:
    for place in range(0, len(events), most):
        yield list(events[place : place + most])
        await asyncio.sleep(0)


async def _of_what_is_there(remaining: Iterator[Any], most: int, size: int) -> AsyncIterator[list[Any]]:
    is_reported = False
    while True:
        started = monotonic()
        end = started + QUICK_S
        batch = []
        for event in islice(remaining, size):
            batch.append(event)
            if monotonic() > end:
                break
        took = monotonic() - started
        if not batch:
            return
        if took > BLOCKED_S and not is_reported:
            is_reported = True
            logging.getLogger("gapless.client").warning(
                f"publish_many waited {took:.1f} s for one event and blocked the event loop meanwhile; give it an "
                "async iterable",
                extra={"event": "event_loop.blocked"},
            )
        size = min(2 * size, most) if took <= QUICK_S else 1
        yield batch
        await asyncio.sleep(0)


async def _of_what_comes(
    events: AsyncIterable[Any], most: int, end_of_all: "asyncio.Future[None]"
) -> AsyncIterator[list[Any]]:
    queue: asyncio.Queue[Any] = asyncio.Queue(most)
    collecting = asyncio.ensure_future(_collect(events, queue))
    try:
        while True:
            batch = [await _next(queue, end_of_all)]
            while not queue.empty():
                batch.append(queue.get_nowait())
            end = batch.pop() if isinstance(batch[-1], _End) else None
            if batch:
                yield batch
            if end is not None:
                if end.error is not None:
                    raise end.error
                return
    finally:
        while not queue.empty():
            queue.get_nowait()  # make room for the end marker
        collecting.cancel()


async def _next(queue: "asyncio.Queue[Any]", end_of_all: "asyncio.Future[None]") -> Any:
    if not queue.empty():
        return queue.get_nowait()
    getting = asyncio.ensure_future(queue.get())
    try:
        await asyncio.wait([getting, end_of_all], return_when=asyncio.FIRST_COMPLETED)
        return getting.result() if getting.done() else end_of_all.result()
    finally:
        getting.cancel()


class _End(NamedTuple):
    """Marks the end of the source; `error` is set if the source failed."""

    error: BaseException | None


async def _collect(events: AsyncIterable[Any], queue: "asyncio.Queue[Any]") -> None:
    error: BaseException | None = None
    try:
        async for event in events:
            await queue.put(event)
    except (Exception, asyncio.CancelledError) as caught:  # also on cancellation, or the consumer would wait forever
        error = caught
    await queue.put(_End(error))
