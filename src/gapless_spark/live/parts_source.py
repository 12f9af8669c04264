"""Parts of a trace as a stream: `spark.readStream.format("gapless-parts").option("path", DIR)`.

An offset is how far each file was read, always to the end of a record; a part that is written has half a record at its
end now and then. So a batch that is read again is the same. Files that grow are divided among tasks.

When nothing is written any more, a few batches without a record follow, each with a *tick*: who waits for something
sees that all was read again and it was not there.
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
from gapless_spark.told import sentences

__all__ = ["TICKS", "PartsSource", "whole_frames"]

TICKS = 3
"""Batches without a record that follow the last one with some."""
BATCH_BYTES = 64 * 1024 * 1024
"""Read at most in one batch."""
TASKS = 2

_HEAD = Struct("<II")
_SCHEMA = pa.schema([("part", pa.string()), ("place", pa.int64()), ("record", pa.binary())])


class PartsSource(DataSource):
    """What Spark asks for readers."""

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return "gapless-parts"

    def schema(self) -> str:
        """Of which part, where in it, and what it says; a tick has no part."""
        return "part string, place bigint, record binary"

    def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: N802 - Spark's word
        """Of a stream: there is nothing else."""
        return PartsReader(self.options["path"])


class _Share(InputPartition):
    def __init__(self, pieces: list[tuple[str, int, int]], tick: int) -> None:
        super().__init__(0)
        self.pieces = pieces
        self.tick = tick


class PartsReader(DataSourceStreamReader):
    """Reads what clients write, from where it was read to where it ends."""

    def __init__(self, path: str) -> None:
        self._folder = Path(path) / PARTS

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        """The beginning of all parts."""
        return {"read": {}, "ticks": TICKS, "batch": 0}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """All that is there."""
        return ReadAllAvailable()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        """How far each part can be read; the same as before if nothing is new."""
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
        """What was written in between, dealt out."""
        pieces = [
            (str(self._folder / name), start["read"].get(name, 0), upto)
            for name, upto in end["read"].items()
            if upto > start["read"].get(name, 0)
        ]
        shares = [pieces[number::TASKS] for number in range(min(TASKS, len(pieces)))]
        return [_Share(share, -1) for share in shares] + [_Share([], end["batch"])]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The records of some parts."""
        assert isinstance(partition, _Share)
        with sentences():
            if partition.tick >= 0:
                yield pa.RecordBatch.from_pydict({"part": [""], "place": [partition.tick], "record": [b""]}, _SCHEMA)
            for address, begin, end in partition.pieces:
                yield _records(Path(address), begin, end)


def whole_frames(path: Path, begin: int, most: int) -> int:
    """Up to where the part can be read, from a record's beginning on: to the end of one that is whole."""
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
