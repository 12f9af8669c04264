"""History that outlives what brokers keep: events in Parquet files, by date.

| rule | file |
| --- | --- |
| what an archive is, on disk | `directory` |
| how events get into files | `writing` |
| small files become larger ones | `compacting` |
| how they are read again | `reading` |
"""

from gapless.archive.compacting import compact
from gapless.archive.directory import Archive, ArchivedFile, Contents
from gapless.archive.reading import read_file, read_files, read_on
from gapless.archive.writing import ArchiveWriter

__all__ = ["Archive", "ArchiveWriter", "ArchivedFile", "Contents", "compact", "read_file", "read_files", "read_on"]
