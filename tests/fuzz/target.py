"""The interface of a target, and the list of all targets."""

from __future__ import annotations

import tempfile
from abc import ABC, abstractmethod
from pathlib import Path
from random import Random
from typing import ClassVar

__all__ = ["Target", "Unexpected", "scratch_folder"]

MEMORY = Path("/dev/shm")
"""Where there are files that are on no disk. Thousands a second are made."""


class Unexpected(AssertionError):  # noqa: N818 - what it says stands in its sentence
    """An answer that contradicts another one."""


def scratch_folder() -> Path:
    """A new directory for the files of a target; it removes it when it is closed."""
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
        """The input with something in it changed, by its structure where it has one."""

    @abstractmethod
    def run(self, data: bytes) -> str:
        """Hand it over. Returns one word for what became of it; raises what nobody expected."""

    def close(self) -> None:  # noqa: B027 - most keep nothing
        pass
