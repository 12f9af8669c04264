"""Reads one continuous history from an archive and then from brokers.

The *seam* is the position at which one ends and the other begins. The archive contains everything up to it, brokers
deliver everything after it, and a position is causally closed. So no event is missing or duplicated at the seam, and no
effect comes before its cause.

Brokers are asked only when the archive is read to its end: a reader that takes hours for that delays no other client.
If the archive has grown, the reader continues with it. Brokers are also asked for events from before the archive began.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeAlias

from gapless.client.arguments import check_path
from gapless.client.positions import EARLIEST
from gapless.errors import CallError, SkippedError
from gapless.events import Event
from gapless.filters import parse
from gapless.positions import Position

if TYPE_CHECKING:
    from gapless.archive import Archive, Contents

__all__ = ["Item", "Past", "log_seam", "open_past"]

Item: TypeAlias = list[Event] | SkippedError
"""A list of events, or the report of events missing at this place."""


class _Reading(Protocol):
    """Reads the events that precede the archive from brokers that still have them."""

    async def take(self, most: int) -> list[Event]: ...


class _Reader(Protocol):
    def read(self, filter: str, since: Position, until: Position) -> Awaitable[_Reading]: ...


class Past:
    """The events that a subscription delivers before it asks brokers for live events."""

    def __init__(
        self, archive: "Archive", contents: "Contents", text: str, since: Position, until: Position | None
    ) -> None:
        self._archive = archive
        self._begin = contents.since
        self._text = text
        self._since = since
        self._until = until
        self.position = since
        """The position up to which all events were returned."""

    @property
    def is_all(self) -> bool:
        """Return whether these events are the whole result, so that brokers need not be asked for more."""
        return self._until is not None and self.position >= self._until

    async def items(self, client: _Reader) -> AsyncIterator[Item]:
        """Yield the archived events in causal order."""
        if EARLIEST < self._since < self._begin:
            async for item in self._of_brokers(client):
                yield item
        self.position = max(self.position, self._up_to(self._begin))
        while True:
            contents = await asyncio.to_thread(self._archive.contents)
            until = self._up_to(contents.until)
            if until <= self.position:
                return
            for gap in [*_gaps(contents, self.position, until), None]:
                async for events in self._archived(until if gap is None else max(self.position, gap[0])):
                    yield events
                if gap is not None:
                    yield SkippedError(
                        f"the archive {self._archive.path} lacks events between positions {gap[0]} and {gap[1]}: "
                        "brokers had lost them before they were archived",
                        {},
                        gap,
                    )
            self.position = until

    def _up_to(self, position: Position) -> Position:
        return position if self._until is None else min(position, self._until)

    async def _archived(self, until: Position) -> AsyncIterator[list[Event]]:
        from gapless.archive import read_on

        reading = read_on(self._archive, self._text, self.position, until)
        while (found := await asyncio.to_thread(_next, reading)) is not None:
            events, self.position = found
            if events:
                yield events

    async def _of_brokers(self, client: _Reader) -> AsyncIterator[Item]:
        reading = await client.read(self._text, self._since, self._up_to(self._begin))
        while True:
            try:
                events = await reading.take(1_024)
            except SkippedError as error:
                yield error
                continue
            if not events:
                return
            self.position = max(self.position, events[-1].position)
            yield events


def open_past(directory: Path | str, network: str, text: str, since: Position, until: Position | None) -> Past:
    """Open an archive for reading between two positions. Raise an error if it belongs to another network or lacks
    matching events.
    """
    try:
        from gapless.archive import Archive
    except ModuleNotFoundError as error:
        raise CallError(f"archives need {error.name}, which is not installed; pip install 'gapless[cli]'") from None
    archive = Archive(check_path("archive", directory))
    contents = archive.contents()
    if contents.network != network:
        raise CallError(f"{directory} is an archive of network {contents.network!r}, but this is network {network!r}")
    if not parse(contents.filter).covers(parse(text)):
        raise CallError(
            f"the archive {directory} holds events that match {contents.filter!r}, which is less than {text!r} "
            "matches; "
            "narrow the filter, or do not use the archive"
        )
    return Past(archive, contents, text, since, until)


def log_seam(text: str, directory: Path | str, seam: Position) -> None:
    """Log the position at which brokers took over from the archive."""
    logging.getLogger("gapless.client").info(
        f"events that match {text!r} were read from {directory} up to position {seam}; brokers deliver the later ones",
        extra={"event": "archive.ended"},
    )


def _gaps(contents: "Contents", since: Position, until: Position) -> list[tuple[Position, Position]]:
    return [gap for gap in contents.gaps if gap[0] < until and gap[1] > since]


def _next(reading: Iterator[tuple[list[Event], Position]]) -> tuple[list[Event], Position] | None:
    return next(reading, None)
