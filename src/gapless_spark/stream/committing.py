"""How a batch becomes events, once: the driver publishes what its manifest lists (`staging`), as one client.

The client is the same for all batches of a sink, whichever process speaks for it (`gapless.client.standing`), and its
number after a batch is known. So after a failure, whoever goes on

1. takes the client over: of what the process before had sent, nothing is taken any more that was not taken then;
2. reads in history how much of the batch is there. What history has lost is told with its numbers, so that is known,
   too; unless brokers have forgotten even those, and then the query ends with a sentence;
3. publishes the rest, under the numbers that follow.

**Effects come after their causes.** Before it publishes, the client reads up to the newest position, which lies after
the end of everything that any source has read. So its broker stamps what it publishes with larger numbers, and lets it
out later than what lies up to there.

In that reading it also sees whether somebody else publishes under the name of the sink.
"""

import asyncio
from collections.abc import Awaitable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import msgspec
import pyarrow as pa

from gapless.client import Client
from gapless.client.connecting import Connecting
from gapless.client.standing import Standing
from gapless.errors import SkippedError, SparkError
from gapless.events import Attributes, Event
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
        """Publish it, if it is not yet. The directory is ours alone meanwhile."""
        state, manifest = self._staging.state(), self._staging.manifest()
        if state is not None:
            self._check_owner(state, batch)
            if manifest is not None:
                state = await self._go_on(state, manifest)
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
        """Nobody used the name of the sink, as far as brokers remember."""
        first, position = await self._look(client, f"{_quoted(SINK)} = {_text(self._options.sink)}", 0)
        state = State(self._options.sink, client.network, batch.owner, batch.run, position=position)
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

    async def _look(self, client: Client, text: str, since: int) -> tuple[Event | None, int]:
        """The first event that matches, and up to where there is no other that is not known."""
        reading = await self._in_time(client.read(text, since=since or "earliest"), LONG)
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
            state = self._later(state)
        async with self._client(state.standing if state is not None else None) as client:
            self._check_size(client, batch)
            if state is None:
                state = await self._begin(client, batch)
            else:
                self._check_network(client, state)
                state = await self._look_for_others(client, state)
            await self._advertise(client)
            state = msgspec.structs.replace(state, standing=client.standing)
            label = f"{state.run}/{batch.key}"
            manifest = Manifest(label, batch.number, batch.name, batch.files, state.position)
            self._staging.keep(state)
            self._staging.decide(manifest)
            self._staging.clear(manifest)
            await self._publish(client, state, manifest, 0)

    def _later(self, state: State) -> State:
        assert state.standing is not None, "it is known once there is a state"
        state = msgspec.structs.replace(state, standing=state.standing.later())
        self._staging.keep(state)
        return state

    async def _advertise(self, client: Client) -> None:
        await self._in_time(client.advertise(f"{_quoted(SINK)} = {_text(self._options.sink)}"), LONG)

    async def _publish(self, client: Client, state: State, manifest: Manifest, there: int) -> State:
        """All but the first so many."""
        publishing = asyncio.ensure_future(client.publish_many(self._events(manifest, there)))
        done = 0
        while not publishing.done():
            before = done
            await asyncio.wait([publishing], timeout=PATIENT * self._network.timeout_s)
            done = client.confirmed
            if not publishing.done() and done == before:
                publishing.cancel()
                raise SparkError(
                    f"nothing of batch {manifest.label} became safe for {PATIENT * self._network.timeout_s:g} s; "
                    f"{client.hold_up or 'brokers wait for one that is down'}; gapless status tells; what is there is "
                    "not published again when the query is started anew"
                )
        await publishing
        state = msgspec.structs.replace(state, standing=client.standing, done=max(state.done, manifest.number))
        self._staging.finish(manifest, state)
        return state

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

    async def _go_on(self, state: State, manifest: Manifest) -> State:
        """Publish the rest of a batch that another process has begun."""
        state = self._later(state)
        assert state.standing is not None
        base = state.standing.seq
        async with self._client(state.standing) as client:
            self._check_network(client, state)
            there = await self._published(client, manifest, base)
            state = msgspec.structs.replace(state, standing=msgspec.structs.replace(client.standing, seq=base))
        # Numbers go on after what is there, and brokers hear of it when the client attaches again.
        state = self._later(state)
        assert state.standing is not None
        async with self._client(msgspec.structs.replace(state.standing, seq=base + there)) as client:
            await self._advertise(client)
            return await self._publish(client, state, manifest, there)

    async def _published(self, client: Client, manifest: Manifest, base: int) -> int:
        """How many of its events brokers have; they are the first so many."""
        mine = f"{_quoted(SINK)} = {_text(self._options.sink)} AND {_quoted(BATCH)} = {_text(manifest.label)}"
        reading = await self._in_time(client.read(mine, since=manifest.since), LONG)
        last, is_sure = base, True
        while True:
            try:
                events = await self._in_time(reading.take(TAKE), LONG)
            except SkippedError as error:
                # Whatever comes after what is forgotten tells the last number; if nothing does, nobody knows it.
                is_sure = is_sure and error.gap is None
                last = max([last, *(end for _, end in error.lost.get(client.name, ()))])
                continue
            if not events:
                break
            last = max(last, events[-1].seq)
        if is_sure or last > base:
            return last - base
        if self._options.published < 0:
            raise self._unknown(manifest)
        return self._options.published

    def _unknown(self, manifest: Manifest) -> SparkError:
        return SparkError(
            f"batch {manifest.label} of sink {self._options.sink!r} was being published when the driver ended, and "
            "brokers have forgotten what was published since, so nobody knows how much of it is there; let brokers "
            f"keep more (history_bytes); find out how many events have {BATCH} = {manifest.label!r}, and start the "
            "query once with that number as the option 'published'"
        )

    # ---- the network --------------------------------------------------------------------------------------

    def _client(self, standing: Standing | None) -> Connecting:
        # A part of a trace belongs to one process, and this client may have many.
        network = self._network
        return Connecting(network.brokers, "sink", network.timeout_s, "", network.credentials, standing)

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
