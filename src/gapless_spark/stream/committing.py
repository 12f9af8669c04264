"""Publishes a batch exactly once: clients publish the events that the batch's manifest lists, each its share.

The clients are the same for all batches of a sink, whichever processes connect as them (`gapless.client.identity`), and
the manifest fixes the number of each event (`staging`). Brokers accept each number of a client once, so the events of a
batch can be sent again without harm. With one client the driver publishes the batch itself, in order. With several,
workers of Spark (`publishers`) publish one share each, in order. No client connects to publish before the manifest is
on the disk. After a failure, of the driver or of a worker, the driver

1. takes over the clients: brokers ignore the previous processes from then on, and none of their messages arrives late;
2. reads from history how many events of each share exist, because brokers may have forgotten a client in the meantime.
   History reports the numbers of lost events, so they count, too. If brokers have forgotten even those, the commit ends
   with an error that says how to find out;
3. publishes the rest, under the numbers that follow.

**Effects come after their causes.** Before it publishes, each client reads up to the newest position, which is after
everything that any source has read. So its broker gives its events larger timestamps, and forwards them later than
everything before that position.

The same read also shows whether another client uses the name of the sink.
"""

import asyncio
import logging
from collections.abc import Awaitable, Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TypeVar

import msgspec

from gapless.client import Client
from gapless.client.connecting import connect_as
from gapless.client.identity import Identity
from gapless.client.opening import Opening
from gapless.client.positions import EARLIEST
from gapless.errors import SkippedError, SparkError
from gapless.events import Attributes, Event
from gapless.positions import Position
from gapless_spark.stream.connection import LONG, in_time
from gapless_spark.stream.layout import BATCH, Layout
from gapless_spark.stream.publishers import PATIENT, Publisher, share_published
from gapless_spark.stream.share import Share, advertised, publish
from gapless_spark.stream.sink_options import SinkOptions
from gapless_spark.stream.staging import Manifest, Staging, State

__all__ = ["Batch", "Committing"]

TAKE = 4_096
T = TypeVar("T")
_logger = logging.getLogger("gapless.spark")


@dataclass(frozen=True)
class Batch:
    """A batch to publish."""

    owner: str
    """The streaming query, or a marker for none."""
    run: str
    """The first part of the labels of the owner's batches, if the owner is new."""
    number: int
    """The number of a streaming query's batch; otherwise -1."""
    name: str
    """The name of a batch that is not part of a streaming query; empty if the batch is never repeated."""
    key: str
    """Identifies the batch among the batches of its owner."""
    files: list[tuple[str, int]]
    largest: int
    """The size of its largest event in bytes."""
    publishers: tuple[Publisher, ...] = ()
    """Processes that can publish the batch. With fewer than two, the driver publishes it."""


class _ConflictError(Exception):
    """Another process changed the state of the sink."""

    def __init__(self, state: State) -> None:
        super().__init__()
        self.state = state


class Committing:
    """One process that publishes for a sink."""

    def __init__(self, options: SinkOptions, staging: Staging, layout: Layout) -> None:
        self._options = options
        self._network = options.network
        self._staging = staging
        self._layout = layout

    async def commit(self, batch: Batch) -> None:
        """Publish a batch unless that is done. The caller must hold the lock of the directory, if it has one."""
        while True:
            try:
                await self._commit(self._staging.state(), batch)
                break
            except _ConflictError as error:
                _logger.warning(f"another driver of sink {self._options.sink!r} was publishing until now")
                self._staging.keep(error.state)
        self._staging.clear(None)

    async def _commit(self, state: State | None, batch: Batch) -> None:
        if state is not None:
            self._check_owner(state, batch)
            if state.manifest is not None:
                state = await self._resume(state, state.manifest)
        if state is None or not self._is_done(state, batch):
            self._check_files(batch)
            await self._publish_new(state, batch)

    def _check_alone(self) -> None:
        """Raise an error if another process changed the state before this one was connected."""
        found = self._staging.conflicting_state()
        if found is not None:
            raise _ConflictError(found)

    def _is_done(self, state: State, batch: Batch) -> bool:
        if batch.number >= 0:
            return batch.number <= state.done
        return bool(batch.name) and self._staging.is_done(batch.name)

    # ---- the first time -----------------------------------------------------------------------------------

    async def _begin(self, client: Client, batch: Batch) -> State:
        """Return the state of a new sink. Its name must be unused in the whole history that brokers keep."""
        first, position = await self._look(client, advertised(self._options.sink), EARLIEST)
        state = State(self._options.sink, client.network, batch.owner, batch.run, [client.identity], position)
        if first is None:
            return state
        if str(first.attributes.get(BATCH, "")).startswith(f"{batch.run}/"):
            raise SparkError(
                f"this query published as sink {state.sink!r} before, but {self._staging.path}, which stored "
                "its progress, is empty; restore that directory, or start again with another checkpoint and "
                "another sink"
            )
        raise SparkError(
            f"another query has published as sink {state.sink!r} (its client was {first.publisher}); give "
            "this query another name with the option 'sink', or use that query's staging directory instead "
            f"of {self._staging.path}"
        )

    def _check_owner(self, state: State, batch: Batch) -> None:
        if state.sink != self._options.sink:
            raise SparkError(
                f"{self._staging.path} is the staging directory of sink {state.sink!r}, not of "
                f"{self._options.sink!r}; choose another directory"
            )
        if state.owner != batch.owner:
            raise SparkError(
                f"{self._staging.path} belongs to another query, which writes to sink {state.sink!r}, too; give this "
                'query another sink and another directory (options "sink" and "staging"), or start it from the '
                "checkpoint of that query"
            )

    def _check_network(self, client: Client, state: State) -> None:
        if client.network != state.network:
            raise SparkError(
                f"sink {state.sink!r} publishes to network {state.network!r}, but these brokers are of network "
                f"{client.network!r}; use brokers of {state.network!r}, or start again with another checkpoint"
            )

    def _check_files(self, batch: Batch) -> None:
        for file, _ in batch.files:
            if not self._staging.has(file):
                raise SparkError(
                    f"a task staged {self._staging.path / file}, but the driver cannot read it; set the "
                    'option "staging" to a directory that the driver and all executors share'
                )

    def _check_size(self, client: Client, batch: Batch) -> None:
        if batch.largest > client.event_max:
            raise SparkError(
                f"an event of the batch has up to {batch.largest:,} bytes, but {client.event_max:,} is the limit; make "
                "it smaller, or raise event_max in the network's file"
            )

    async def _look_for_others(self, client: Client, state: State) -> State:
        """Raise an error if another client has used the name of the sink since the last check. Everything before the
        check happened before later publications."""
        theirs = f"{advertised(state.sink)} AND {_quoted(BATCH)} NOT LIKE {_text(state.run + '/%')}"
        other, position = await self._look(client, theirs, state.position)
        state = msgspec.structs.replace(state, position=position)
        if other is not None:
            self._staging.keep(state)
            raise SparkError(
                f"another query publishes as sink {state.sink!r}, too (its client is {other.publisher}); stop "
                "one of the two, and give it another name with the option 'sink'; then start this query again"
            )
        return state

    async def _look(self, client: Client, text: str, since: Position) -> tuple[Event | None, Position]:
        """Return the first matching event, or None, and the position up to which everything was checked."""
        reading = await self._in_time(client.read(text, since=since), LONG)
        found: Event | None = None
        while True:
            try:
                events = await self._in_time(reading.take(TAKE), LONG)
            except SkippedError:
                continue
            if not events:
                return found, reading.position
            found = found or events[0]

    # ---- publishing ---------------------------------------------------------------------------------------

    async def _publish_new(self, state: State | None, batch: Batch) -> None:
        if state is not None:
            state = self._take_over(state)
        async with self._client(None if state is None else state.clients[0]) as client:
            self._check_alone()
            self._check_size(client, batch)
            if state is None:
                state = await self._begin(client, batch)
            else:
                self._check_network(client, state)
                state = await self._look_for_others(client, state)
            await self._advertise(client)
            state = self._decided(state.with_client(0, client.identity), batch)
            manifest = state.manifest
            assert manifest is not None
            self._staging.keep(state)
            self._staging.clear(manifest)
            if manifest.publishers() == [0]:
                state = await self._publish(client, state, manifest, 0, 0)
                self._staging.finish(state, manifest)
                return
        await self._publish_shares(state, manifest, batch.publishers)

    def _decided(self, state: State, batch: Batch) -> State:
        """Return the state in which the batch is decided: each file with the client that publishes it."""
        clients = list(state.clients)
        listed: list[int] = []
        if len(batch.publishers) > 1:
            listed = _evenly([count for _, count in batch.files], len(batch.publishers))
            clients += [
                Identity(f"{clients[0].name}-{place}", "", clients[0].attempt, 0)
                for place in range(len(clients), 1 + max(listed))
            ]
            clients = [each.later() for each in clients]
        manifest = Manifest(f"{state.run}/{batch.key}", batch.number, batch.name, batch.files, listed)
        return msgspec.structs.replace(state, clients=clients, manifest=manifest)

    async def _publish_shares(self, state: State, manifest: Manifest, publishers: Sequence[Publisher]) -> None:
        """Let other processes publish their shares of the batch, and publish the remaining shares here."""

        async def publish_one(place: int) -> Identity | None:
            try:
                return await self._ask(publishers[place], manifest.share(place), state.clients[place], state.position)
            except SparkError as error:
                _logger.warning(f"{error}; the driver publishes its share of batch {manifest.label}")
                return None

        places = manifest.publishers()
        failed = []
        for place, identity in zip(places, await asyncio.gather(*map(publish_one, places)), strict=True):
            if identity is None:
                failed.append(place)
            else:
                state = state.with_client(place, identity)
        if failed:
            state = await self._publish_rest(state, manifest, failed)
        self._staging.finish(state, manifest)

    async def _ask(self, publisher: Publisher, share: Share, identity: Identity, position: Position) -> Identity:
        patience_s = LONG * self._network.timeout_s
        return await share_published(publisher, share, identity, position, patience_s)

    def _take_over(self, state: State) -> State:
        """Store and return the state of the next process that connects as the sink's clients, before it connects."""
        state = self._staging.later(state)
        self._staging.keep(state)
        return state

    async def _advertise(self, client: Client) -> None:
        await self._in_time(client.advertise(advertised(self._options.sink)), LONG)

    async def _publish(self, client: Client, state: State, manifest: Manifest, place: int, there: int) -> State:
        """Publish the share of one client, except the first `there` events, which exist already."""
        events = self._events(manifest, place, there)
        await publish(client, events, manifest.label, PATIENT * self._network.timeout_s)
        return state.with_client(place, client.identity)

    def _events(self, manifest: Manifest, place: int, skipped: int) -> Iterator[tuple[Attributes, bytes]]:
        """Yield the share of one client, without the first `skipped` events."""
        return manifest.share(place, skipped).events(self._staging.opened, self._layout, self._options.sink)

    # ---- after a failure ----------------------------------------------------------------------------------

    async def _resume(self, state: State, manifest: Manifest) -> State:
        """Publish the rest of a batch that another process has begun."""
        if not (manifest.name and self._staging.is_done(manifest.name)):
            state = await self._publish_rest(state, manifest, manifest.publishers())
        self._staging.finish(state, manifest)
        return state.finished(manifest)

    async def _publish_rest(self, state: State, manifest: Manifest, places: Sequence[int]) -> State:
        """Publish the missing events of the shares of these clients."""
        state = self._take_over(state)
        async with AsyncExitStack() as stack:
            clients = [await stack.enter_async_context(self._client(state.clients[place])) for place in places]
            self._check_alone()
            self._check_network(clients[0], state)
            there = await self._published(clients[0], state, manifest, places)
            for place, client in zip(places, clients, strict=True):
                state = state.with_client(place, client.identity)
        # The numbers continue after the existing events; brokers learn that when a client attaches again.
        state = self._take_over(state)
        for place in places:
            identity = state.clients[place]
            identity = msgspec.structs.replace(identity, seq=identity.seq + there[place])
            async with self._client(identity) as client:
                await self._advertise(client)
                state = await self._publish(client, state, manifest, place, there[place])
        return state

    async def _published(
        self, client: Client, state: State, manifest: Manifest, places: Sequence[int]
    ) -> dict[int, int]:
        """Return the number of events of its share that each client has published. These are always the first ones."""
        mine = f"{advertised(state.sink)} AND {_quoted(BATCH)} = {_text(manifest.label)}"
        last = {state.clients[place].name: state.clients[place].seq for place in places}
        reading = await self._in_time(client.read(mine, since=state.position), LONG)
        is_sure = True
        while True:
            try:
                events = await self._in_time(reading.take(TAKE), LONG)
            except SkippedError as error:
                # An event after the forgotten ones shows how many they are; without one their number is unknown.
                is_sure = is_sure and error.gap is None
                for name in last:
                    last[name] = max([last[name], *(end for _, end in error.lost.get(name, ()))])
                continue
            if not events:
                break
            for event in events:
                if event.publisher in last:
                    last[event.publisher] = max(last[event.publisher], event.seq)
        there = {place: last[state.clients[place].name] - state.clients[place].seq for place in places}
        unknown = [] if is_sure else [place for place in places if not there[place]]
        return there | self._stated_by_user(state, manifest, unknown)

    def _stated_by_user(self, state: State, manifest: Manifest, places: Sequence[int]) -> dict[int, int]:
        """Return how many events exist according to the user, for shares that brokers have forgotten."""
        if not places:
            return {}
        stated = self._options.published
        if len(stated) != len(places):
            raise self._unknown(state, manifest, places)
        for place, count in zip(places, stated, strict=True):
            if count > manifest.count(place):
                raise SparkError(
                    f"the option 'published' is {count:,}, but batch {manifest.label} has "
                    f"{manifest.count(place):,} events of {state.clients[place].name}; give the number of those that "
                    f"have {BATCH} = {manifest.label!r}"
                )
        return dict(zip(places, stated, strict=True))

    def _unknown(self, state: State, manifest: Manifest, places: Sequence[int]) -> SparkError:
        names = ", ".join(state.clients[place].name for place in places)
        numbers = "that number" if len(places) == 1 else f"the {len(places)} numbers, separated by commas,"
        return SparkError(
            f"batch {manifest.label} of sink {self._options.sink!r} was being published when the driver "
            "ended, and brokers no longer have the history since then, so the number of its published events "
            f"is unknown; find out how many of {names} have {BATCH} = {manifest.label!r}, and start the query "
            f"once with {numbers} as the option 'published'; for the future, let brokers keep more "
            "(history_bytes)"
        )

    # ---- the network --------------------------------------------------------------------------------------

    def _client(self, identity: Identity | None) -> Opening[Client]:
        # A part of a trace belongs to one process, and this client may have many.
        network = self._network
        return connect_as(network.url, "sink", identity, timeout_s=network.timeout_s, credentials=network.credentials)

    async def _in_time(self, work: Awaitable[T], times: int = 2) -> T:
        return await in_time(self._network, work, times)


def _evenly(counts: Sequence[int], shares: int) -> list[int]:
    """Return the share of each file. The largest file comes first, and each file is assigned to the smallest share so
    far."""
    sums = [0] * min(shares, len(counts))
    found = [0] * len(counts)
    for place in sorted(range(len(counts)), key=lambda place: -counts[place]):
        share = sums.index(min(sums))
        found[place] = share
        sums[share] += counts[place]
    return found


def _quoted(name: str) -> str:
    return '"' + name + '"'


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
