"""`gapless archive`: copies published events to Parquet files before brokers discard them."""

import asyncio
from pathlib import Path

from rich.text import Text

from gapless.archive import Archive, ArchiveWriter, Contents, compact
from gapless.cli.terminal import output_console, print_json
from gapless.client import Client, connect
from gapless.client.positions import EARLIEST
from gapless.errors import ArchiveError, SkippedError
from gapless.filters import parse
from gapless.positions import Position
from gapless.runtime.event_loop import run

__all__ = ["archive_history"]

CONNECT_S = 10.0
TAKE = 4_096
LISTED_BYTES = 512 * 1024 * 1024
"""The number of archived bytes after which the archive's list of files is updated, even before the end is reached."""


def archive_history(
    url: str, text: str, directory: Path, *, every_s: float, once: bool, allow_gaps: bool, credentials: Path | None,
    as_json: bool,
) -> int:  # fmt: skip
    """Archive the available events, then repeat until interrupted. Return the exit code."""
    parse(text)
    archive = Archive(directory)
    with archive.locked():
        return run(_archive(url, text, archive, every_s, once, allow_gaps, credentials, as_json))


async def _archive(
    url: str, text: str, archive: Archive, every_s: float, once: bool, allow_gaps: bool, credentials: Path | None,
    as_json: bool,
) -> int:  # fmt: skip
    async with connect(url, name="archive", timeout_s=CONNECT_S, credentials=credentials) as client:
        known = archive.contents_if_any()
        _check(archive, known, client.network, text)
        archive.clear(known)
        contents = known or Contents(client.network, text, EARLIEST, EARLIEST)
        while True:
            contents, count = await archive_portion(client, archive, contents, allow_gaps=allow_gaps)
            contents = compact(archive, contents)
            if count or once:
                _print_summary(archive, contents, count, as_json)
            if once:
                return 0
            await asyncio.sleep(every_s)


async def archive_portion(
    client: Client, archive: Archive, contents: Contents, *, allow_gaps: bool = False
) -> tuple[Contents, int]:
    """Add the events published since the last run; return the new contents and the number of added events."""
    reading = await client.read(contents.filter, since=contents.until)
    writer = ArchiveWriter(archive, contents)
    place, count = contents.until, 0
    is_new = contents.until == EARLIEST
    lacks_after: Position | None = None
    """The position after which events are missing, if some are missing before the next archived event."""
    while True:
        try:
            events = await reading.take(TAKE)
        except SkippedError as error:
            if not allow_gaps:
                raise ArchiveError(
                    f"{error}; brokers dropped them before they were archived: let brokers keep more "
                    "(history_bytes), archive more often, and continue without them with --allow-gaps, which "
                    "records the gap in the archive"
                ) from None
            if error.gap is not None:
                writer.note_gap(*error.gap)
            else:
                lacks_after = place
            continue
        if lacks_after is not None:
            writer.note_gap(lacks_after, Position.at(events[0].stamp) if events else max(place, reading.position))
            lacks_after = None
        if not events:
            return _closed(writer, reading.position, count)
        if is_new and place == EARLIEST:
            # The first archive starts at the beginning of the brokers' history.
            begin = Position.at(events[0].stamp - 1)
            writer.contents = Contents(contents.network, contents.filter, begin, begin)
        if writer.size >= LISTED_BYTES and events[0].position > place:
            count += writer.commit(place)
        place = Position.at(
            events[-1].stamp
        )  # a network-wide position, so that the next commit does not split a timestamp
        writer.add(events)


def _closed(writer: ArchiveWriter, until: Position, count: int) -> tuple[Contents, int]:
    if writer.contents.until == EARLIEST:
        writer.contents = Contents(writer.contents.network, writer.contents.filter, until, until)
    count += writer.commit(until)
    return writer.contents, count


def _check(archive: Archive, known: Contents | None, network: str, text: str) -> None:
    if known is None:
        return
    if known.network != network:
        raise ArchiveError(
            f"{archive.path} is an archive of network {known.network!r}, but these brokers are of {network!r}; "
            "name another directory"
        )
    if known.filter != text:
        raise ArchiveError(
            f"{archive.path} is an archive of events that match {known.filter!r}, not {text!r}; name another directory"
        )


def _print_summary(archive: Archive, contents: Contents, count: int, as_json: bool) -> None:
    at = contents.until.time.isoformat(timespec="seconds")
    if as_json:
        gaps = [[str(begin), str(end)] for begin, end in contents.gaps]
        print_json({"archive": str(archive.path), "events": count, "until": str(contents.until), "at": at,
                    "files": len(contents.files), "gaps": gaps})  # fmt: skip
    else:
        summary = f"{count:,} more events, {len(contents.files)} files, up to position {contents.until} ({at})"
        output_console().print(Text(f"{archive.path}: {summary}"))
