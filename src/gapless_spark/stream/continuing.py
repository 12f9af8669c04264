"""One history over an archive and brokers: reads the archived part from the archive, the rest from brokers.

The seam is the position up to which the archive is complete. History from before the archive began is also read from
brokers, because they may still have it.
"""

import logging
from pathlib import Path

from gapless.archive import Archive, Contents
from gapless.errors import SparkError
from gapless.filters import parse
from gapless.positions import Position
from gapless_spark.stream.lookout import Portion, thinned
from gapless_spark.stream.reading import ArchivedRange

__all__ = ["archived", "archived_portion", "archived_ranges", "around"]


def archived(directory: str, network: str, text: str) -> Contents:
    """Return the contents of the archive if it belongs to this network and has all matching events; otherwise None."""
    contents = Archive(directory).contents()
    if contents.network != network:
        raise SparkError(
            f"{directory} is an archive of network {contents.network!r}, but these brokers are of network "
            f"{network!r}; set the option 'archive' to another directory"
        )
    if not parse(contents.filter).covers(parse(text)):
        raise SparkError(
            f"the archive {directory} holds events that match {contents.filter!r}, which is less than "
            f"{text!r} matches; narrow the option 'filter', or read without the archive"
        )
    return contents


def archived_ranges(
    directory: str, contents: Contents, since: Position, until: Position, *, fails: bool
) -> list[ArchivedRange]:
    """Return the ranges that tasks read of the archive, one for each file."""
    since, until = max(since, contents.since), min(until, contents.until)
    for first, last in contents.gaps:
        if first < until and last >= since:
            gap = f"the archive {directory} lacks events between positions {first} and {last}: brokers had lost them"
            if fails:
                raise SparkError(f"{gap}; to continue without it set the option failOnDataLoss to false")
            logging.getLogger("gapless.spark").warning(gap)
    logging.getLogger("gapless.spark").info(f"history up to position {contents.until} is read from {directory}")
    return [
        ArchivedRange(max(since, file.since), min(until, file.until), str(Path(directory) / file.path))
        for file in contents.between(since, until)
    ]


def archived_portion(contents: Contents, since: Position, target: Position | None, events_max: int) -> Portion | None:
    """Return the part of an archive that a micro-batch reads, in whole files; None if nothing is after that position.

    Without a limit it is everything. A batch has at least one file.
    """
    files = [file for file in contents.between(since, target or contents.until) if file.events]
    if not files or since < contents.since:
        return None
    count = 1
    while count < len(files) and (not events_max or sum(file.events for file in files[: count + 1]) <= events_max):
        count += 1
    ends = [file.until for file in files[:count]]
    if count == len(files):
        ends[-1] = contents.until
    until = ends[-1] if target is None else min(ends[-1], target)
    return Portion(until, thinned([end for end in ends[:-1] if end < until]), is_empty=False, gone=0)


def around(contents: Contents, since: Position, until: Position) -> list[tuple[Position, Position]]:
    """Return the parts of a range that must come from brokers."""
    parts = [(since, min(until, contents.since)), (max(since, contents.until), until)]
    return [(first, last) for first, last in parts if first < last]
