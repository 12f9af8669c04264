"""How a batch is published exactly once: one client publishes the events that the batch's manifest lists, in order.

The client is the same for all batches of a sink, whichever process connects as it (`gapless.client.identity`), and the
manifest fixes the number of each event (`staging`). Brokers accept each number of a client once, so the events of a
batch may be sent again without harm. After a failure the next process

1. takes the client over: brokers no longer listen to the process before, and nothing that it had sent arrives late;
2. reads from history how many events of the batch are there, because brokers may have forgotten the client meanwhile.
   History reports the numbers of events that it has lost, so they count, too. If brokers have forgotten even those,
   the commit ends with an error that says how to find out;
3. publishes the rest, under the numbers that follow.

**Effects come after their causes.** Before it publishes, the client reads up to the newest position, which lies after
the end of everything that any source has read. So its broker gives what it publishes larger timestamps, and forwards it
later than everything up to there.

In that reading it also sees whether another client uses the name of the sink.
"""

import asyncio
from collections.abc import Awaitable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import msgspec
import pyarrow as pa

from gapless.client import Client
from gapless.client.connecting import connect_as
from gapless.client.identity import Identity
from gapless.client.opening import Opening
from gapless.client.positions import EARLIEST
from gapless.errors import SkippedError, SparkError
from gapless.events import Attributes, Event
from gapless.positions import Position
from gapless_spark.stream.connection import LONG, in_time
from gapless_spark.stream.layout import BATCH, SINK, Layout
from gapless_spark.stream.sink_options import SinkOptions
from gapless_spark.stream.staging import Manifest, Staging, State

__all__ = ["Batch", "Committing"]

TAKE = 4_096
PATIENT = 6
"""So many timeouts may pass without anything becoming safe."""
T = TypeVar("T")


@dataclass(frozen=True)
class Batch:
    """What Spark wants to be published."""

    owner: str
    """The streaming query, or that it is none."""
    run: str
    """Of the owner, if it is new."""
    number: int
    """Of a streaming query's batch; -1 of another."""
    name: str
    """Of another; empty if nobody will ask for it again."""
    key: str
    """What tells it from the others of its owner."""
    files: list[tuple[str, int]]
    largest: int
    """The bytes of its largest event."""


class Committing:
    """One process that publishes for a sink."""

    def __init__(self, options: SinkOptions, staging: Staging, layout: Layout) -> None:
        self._options = options
        self._network = options.network
        self._staging = staging
        self._layout = layout

    async def commit(self, batch: Batch) -> None:
        """Publish it, if it is not done yet. The caller holds the directory's lock."""
        state = self._staging.state()
        if state is not None:
            self._check_owner(state, batch)
            if state.manifest is not None:
                state = await self._resume(state, state.manifest)
        if state is None or not self._is_done(state, batch):
            self._check_files(batch)
            await self._publish_new(state, batch)
        self._staging.clear(None)

    def _is_done(self, state: State, batch: Batch) -> bool:
        if batch.number >= 0:
            return batch.number <= state.done
        return bool(batch.name) and self._staging.is_done(batch.name)

    # ---- the first time -----------------------------------------------------------------------------------

    async def _begin(self, client: Client, batch: Batch) -> State:
        """The state of a new sink. Its name must be unused, as far back as brokers keep history."""
        first, position = await self._look(client, f"{_quoted(SINK)} = {_text(self._options.sink)}", EARLIEST)
        state = State(self._options.sink, client.network, batch.owner, batch.run, client.identity, position)
        if first is None:
            return state
        if str(first.attributes.get(BATCH, "")).startswith(f"{batch.run}/"):
            raise SparkError(
                f"this query published as sink {state.sink!r} before, but {self._staging.path}, where it kept how far "
                "it got, is empty; bring that directory back, or begin anew with another checkpoint and another sink"
            )
        raise SparkError(
            f"somebody else has published as sink {state.sink!r} (its client was {first.publisher}); give this one "
            f"another name with the option 'sink', or use the directory where that one staged, not {self._staging.path}"
        )

    def _check_owner(self, state: State, batch: Batch) -> None:
        if state.sink != self._options.sink:
            raise SparkError(
                f"{self._staging.path} is the staging directory of sink {state.sink!r}, not of "
                f"{self._options.sink!r}; name another"
            )
        if state.owner != batch.owner:
            raise SparkError(
                f"{self._staging.path} belongs to another query, which writes to sink {state.sink!r}, too; give this "
                'one another sink and another directory (options "sink" and "staging"), or start it from the '
                "checkpoint of that query"
            )

    def _check_network(self, client: Client, state: State) -> None:
        if client.network != state.network:
            raise SparkError(
                f"sink {state.sink!r} publishes to network {state.network!r}, but these brokers are of network "
                f"{client.network!r}; name brokers of {state.network!r}, or begin anew with another checkpoint"
            )

    def _check_files(self, batch: Batch) -> None:
        for file, _ in batch.files:
            if not (self._staging.path / file).exists():
                raise SparkError(
                    f"a task staged {self._staging.path / file}, but the driver does not see it; name a directory that "
                    'the driver and all executors share with the option "staging"'
                )

    def _check_size(self, client: Client, batch: Batch) -> None:
        if batch.largest > client.event_max:
            raise SparkError(
                f"an event of the batch has up to {batch.largest:,} bytes, but {client.event_max:,} is the limit; make "
                "it smaller, or raise event_max in the network's file"
            )

    async def _look_for_others(self, client: Client, state: State) -> State:
        """Nobody else has used the name of the sink since we looked last; all up to now has happened before."""
        theirs = f"{_quoted(SINK)} = {_text(state.sink)} AND {_quoted(BATCH)} NOT LIKE {_text(state.run + '/%')}"
        other, position = await self._look(client, theirs, state.position)
        state = msgspec.structs.replace(state, position=position)
        if other is not None:
            self._staging.keep(state)
            raise SparkError(
                f"somebody else publishes as sink {state.sink!r}, too (its client is {other.publisher}); stop one of "
                "the two, and give it another name with the option 'sink'; then start this one again"
            )
        return state

    async def _look(self, client: Client, text: str, since: Position) -> tuple[Event | None, Position]:
        """The first event that matches, and up to where there is no other that is not known."""
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
        async with self._client(None if state is None else state.standing) as client:
            self._check_size(client, batch)
            if state is None:
                state = await self._begin(client, batch)
            else:
                self._check_network(client, state)
                state = await self._look_for_others(client, state)
            await self._advertise(client)
            manifest = Manifest(f"{state.run}/{batch.key}", batch.number, batch.name, batch.files)
            state = msgspec.structs.replace(state, standing=client.identity, manifest=manifest)
            self._staging.keep(state)
            self._staging.clear(manifest)
            await self._publish(client, state, manifest, 0)

    def _take_over(self, state: State) -> State:
        """The state of the next process that connects as the sink's client, written down before it does."""
        state = msgspec.structs.replace(state, standing=state.standing.later())
        self._staging.keep(state)
        return state

    async def _advertise(self, client: Client) -> None:
        await self._in_time(client.advertise(f"{_quoted(SINK)} = {_text(self._options.sink)}"), LONG)

    async def _publish(self, client: Client, state: State, manifest: Manifest, there: int) -> State:
        """Publish all events but the first so many, which are there."""
        publishing = asyncio.ensure_future(client.publish_many(self._events(manifest, there)))
        confirmed = 0
        while not publishing.done():
            before = confirmed
            await asyncio.wait([publishing], timeout=PATIENT * self._network.timeout_s)
            confirmed = client.confirmed
            if not publishing.done() and confirmed == before:
                publishing.cancel()
                raise SparkError(
                    f"no event of batch {manifest.label} was confirmed for {PATIENT * self._network.timeout_s:g} s: "
                    f"{client.blocked_reason or 'brokers wait for one that is down'}; see gapless status, and "
                    "start the query again, which publishes only what is missing"
                )
        await publishing
        standing = msgspec.structs.replace(client.identity, seq=state.standing.seq)
        state = msgspec.structs.replace(state, standing=standing)
        self._staging.finish(state, manifest)
        return state.finished(manifest)

    def _events(self, manifest: Manifest, skipped: int) -> Iterator[tuple[Attributes, bytes]]:
        """What it lists, without the first so many."""
        number = 0
        for file, count in manifest.files:
            if number + count <= skipped:
                number += count
                continue
            for batch in _batches(self._staging.path / file):
                if number + batch.num_rows > skipped:
                    kept = batch.slice(max(0, skipped - number))
                    first = number + batch.num_rows - kept.num_rows
                    yield from self._layout.events(kept, self._options.sink, manifest.label, first)
                number += batch.num_rows

    # ---- after a failure ----------------------------------------------------------------------------------

    async def _resume(self, state: State, manifest: Manifest) -> State:
        """Publish the rest of a batch that another process has begun."""
        if manifest.name and self._staging.is_done(manifest.name):
            self._staging.finish(state, manifest)
            return state.finished(manifest)
        base = state.standing.seq
        state = self._take_over(state)
        async with self._client(state.standing) as client:
            self._check_network(client, state)
            there = await self._published(client, state, manifest)
            state = msgspec.structs.replace(state, standing=msgspec.structs.replace(client.identity, seq=base))
        # The numbers go on after the events that are there, and brokers learn that when the client attaches again.
        state = self._take_over(state)
        async with self._client(msgspec.structs.replace(state.standing, seq=base + there)) as client:
            await self._advertise(client)
            return await self._publish(client, state, manifest, there)

    async def _published(self, client: Client, state: State, manifest: Manifest) -> int:
        """How many events of the batch brokers have; they are the first so many."""
        mine = f"{_quoted(SINK)} = {_text(state.sink)} AND {_quoted(BATCH)} = {_text(manifest.label)}"
        base = last = state.standing.seq
        reading = await self._in_time(client.read(mine, since=state.position), LONG)
        is_sure = True
        while True:
            try:
                events = await self._in_time(reading.take(TAKE), LONG)
            except SkippedError as error:
                # An event after the forgotten ones tells how many they are; without such an event nobody knows.
                is_sure = is_sure and error.gap is None
                last = max([last, *(end for _, end in error.lost.get(client.name, ()))])
                continue
            if not events:
                break
            last = max([last, *(event.seq for event in events if event.publisher == client.name)])
        if is_sure or last > base:
            return last - base
        if self._options.published < 0:
            raise self._unknown(manifest)
        if self._options.published > manifest.count:
            raise SparkError(
                f"the option 'published' is {self._options.published:,}, but batch {manifest.label} has "
                f"{manifest.count:,} events; give the number of those that have {BATCH} = {manifest.label!r}"
            )
        return self._options.published

    def _unknown(self, manifest: Manifest) -> SparkError:
        return SparkError(
            f"batch {manifest.label} of sink {self._options.sink!r} was being published when the driver ended, and "
            "brokers have forgotten what was published since, so nobody knows how many of its events are there; find "
            f"out how many have {BATCH} = {manifest.label!r}, and start the query once with that number as the option "
            "'published'; for the future, let brokers keep more (history_bytes)"
        )

    # ---- the network --------------------------------------------------------------------------------------

    def _client(self, standing: Identity | None) -> Opening[Client]:
        # A part of a trace belongs to one process, and this client may have many.
        network = self._network
        return connect_as(network.url, "sink", standing, timeout_s=network.timeout_s, credentials=network.credentials)

    async def _in_time(self, work: Awaitable[T], times: int = 2) -> T:
        return await in_time(self._network, work, times)


def _batches(path: Path) -> Iterator[pa.RecordBatch]:
    with pa.memory_map(str(path)) as source, pa.ipc.open_file(source) as reader:
        for place in range(reader.num_record_batches):
            yield reader.get_batch(place)


def _quoted(name: str) -> str:
    return '"' + name + '"'


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
