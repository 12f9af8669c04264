"""Merges small files of an archive into larger ones. Frequent archiving writes many files, and reading them is slow."""

from itertools import groupby
from pathlib import Path

import msgspec
import pyarrow.parquet as pq

from gapless.archive.directory import Archive, ArchivedFile, Contents
from gapless.archive.writing import SCHEMA

__all__ = ["compact"]

SMALL = 32 * 1024 * 1024
"""The size in bytes below which a file can be merged."""
MANY = 16
"""The minimum number of consecutive small files of a date that are merged."""


def compact(archive: Archive, contents: Contents, many: int = MANY) -> Contents:
    """Merge small files. Return the new contents, with the same events in at most as many files."""
    files: list[ArchivedFile] = []
    old: list[ArchivedFile] = []
    for _, run in groupby(contents.files, lambda file: (Path(file.path).parent, file.size < SMALL)):
        some = list(run)
        if len(some) >= many and some[0].size < SMALL:
            files.append(_merged(archive, some))
            old += some
        else:
            files += some
    if not old:
        return contents
    contents = msgspec.structs.replace(contents, files=files)
    archive.replace(contents)
    for file in old:
        (archive.path / file.path).unlink(missing_ok=True)
    return contents


def _merged(archive: Archive, files: list[ArchivedFile]) -> ArchivedFile:
    first, last = files[0], files[-1]
    path = archive.path / Path(last.path).parent / f"{last.until}-{len(files)}.parquet"
    with pq.ParquetWriter(path, SCHEMA, compression="zstd") as writer:
        for file in files:
            with pq.ParquetFile(archive.path / file.path) as source:
                for group in range(source.num_row_groups):
                    writer.write_table(source.read_row_group(group))
    return ArchivedFile(
        str(path.relative_to(archive.path)), first.since, last.until, sum(file.events for file in files),
        path.stat().st_size,
    )  # fmt: skip
