"""Writes events to the files of an archive, by date and with a suitable size. A file is complete before it is
listed.
"""

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from gapless.archive.directory import Archive, ArchivedFile, Contents
from gapless.events import Event
from gapless.positions import Position
from gapless.trace.attributes_text import attributes_to_text

__all__ = ["SCHEMA", "ArchiveWriter", "date_of", "table_of"]

SCHEMA = pa.schema(
    [
        ("publisher", pa.string()),
        ("seq", pa.int64()),
        ("position", pa.string()),
        ("published_at", pa.timestamp("us", tz="UTC")),
        ("attributes", pa.string()),
        ("payload", pa.binary()),
    ]
)
"""The columns of a file. Attributes are JSON text, so that each keeps its type. A position is text, with its timestamp
in another column."""

GROUP = 65_536
"""Number of events in one row group."""
GROUP_BYTES = 16 * 1024 * 1024
FILE_BYTES = 128 * 1024 * 1024
"""Approximate size of a file before compression."""


class ArchiveWriter:
    """Appends events to an archive, ordered by position."""

    def __init__(self, archive: Archive, contents: Contents) -> None:
        self._archive = archive
        self.contents = contents
        self._group: list[Event] = []
        self._group_bytes = 0
        self._file: _File | None = None
        self._full: list[ArchivedFile] = []
        """Files that are complete but not listed yet."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {str(self._archive.path)!r}>"

    def add(self, events: Sequence[Event]) -> None:
        """Add events, which must follow the earlier ones in the order of positions."""
        for event in events:
            last = self._group[-1] if self._group else None
            if last is not None and last.stamp != event.stamp:
                # Events of one timestamp stay in one file, so that a file ends with a network-wide position.
                if date_of(last.stamp) != date_of(event.stamp):
                    self._end_file(Position.at(last.stamp))
                elif len(self._group) >= GROUP or self._group_bytes >= GROUP_BYTES:
                    self._write_group()
                    if self._file is not None and self._file.size >= FILE_BYTES:
                        self._end_file(Position.at(last.stamp))
            self._group.append(event)
            self._group_bytes += 200 + len(event.payload)

    def commit(self, until: Position) -> int:
        """Add all events up to this position to the archive's list of files. Return the number of added events."""
        self._end_file(until)
        full, self._full = self._full, []
        if full:
            full[-1] = msgspec.structs.replace(full[-1], until=until)
        self.contents = msgspec.structs.replace(self.contents, until=until, files=[*self.contents.files, *full])
        self._archive.replace(self.contents)
        return sum(file.events for file in full)

    def note_gap(self, since: Position, until: Position) -> None:
        """Record that events between these positions are missing. The next commit writes it to the list."""
        gaps = list(self.contents.gaps)
        if gaps and gaps[-1][1] >= since:
            since, until = gaps[-1][0], max(until, gaps.pop()[1])
        self.contents = msgspec.structs.replace(self.contents, gaps=[*gaps, (since, until)])

    @property
    def size(self) -> int:
        """Return the approximate number of bytes that are added but not listed."""
        return self._group_bytes + (self._file.size if self._file is not None else 0) + sum(f.size for f in self._full)

    def _write_group(self) -> None:
        if self._group:
            if self._file is None:
                self._file = _File(self._archive.path, self._group[0].stamp)
            self._file.write(self._group, self._group_bytes)
            self._group, self._group_bytes = [], 0

    def _end_file(self, until: Position) -> None:
        self._write_group()
        if self._file is not None:
            since = self._full[-1].until if self._full else self.contents.until
            self._full.append(self._file.close(since, until))
            self._file = None


class _File:
    """A file that is being written."""

    def __init__(self, root: Path, stamp: int) -> None:
        self._root = root
        self._folder = root / f"date={date_of(stamp)}"
        self._folder.mkdir(exist_ok=True)
        self._path = self._folder / f"{Position.at(stamp)}.parquet.new"
        self._writer = pq.ParquetWriter(self._path, SCHEMA, compression="zstd")
        self._events = 0
        self.size = 0
        """The approximate size of the data written so far, in bytes before compression."""

    def write(self, events: Sequence[Event], size: int) -> None:
        """Write one row group."""
        self._writer.write_table(table_of(events))
        self._events += len(events)
        self.size += size

    def close(self, since: Position, until: Position) -> ArchivedFile:
        """Close the complete file."""
        self._writer.close()
        path = self._folder / f"{until}.parquet"
        self._path.replace(path)
        with path.open("rb") as file:
            os.fsync(file.fileno())
        return ArchivedFile(str(path.relative_to(self._root)), since, until, self._events, path.stat().st_size)


def table_of(events: Sequence[Event]) -> pa.Table:
    """Return the events as a table for a file."""
    stamps = pa.array([event.stamp for event in events], pa.int64())
    columns = [
        pa.array([event.publisher for event in events], pa.string()),
        pa.array([event.seq for event in events], pa.int64()),
        pa.array([str(event.position) for event in events], pa.string()),
        stamps.cast(pa.timestamp("us", tz="UTC")),
        pa.array([attributes_to_text(event.attributes) for event in events], pa.string()),
        pa.array([event.payload for event in events], pa.binary()),
    ]
    return pa.Table.from_arrays(columns, schema=SCHEMA)


def date_of(stamp: int) -> str:
    """Return the date of a timestamp in UTC, as text."""
    return datetime.fromtimestamp(stamp / 1e6, UTC).date().isoformat()
