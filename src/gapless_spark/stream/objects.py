"""The operations of staging on a cloud object store: whole objects are written, read, listed and removed.

An object appears with its whole content when its writer closes it, and all processes see it from then on. Nothing is
renamed, and nothing is locked.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, cast
from urllib.parse import urlsplit, urlunsplit

import pyarrow as pa
from pyarrow.fs import FileInfo, FileSelector, FileSystem, FileType

from gapless.errors import SparkError
from gapless_spark.stream.files import Files

__all__ = ["SCHEMES", "Objects", "below"]

SCHEMES = ("s3", "s3a", "s3n", "gs", "gcs", "abfs", "abfss")
"""The URL schemes of object stores; Spark uses its own for some."""


def below(url: str, name: str) -> str:
    """Return the URL of a place below this one."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(path=f"{parts.path.rstrip('/')}/{name}"))


class Objects(Files):
    """The objects of one store, with bucket and key as paths."""

    def __init__(self, store: FileSystem) -> None:
        self._store = store

    @staticmethod
    def at(url: str) -> tuple["Objects", Path]:
        """Return the store, and the path of the place that the URL names."""
        parts = urlsplit(url)
        scheme = "s3" if parts.scheme in ("s3a", "s3n") else parts.scheme
        try:
            store, path = FileSystem.from_uri(urlunsplit(parts._replace(scheme=scheme)))
        except (pa.ArrowException, OSError, ValueError) as error:
            raise SparkError(f"{parts.scheme}://{parts.hostname}{parts.path} cannot be used: {error}") from None
        return Objects(store), Path(path)

    @contextmanager
    def create(self, path: Path) -> Iterator[BinaryIO]:
        """Write an object. It is visible and complete afterwards."""
        with self._store.open_output_stream(path.as_posix()) as file:
            yield cast(BinaryIO, file)

    def rename(self, path: Path, target: Path) -> None:
        """Raise an error: object stores cannot rename, and staging does not need it."""
        raise AssertionError("objects are not renamed")

    def remove(self, path: Path) -> None:
        """Remove an object, if it exists."""
        with suppress(FileNotFoundError):
            self._store.delete_file(path.as_posix())

    def sync(self, folder: Path) -> None:
        """Do nothing: written objects are durable."""

    def make_folder(self, folder: Path) -> None:
        """Do nothing: names of objects need no folder."""

    def exists(self, path: Path) -> bool:
        """Return whether the object exists."""
        return bool(self._store.get_file_info(path.as_posix()).type == FileType.File)

    def read(self, path: Path) -> bytes:
        """Return the content of an object."""
        with self._store.open_input_stream(path.as_posix()) as file:
            return bytes(file.read())

    def opened(self, path: Path) -> Any:
        """Open an object for reading parts of it."""
        return self._store.open_input_file(path.as_posix())

    def listed(self, folder: Path) -> list[tuple[Path, float]]:
        """Return the objects directly in a folder, with their times of writing in seconds since 1970."""
        found: list[FileInfo] = self._store.get_file_info(FileSelector(folder.as_posix(), allow_not_found=True))
        return [(Path(info.path), info.mtime.timestamp()) for info in found if info.type == FileType.File]
