"""The file operations of a staging directory, and how long each may be undone by a crash.

A machine that crashes may lose the content of a file until the file is synced, and any change of names in a folder
until the folder is synced. Staging goes through these operations alone, so a test can crash between any two of them and
undo each that was not synced.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

__all__ = ["Files"]


class Files:
    """The operations on a real file system."""

    @contextmanager
    def create(self, path: Path) -> Iterator[BinaryIO]:
        """Write a new file. Its content is on the disk afterwards; its name is, once the folder is synced."""
        with path.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())

    def rename(self, path: Path, target: Path) -> None:
        """Give a file another name in its folder, in one step; a file that had that name is replaced."""
        path.replace(target)

    def remove(self, path: Path) -> None:
        """Remove a file, if it is there."""
        path.unlink(missing_ok=True)

    def sync(self, folder: Path) -> None:
        """Make all changes of names in the folder durable."""
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)

    def make_folder(self, folder: Path) -> None:
        """Make a folder, and those above it, if they are missing. They are durable afterwards."""
        missing = [each for each in (folder, *folder.parents) if not each.exists()]
        folder.mkdir(parents=True, exist_ok=True)
        for each in reversed(missing):
            self.sync(each.parent)
