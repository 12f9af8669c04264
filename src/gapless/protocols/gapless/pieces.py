"""Long work in pieces, so that no turn of an event loop takes long.

A long computation is a generator. It yields how much it has done since it last did, in units: one unit is about what an
event costs on its way through a broker, a tenth of a millisecond at most. Whoever drives it stops when a turn's share
is done, and goes on in the next. Units are counted and not timed, so that a run is the same whenever it is repeated.
"""

from collections.abc import Generator
from typing import TypeAlias, TypeVar

__all__ = ["Pieces", "finish"]

T = TypeVar("T")
Pieces: TypeAlias = Generator[int, None, T]


def finish(pieces: Pieces[T]) -> T:
    """Do all of it at once; return what it comes to."""
    while True:
        try:
            next(pieces)
        except StopIteration as end:
            result: T = end.value
            return result
