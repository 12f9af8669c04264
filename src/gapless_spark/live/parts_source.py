"""Parts of a trace as a stream: `spark.readStream.format("gapless-parts").option("path", DIR)`.

An offset is how far each file was read, always to the end of a record, because a part that is being written can end
with half a record. So a batch that is read again is the same. Growing files are divided among tasks.

When no more records arrive, a few batches without a record follow, each with a *tick*: a subscription that waits for a
record can conclude that it does not exist.
"""

import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from struct import Struct
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit

from gapless.errors import TraceError
from gapless.trace.part_log import MAGIC
from gapless.trace.part_recorder import PARTS, SUFFIX
from gapless_spark.error_sentences import sentences

__all__ = ["TICKS", "PartsSource", "whole_frames"]

TICKS = 3
"""The number of empty batches after the last one with records."""
BATCH_BYTES = 64 * 1024 * 1024
"""The maximum read in one batch."""
TASKS = 2

_HEAD = Struct("<II")
_SCHEMA = pa.schema([("part", pa.string()), ("place", pa.int64()), ("record", pa.binary())])


class PartsSource(DataSource):
    """Implements Spark's interface for data sources."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "gapless-parts"

    def schema(self) -> str:
        """Return the columns: part, place in it, and record; a tick has no part."""
        return "part string, place bigint, record binary"

    def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: N802 - Spark's word
        """Return the reader of a stream, the only supported kind."""
        return PartsReader(self.options["path"])


class _Share(InputPartition):
    def __init__(self, pieces: list[tuple[str, int, int]], tick: int) -> None:
        super().__init__(0)
        self.pieces = pieces
        self.tick = tick


class PartsReader(DataSourceStreamReader):
    """Reads the clients' recordings, from the last offset to their current end."""

    def __init__(self, path: str) -> None:
        self._folder = Path(path) / PARTS

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        """Return the beginning of all parts."""
        return {"read": {}, "ticks": TICKS, "batch": 0}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Return the limit of a batch: all available records."""
        return ReadAllAvailable()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        """Return how far each part can be read; the previous offset if there is nothing new."""
        with sentences():
            read, budget = dict(start["read"]), BATCH_BYTES
            for path in sorted(self._folder.glob(f"*{SUFFIX}")):
                before = read.get(path.name, 0)
                end = whole_frames(path, before, budget)
                if end > before:
                    read[path.name] = end
                    budget -= end - before
            if read != start["read"]:
                return {"read": read, "ticks": 0, "batch": start["batch"] + 1}
            if start["ticks"] < TICKS:
                return {"read": read, "ticks": start["ticks"] + 1, "batch": start["batch"] + 1}
            return start

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Return the records between two offsets, divided among tasks."""
        pieces = [
            (str(self._folder / name), start["read"].get(name, 0), upto)
            for name, upto in end["read"].items()
            if upto > start["read"].get(name, 0)
        ]
        shares = [pieces[number::TASKS] for number in range(min(TASKS, len(pieces)))]
        return [_Share(share, -1) for share in shares] + [_Share([], end["batch"])]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the records of some parts."""
        assert isinstance(partition, _Share)
        with sentences():
            if partition.tick >= 0:
                yield pa.RecordBatch.from_pydict({"part": [""], "place": [partition.tick], "record": [b""]}, _SCHEMA)
            for address, begin, end in partition.pieces:
                yield _records(Path(address), begin, end)


def whole_frames(path: Path, begin: int, most: int) -> int:
    """Return the end of the last complete record after `begin`, which is the beginning of a record."""
    try:
        with path.open("rb") as file:
            file.seek(begin)
            content = file.read(max(0, most))
    except OSError as error:
        raise TraceError(f"{path} cannot be read: {error.strerror}") from None
    if begin == 0 and not content.startswith(MAGIC):
        return 0
    place = len(MAGIC) if begin == 0 else 0
    while place + _HEAD.size <= len(content):
        length, checksum = _HEAD.unpack_from(content, place)
        start, end = place + _HEAD.size, place + _HEAD.size + length
        if end > len(content) or zlib.crc32(content[start:end]) != checksum:
            break
        place = end
    return begin + place


def _records(path: Path, begin: int, end: int) -> pa.RecordBatch:
    with path.open("rb") as file:
        file.seek(begin)
        content = file.read(end - begin)
    place = len(MAGIC) if begin == 0 else 0
    places, found = [], []
    while place < len(content):
        length, _ = _HEAD.unpack_from(content, place)
        places.append(begin + place)
        found.append(content[place + _HEAD.size : place + _HEAD.size + length])
        place += _HEAD.size + length
    columns = [pa.array([path.stem] * len(found), pa.string()), pa.array(places, pa.int64())]
    return pa.RecordBatch.from_arrays([*columns, pa.array(found, pa.binary())], schema=_SCHEMA)
