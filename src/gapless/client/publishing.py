"""Publishes events: checks them, passes them to the protocol node as there is room, and waits until they are
confirmed.
"""

import asyncio
from collections.abc import AsyncIterable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol, TypeAlias

from gapless.client.batches import batches
from gapless.client.codecs import Codec
from gapless.client.feed import Feed
from gapless.client.middleware import Middlewares, Outgoing
from gapless.client.publications import Batch, Checked, Publication, check_all, check_publication, parts_of
from gapless.client.recording import now_us
from gapless.client.unsafe import Unsafe, refuse
from gapless.errors import EventError, GaplessError, WindowFullError
from gapless.events import Event, PublishedEvent
from gapless.protocol import Confirmed, ProtocolSpec, PublicationsLost, Published, PublishedMany, PublishMany
from gapless.runtime.codec import ENTRIES_MAX
from gapless.runtime.logs import client_logger
from gapless.runtime.settings import RuntimeSettings

__all__ = ["LostCallback", "Publishing"]

LostCallback: TypeAlias = Callable[[list[tuple[int, int]]], object]
"""A function that is called with the first and last number of each range of lost events."""

PUBLISH_BATCH = 256
COLLECTED_BYTES = 32 * 1024 * 1024
"""The maximum number of bytes read from a source of events at a time."""
EVENT_VALUES = 7
"""The number of values that an event adds to a frame, besides two for each attribute."""
MESSAGE_BYTES = 1024 * 1024
"""The size after which no event is added to a message, so that the message does not delay others."""


class _ConnectionManager(Protocol):
    name: str

    def check_open(self) -> None: ...

    def note_beginning(self, began_us: int) -> None: ...

    def call(self, call: Any) -> None: ...

    def flush(self) -> None: ...

    async def wait_for_links(self) -> None: ...


class Publishing:
    """Publishes the events of one client."""

    def __init__(
        self, connection_manager: _ConnectionManager, spec: ProtocolSpec, settings: RuntimeSettings, window: int
    ) -> None:
        self.unsafe = Unsafe(window, settings.client_frame_max // 2, ENTRIES_MAX // 2)
        self.batch_max = max(1, min(PUBLISH_BATCH, COLLECTED_BYTES // settings.event_max))
        """The maximum number of events in one batch."""
        self.lost: list[tuple[int, int]] = []
        """The first and last number of each range of publications that were confirmed and then lost."""
        self.lost_callback: LostCallback | None = None
        """The function to call with ranges of lost publications."""
        self._connection_manager = connection_manager
        self._logger = client_logger(connection_manager.name)
        self._spec = spec
        self.event_max = settings.event_max
        self._accepted: Event | None = None
        """The event that the node accepted last."""
        self.codec: Codec | None = None
        self.middleware = Middlewares()
        self._end: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """A future that fails when publishing is no longer possible."""

    # ---- effects of the node ----------------------------------------------------------------------------

    def on_published(self, effect: Published) -> None:
        """Record that the node accepted an event."""
        self.unsafe.published = effect.event.seq
        self._accepted = effect.event

    def on_published_many(self, effect: PublishedMany) -> None:
        """Record that the node accepted several events."""
        self.unsafe.published = effect.events.last

    def on_confirmed(self, effect: Confirmed) -> None:
        """Record that events are confirmed, and wake the calls that wait for them."""
        self.unsafe.confirm(effect.seq)

    def on_lost(self, effect: PublicationsLost) -> None:
        """Report events that are lost because more than f adjacent brokers failed. Their subscribers get an
        error, too.
        """
        shown = ", ".join(str(first) if first == last else f"{first} to {last}" for first, last in effect.ranges)
        self._logger.warning(
            f"publications {shown} were confirmed and are now lost: more than f adjacent brokers failed",
            extra={"event": "publications.lost", "numbers": shown},
        )
        self.lost.extend(effect.ranges)
        if self.lost_callback is not None:
            try:
                self.lost_callback(list(effect.ranges))
            except Exception:
                self._logger.exception("on_publications_lost failed", extra={"event": "callback.failed"})

    def go_on_after(self, seq: int) -> None:
        """Continue numbering after `seq`, the last number that a previous process used as this client."""
        self.unsafe.published = self.unsafe.confirmed = seq

    def fail(self, error: GaplessError) -> None:
        """Fail all waiting and later publications."""
        refuse(self._end, error)
        self.unsafe.fail(error)

    def is_safe(self, event: PublishedEvent) -> bool:
        """Return whether the network has confirmed an event of this client."""
        return self._spec.confirms and event.seq <= self.unsafe.confirmed

    def progress(self) -> tuple[int, int]:
        """Return the number of published events, and the number of confirmed ones."""
        return self.unsafe.published, self.unsafe.confirmed

    @property
    def is_all_confirmed(self) -> bool:
        """Return whether all events published so far are confirmed."""
        return not self._spec.confirms or self.unsafe.published == self.unsafe.confirmed

    # ---- one event ----------------------------------------------------------------------------------------

    def check(self, item: Publication) -> Checked:
        """Return the call that publishes the item, and the event's size. Raise an `EventError` if it is invalid."""
        if self.codec is None and not self.middleware:
            return check_publication(item, self.event_max)
        with self.prepared(item) as checked:
            return checked

    @contextmanager
    def prepared(self, item: Publication) -> Iterator[Checked]:
        """Check the item inside the contexts of the middleware, which stay open until this context ends."""
        attributes, payload = parts_of(item, self.codec)
        with self.middleware.publishing(Outgoing({**attributes}, payload)) as outgoing:
            yield check_publication((outgoing.attributes, outgoing.payload), self.event_max)

    def _check_all(self, items: Sequence[Publication]) -> tuple[Batch, EventError | None]:
        if self.codec is None and not self.middleware:
            return check_all(items, self.event_max)
        batch = Batch()
        for item in items:
            try:
                batch.add(self.check(item))
            except EventError as error:
                return batch, error
        return batch, None

    async def publish(self, checked: Checked) -> PublishedEvent:
        """Pass the event to the node, which numbers and sends it, as soon as there is room. Return it unconfirmed."""
        began_us = now_us()
        await self._wait_for_room()
        return self._send(checked, began_us)

    def publish_now(self, checked: Checked) -> PublishedEvent:
        """Pass the event to the node without waiting. Raise a `WindowFullError` if there is no room."""
        self._connection_manager.check_open()
        if self._spec.confirms and self.unsafe.room <= 0:
            waiting = self.unsafe.published - self.unsafe.confirmed
            raise WindowFullError(
                f"{waiting:,} events wait to be confirmed, which is the maximum; await flush(), or use publish()"
            )
        return self._send(checked, now_us())

    def _send(self, checked: Checked, began_us: int) -> PublishedEvent:
        call, size = checked
        self._connection_manager.note_beginning(began_us)
        self._connection_manager.call(call)
        event = self._accepted
        assert event is not None, "the node accepts a publication or rejects it"
        self._note(size, 1, len(call.attributes))
        return PublishedEvent(event.publisher, event.seq, event.attributes, event.payload)

    async def wait_until_safe(self, event: PublishedEvent | None = None) -> None:
        """Wait until this event is confirmed. Without an argument, wait until everything published so far is
        confirmed."""
        if self._spec.confirms:
            await self.unsafe.wait_for(self.unsafe.published if event is None else event.seq)

    # ---- many events --------------------------------------------------------------------------------------

    async def publish_many(self, events: Iterable[Publication] | AsyncIterable[Publication]) -> int:
        """Publish all events of the source as they are produced. Return the number of events when all are confirmed."""
        self._connection_manager.check_open()
        count = 0
        async for batch in batches(events, self.batch_max, self._end):
            checked, error = self._check_all(batch)
            count += await self._publish_batch(checked)
            if error is not None:
                raise error
        await self.wait_until_safe()
        return count

    async def publish_fed(self, feed: Feed) -> int:
        """Publish all events that another thread puts into the feed. Return their number when they are confirmed."""
        count = 0
        while fed := await feed.take():
            batch = Batch()
            for checked in fed:
                batch.add(checked)
            count += await self._publish_batch(batch)
        if not feed.is_cut_short:
            await self.wait_until_safe()
        return count

    async def _publish_batch(self, batch: Batch) -> int:
        """Publish a batch in parts, as there is room for them. Return the number of events."""
        began_us = now_us()
        done = 0
        while done < len(batch):
            await self._wait_for_room()
            room = self.unsafe.room if self._spec.confirms else len(batch)
            end = batch.fitting(done, room, MESSAGE_BYTES)
            call = batch.call(done, end)
            self._connection_manager.note_beginning(began_us)
            self._give(call)
            self._note(sum(batch.sizes[done:end]), end - done, len(call.table.shared) + len(call.table.columns))
            done = end
        return done

    def _give(self, many: PublishMany) -> None:
        if self._spec.takes_many:
            self._connection_manager.call(many)
        else:
            for call in many.publications():
                self._connection_manager.call(call)
        self._connection_manager.flush()

    def _note(self, size: int, events: int, attributes: int) -> None:
        if self._spec.confirms:
            self.unsafe.note(size, events * (EVENT_VALUES + 2 * attributes))

    async def _wait_for_room(self) -> None:
        """Wait until there is room for another unconfirmed publication, or at least until the send queue has room."""
        self._connection_manager.check_open()
        if self._spec.confirms:
            await self.unsafe.wait_for_room()
        else:
            await self._connection_manager.wait_for_links()
        self._connection_manager.check_open()
