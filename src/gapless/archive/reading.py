"""Reads events from an archive in the order of brokers, through a filter."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from gapless.archive.directory import Archive
from gapless.errors import ArchiveError
from gapless.events import Event
from gapless.filters import parse
from gapless.positions import Position
from gapless.trace.attributes_text import attributes_from_text

__all__ = ["read_file", "read_files", "read_on"]

ROWS = 8_192
"""Number of events that are read at a time."""


def read_files(archive: Archive, text: str, since: Position, until: Position) -> Iterator[list[Event]]:
    """Yield lists of matching events after one position and up to another."""
    for events, _ in read_on(archive, text, since, until):
        if events:
            yield events


def read_on(archive: Archive, text: str, since: Position, until: Position) -> Iterator[tuple[list[Event], Position]]:
    """Yield lists of matching events, each with the position reached. Files may be merged during the read."""
    place = since
    while place < until:
        contents = archive.contents()
        file = next(iter(contents.between(place, until)), None)
        if file is None:
            return
        if not (archive.path / file.path).exists() and archive.contents() != contents:
            continue
        for events in read_file(archive.path / file.path, text, place, until):
            place = events[-1].position
            yield events, place
        place = file.until
        yield [], min(place, until)


def read_file(path: Path, text: str, since: Position, until: Position) -> Iterator[list[Event]]:
    """Yield lists of matching events in one file."""
    test = parse(text).test
    try:
        with pq.ParquetFile(path) as source:
            for batch in source.iter_batches(ROWS):
                stamps = _stamps(batch)
                is_inside = pc.and_(pc.greater(stamps, since.floor), pc.less_equal(stamps, until.timestamp))
                found = _events(batch.filter(is_inside))
                events = [event for event in found if since < event.position <= until and test(event.attributes)]
                if events:
                    yield events
    except (OSError, pa.ArrowException) as error:
        raise ArchiveError(f"{path} cannot be read: {error}; it is listed in the archive") from None


def _events(batch: pa.RecordBatch) -> Iterator[Event]:
    columns = [batch.column(name).to_pylist() for name in ("publisher", "seq", "attributes", "payload")]
    for publisher, seq, text, payload, stamp in zip(*columns, _stamps(batch).to_pylist(), strict=True):
        yield Event(publisher, seq, attributes_from_text(text), payload, stamp)


def _stamps(batch: pa.RecordBatch) -> pa.Array:
    return batch.column("published_at").cast(pa.int64())
