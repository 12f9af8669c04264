"""What an audit keeps on the executors because it is used again, and how to be rid of it.

Spark forgets how a *materialised* table was computed, so plans that use it stay small however many steps lie behind it.
A table that is *kept* is stored by columns, compressed: that is for the few large ones.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from gapless.errors import TraceError

__all__ = ["Keeper", "materialise", "shared"]

SHARED_ROWS_MAX = 1_000_000
"""Rows of a table that every executor gets a copy of, instead of sending the large tables to where its rows are."""


class Keeper:
    """Remembers what is kept."""

    def __init__(self) -> None:
        self._kept: list[DataFrame] = []

    def keep(self, frame: DataFrame) -> DataFrame:
        """Compute the frame once, when it is first used, and keep it: in memory, and on disk where that is short."""
        self._kept.append(frame)
        return frame.persist()

    def take_over(self, other: "Keeper") -> None:
        """Remember, too, what another keeps."""
        self._kept += other._kept

    def release(self) -> None:
        """Forget it all."""
        while self._kept:
            self._kept.pop().unpersist()


def materialise(frame: DataFrame) -> DataFrame:
    """Compute the frame now, and forget how. It lives as long as something refers to it."""
    return frame.localCheckpoint()


def shared(frame: DataFrame, fault: str | None = None) -> DataFrame:
    """Compute a frame that is usually small, and keep it. If it is small, joins get a copy of it.

    If the column `fault` has a sentence, the first one is said with a `TraceError`.
    """
    kept = materialise(frame)
    rows, said = kept.agg(F.count("*"), F.min(fault) if fault else F.lit(None)).collect()[0]
    if said is not None:
        raise TraceError(said)
    return F.broadcast(kept) if rows <= SHARED_ROWS_MAX else kept
