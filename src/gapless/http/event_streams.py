"""Produces one requested stream of events: live, resumed, from history, or of a durable subscription.

Server-sent events, NDJSON and WebSockets all send the items of this module. The reader pulls them: if it is slow, the
subscription lags, and the broker serves it from history, as for any other client.

The subscription reports the position up to which everything was delivered, while it reads history and while it is live,
so the ids of a stream stay short.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from itertools import pairwise
from typing import Any, Literal, TypeAlias, cast

import msgspec

from gapless.client import Client, DurableEvent, DurableSubscription, Subscription
from gapless.errors import CallError, DeniedError, NoEventError, SkippedError
from gapless.events import Event
from gapless.http.cursors import PUBLISHERS_MAX, Cursor
from gapless.http.durable import DurableStream
from gapless.http.problems import ProblemError
from gapless.positions import Position

__all__ = ["EventStream", "Item", "StreamQuery"]

BATCH = 64
"""The number of events that are rendered together."""
IDLE_S = 15.0
"""The time without events after which a stream sends a keep-alive."""
READING_S = 0.5
"""The same while history is read, which may end without an event."""
FULL_S = 0.05

Kind: TypeAlias = Literal["ready", "event", "skipped", "caught-up", "idle", "end"]


class StreamQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The parameters of a request for a stream."""

    filter: str = "TRUE"
    since: str = ""
    until: str = ""
    resume: str = ""
    """The cursor to resume from: the header `Last-Event-ID`."""
    durable: str = ""
    ack: Literal["manual", "auto"] = "manual"
    share: bool = False
    replace: bool = False

    def check(self) -> None:
        """Raise a `ProblemError` if the parameters contradict each other."""
        if self.durable and (self.since or self.until):
            raise ProblemError(
                "bad-request",
                "a durable subscription continues after the last acknowledged event; leave out since and "
                "until, or move it",
            )
        if (self.share or self.replace) and not self.durable:
            raise ProblemError("bad-request", "share and replace require a durable subscription; add durable=NAME")


class Item(msgspec.Struct, frozen=True, gc=False):
    """An item of a stream: an event, or a message about the stream."""

    kind: Kind
    cursor: str = ""
    event: Event | None = None
    detail: dict[str, Any] | None = None


class EventStream:
    """The stream of one request. `open` returns when the starting cut is fixed."""

    def __init__(self, client: Client, query: StreamQuery) -> None:
        query.check()
        self._client = client
        self._query = query
        self.subscription: Subscription | DurableSubscription | None = None
        self.durable: DurableStream | None = None
        """The unacknowledged deliveries, if the reader acknowledges them."""
        self.was_sent_before = False
        """Whether the requested history ends where the stream is resumed, so nothing is left to send."""
        self._cursor: Cursor | None = None
        """The place to resume from, or None if the stream cannot be resumed."""
        self._has_reported_caught_up = bool(query.until) or not (query.since or query.resume)

    # ---- start ----------------------------------------------------------------------------------------------

    async def open(self) -> None:
        """Subscribe. Raise an error of the client library, or a `ProblemError`, if that fails."""
        query = self._query
        if query.durable:
            self.subscription = await self._client.durable(
                query.durable, query.filter, ack=query.ack, group=query.share, replace=query.replace
            )
            if query.ack == "manual":
                self.durable = DurableStream(self.subscription, is_shared=query.share)
            return
        begin: Any = query.since
        if query.resume:
            self._cursor = Cursor.parse(query.resume)
            begin = self._cursor.position
        if query.until:
            try:
                self.subscription = await self._client.read(query.filter, since=begin or "earliest", until=query.until)
            except CallError as error:
                if not query.resume or "there are no events between" not in str(error):
                    raise
                self.was_sent_before = True
                return
            self._cursor = self._cursor or Cursor(self.subscription.position)
            return
        if not begin or begin == "now":
            begin = await self._now()
        if begin is None:
            self.subscription = await self._client.subscribe(query.filter)
            return
        self.subscription = await self._client.subscribe(query.filter, since=begin)
        self._cursor = self._cursor or Cursor(self.subscription.position)

    async def _now(self) -> Position | None:
        """Return the newest position, or None if the user may not read history or the protocol keeps none."""
        try:
            return await self._client.position()
        except (DeniedError, CallError):
            return None

    # ---- items ----------------------------------------------------------------------------------------------

    async def batches(self) -> AsyncIterator[list[Item]]:
        """Yield lists of items as they arrive. The stream ends with an error of the client library, if there is one. It
        pauses while too many deliveries of a durable subscription are unacknowledged.
        """
        if self.was_sent_before:
            yield [Item("end")]
            return
        assert self.subscription is not None
        yield [Item("ready", self._text())]
        while True:
            try:
                events = await self.subscription.take(
                    BATCH, timeout_s=IDLE_S if self._has_reported_caught_up else READING_S
                )
            except NoEventError:
                yield self._caught_up() or [Item("idle")]
                continue
            except SkippedError as error:
                yield [Item("skipped", detail=_skipped(error))]
                continue
            if not events:
                yield [Item("end", self._text())]
                return
            items = self._items(events)
            if self.durable is not None:
                for event in events:
                    self.durable.sent(cast(DurableEvent, event))
            if items:
                yield items
            while self.durable is not None and self.durable.is_full:
                await asyncio.sleep(FULL_S)

    def _items(self, events: Sequence[Event]) -> list[Item]:
        cursor = self._cursor
        if cursor is None:
            return [Item("event", _own_position(event) if self._query.durable else "", event) for event in events]
        items = []
        assert self.subscription is not None
        reached = self.subscription.position
        is_history = events[-1].position <= reached and all(
            first.position < second.position for first, second in pairwise(events)
        )
        for event in events:
            is_new = not cursor.covers(event)
            if is_history:
                cursor.advance(event.position)
            elif is_new:
                cursor.send(event)
            if is_new:
                items.append(Item("event", str(cursor), event))
        if cursor.publishers > PUBLISHERS_MAX:
            raise ProblemError(
                "refused",
                f"more than {PUBLISHERS_MAX} publishers publish events that match the filter at the same "
                "time, too many for the ids of this stream; use a narrower filter, or a durable "
                "subscription (durable=NAME)",
            )
        cursor.advance(reached)
        return items + self._caught_up()

    def _caught_up(self) -> list[Item]:
        """Return the report that all of the requested history was sent, once it was."""
        assert self.subscription is not None
        if self._has_reported_caught_up or not self.subscription.is_caught_up:
            return []
        self._has_reported_caught_up = True
        if self._cursor is not None:
            self._cursor.advance(self.subscription.position)
        return [Item("caught-up", self._text())]

    def _text(self) -> str:
        return "" if self._cursor is None else str(self._cursor)


def _own_position(event: Event) -> str:
    return str(event.position) if event.stamp else ""


def _skipped(error: SkippedError) -> dict[str, Any]:
    gap = None if error.gap is None else [str(place) for place in error.gap]
    return {"detail": str(error), "lost": error.lost, "gap": gap}
