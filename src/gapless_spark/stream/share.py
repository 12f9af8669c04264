"""A share: the events of a batch that one client publishes, in order.

A batch has one share for each client of its sink. Its manifest assigns files to shares, and thereby fixes the number of
each event, whichever process publishes the share.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import msgspec
import pyarrow as pa

from gapless.client import Client
from gapless.errors import SparkError
from gapless.events import Attributes
from gapless_spark.stream.layout import SINK, Layout

__all__ = ["Share", "advertised", "publish"]


class Share(msgspec.Struct, frozen=True):
    """The events of a share, without the client that publishes them."""

    label: str
    """The batch: the attribute `sink.batch` of its events."""
    files: list[tuple[str, int, int]]
    """Each file, its number of events, and the index of the first of them in the batch."""
    skipped: int = 0
    """The number of the first events that are already published."""

    def events(self, opened: Callable[[str], Any], layout: Layout, sink: str) -> Iterator[tuple[Attributes, bytes]]:
        """Yield the events still to be published, from files opened with `opened`."""
        skipped = self.skipped
        for file, count, first in self.files:
            if count <= skipped:
                skipped -= count
                continue
            for batch in _batches(opened(file)):
                kept = batch.slice(min(skipped, batch.num_rows))
                skipped -= batch.num_rows - kept.num_rows
                if kept.num_rows:
                    place = first + batch.num_rows - kept.num_rows
                    yield from layout.events(kept, sink, self.label, place)
                first += batch.num_rows


def _batches(opened: Any) -> Iterator[pa.RecordBatch]:
    with opened as source, pa.ipc.open_file(source) as reader:
        for place in range(reader.num_record_batches):
            yield reader.get_batch(place)


def advertised(sink: str) -> str:
    """Return the filter that matches all events of a sink."""
    text = sink.replace("'", "''")
    return f"\"{SINK}\" = '{text}'"


async def publish(
    client: Client,
    events: Iterator[tuple[Attributes, bytes]],
    label: str,
    patience_s: float,
    on_confirmed: Callable[[int], Awaitable[None]] | None = None,
) -> None:
    """Publish these events; return when all are confirmed.

    `on_confirmed` is called about once a second with the number of the last confirmed event. Raises a `SparkError` if
    nothing was confirmed during the time limit.
    """
    publishing = asyncio.ensure_future(client.publish_many(events))
    confirmed, waited_s = client.confirmed, 0.0
    step_s = patience_s if on_confirmed is None else min(1.0, patience_s)
    try:
        while not publishing.done():
            await asyncio.wait([publishing], timeout=step_s)
            if on_confirmed is not None:
                await on_confirmed(client.confirmed)
            waited_s = 0.0 if client.confirmed != confirmed else waited_s + step_s
            confirmed = client.confirmed
            if not publishing.done() and waited_s >= patience_s:
                raise SparkError(
                    f"no event of batch {label} was confirmed for {patience_s:g} s: "
                    f"{client.blocked_reason or 'brokers wait for one that is down'}; run gapless status, and "
                    "start the query again, which publishes only the missing events"
                )
        await publishing
    finally:
        publishing.cancel()
