"""The file operations of a staging directory, and what a crash can undo.

A machine that crashes can lose the content of a file until the file is synced, and any change of names in a folder
until the folder is synced. Staging uses only these operations, so a test can crash between any two of them and undo
each that was not synced.
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
        """Write a new file. Its content is durable afterwards; its name is durable once the folder is synced."""
        with path.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())

    def rename(self, path: Path, target: Path) -> None:
        """Rename a file within its folder atomically, replacing any file with the new name."""
        path.replace(target)

    def remove(self, path: Path) -> None:
        """Remove a file, if it exists."""
        path.unlink(missing_ok=True)

    def sync(self, folder: Path) -> None:
        """Make all changes of names in the folder durable."""
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)

    def make_folder(self, folder: Path) -> None:
        """Create a folder and its missing parents. They are durable afterwards."""
        missing = [each for each in (folder, *folder.parents) if not each.exists()]
        folder.mkdir(parents=True, exist_ok=True)
        for each in reversed(missing):
            self.sync(each.parent)
