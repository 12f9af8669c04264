"""What a target is, and the list of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from random import Random
from typing import ClassVar

__all__ = ["Target", "Unexpected"]


class Unexpected(AssertionError):  # noqa: N818 - what it says stands in its sentence
    """An answer that contradicts another one."""


class Target(ABC):
    """A door to the outside. One is made for each run, so it may keep what is costly to make."""

    name: ClassVar[str]
    about: ClassVar[str]

    @abstractmethod
    def draw(self, dice: Random) -> bytes:
        """An input as it should be, or nearly."""

    @abstractmethod
    def change(self, data: bytes, dice: Random) -> bytes:
        """The input with something in it changed, by its structure where it has one."""

    @abstractmethod
    def run(self, data: bytes) -> str:
        """Hand it over. Returns one word for what became of it; raises what nobody expected."""

    def close(self) -> None:  # noqa: B027 - most keep nothing
        """Give back what is kept."""
