"""The interface of a target, and the list of all targets."""

from __future__ import annotations

import tempfile
from abc import ABC, abstractmethod
from pathlib import Path
from random import Random
from typing import ClassVar

__all__ = ["Target", "Unexpected", "scratch_folder"]

MEMORY = Path("/dev/shm")
"""A directory in memory, because thousands of files per second are created."""


class Unexpected(AssertionError):  # noqa: N818 - what it says stands in its sentence
    """Two results contradict each other."""


def scratch_folder() -> Path:
    """Create a directory for the files of a target, and remove it at the end."""
    return Path(tempfile.mkdtemp(prefix="gapless-fuzz.", dir=MEMORY if MEMORY.is_dir() else None))


class Target(ABC):
    """An entry point for data from outside. Each run creates one, so it can cache expensive objects."""

    name: ClassVar[str]
    about: ClassVar[str]

    @abstractmethod
    def draw(self, dice: Random) -> bytes:
        pass

    @abstractmethod
    def change(self, data: bytes, dice: Random) -> bytes:
        """Return the input with a change, by its structure if it has one."""

    @abstractmethod
    def run(self, data: bytes) -> str:
        """Run an input, and return a word for the result. Unexpected errors are raised."""

    def close(self) -> None:  # noqa: B027 - most keep nothing
        pass
