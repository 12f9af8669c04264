"""Archives: directories that keep events in Parquet files, by date, for longer than brokers do.

| purpose | module |
| --- | --- |
| the files of an archive | `directory` |
| writing events to files | `writing` |
| merging small files | `compacting` |
| reading events | `reading` |
"""

from gapless.archive.compacting import compact
from gapless.archive.directory import Archive, ArchivedFile, Contents
from gapless.archive.reading import read_file, read_files, read_on
from gapless.archive.writing import ArchiveWriter

__all__ = ["Archive", "ArchiveWriter", "ArchivedFile", "Contents", "compact", "read_file", "read_files", "read_on"]
