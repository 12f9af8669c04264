"""Sentences as columns, written as they read."""

from string import Formatter

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812

__all__ = ["event_name", "sentence"]


def sentence(template: str, **parts: Column) -> Column:
    """The text, with each name in braces replaced by the part or else the column of that name; null if one is null."""
    pieces: list[Column] = []
    for text, name, _, _ in Formatter().parse(template):
        if text:
            pieces.append(F.lit(text))
        if name is not None:
            pieces.append((parts[name] if name in parts else F.col(name)).cast("string"))
    return F.concat(*pieces)


def event_name(name: Column | str, seq: Column | str) -> Column:
    """The id of an event, from its publisher's name."""
    return F.concat(name, F.lit(":"), (F.col(seq) if isinstance(seq, str) else seq).cast("string"))
