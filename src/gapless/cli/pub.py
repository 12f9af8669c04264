"""`gapless pub`: publishes events from JSON lines."""

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Iterator
from io import BufferedReader
from itertools import cycle, islice
from pathlib import Path
from typing import Any, cast

from gapless.cli.event_lines import read_argument, read_line
from gapless.cli.terminal import print_json
from gapless.client import Client, connect
from gapless.filters import parse
from gapless.runtime.event_loop import run

__all__ = ["publish"]

LINE_MAX = 16 * 1024 * 1024


def publish(
    url: str, advertise: str, events: list[str] | None, count: int | None, rate: float | None, *,
    credentials: Path | None, quiet: bool, as_json: bool,
) -> int:  # fmt: skip
    """Publish the given events, repeatedly if a higher count is requested, or those on standard input. Return when all
    are confirmed."""
    parse(advertise)  # report an invalid filter before connecting
    published, took = run(_publish(url, advertise, events, count, rate, credentials))
    if as_json:
        print_json({"published": published, "seconds": round(took, 3)})
    elif not quiet:
        what = "1 event" if published == 1 else f"{published:,} events"
        print(f"{what} published and confirmed in {took:.2f} s ({published / took:,.0f}/s)", file=sys.stderr)
    return 0


async def _publish(
    url: str, advertise: str, events: list[str] | None, count: int | None, rate: float | None, credentials: Path | None
) -> tuple[int, float]:
    """Return the number of events published, and the seconds that it took."""
    if not events:
        lines = _lines(count)
    else:
        given = [read_argument(event, "--event") for event in events]
        lines = _in_turn(given, len(given) if count is None else count)
    async with connect(url, name="pub", timeout_s=2.0, credentials=credentials) as client:
        await client.advertise(advertise)
        started = time.monotonic()
        published = await _send(client, lines, rate)
        return published, time.monotonic() - started


async def _send(client: Client, lines: AsyncIterator[tuple[dict[str, Any], bytes]], rate: float | None) -> int:
    if rate is None:
        return await client.publish_many(lines)
    started = time.monotonic()
    published = 0
    pending: set[asyncio.Task[Any]] = set()
    async for attributes, payload in lines:
        await asyncio.sleep(max(0.0, started + published / rate - time.monotonic()))
        task = asyncio.create_task(client.publish(attributes, payload))
        pending.add(task)
        published += 1
        for done in [each for each in pending if each.done()]:
            pending.discard(done)
            done.result()
    await asyncio.gather(*pending)
    return published


async def _in_turn(
    given: list[tuple[dict[str, Any], bytes]], count: int
) -> AsyncIterator[tuple[dict[str, Any], bytes]]:
    for each in islice(cycle(given), count):
        yield each


async def _lines(count: int | None) -> AsyncIterator[tuple[dict[str, Any], bytes]]:
    """Yield the events from standard input, which a thread reads so that the event loop is not blocked."""
    loop = asyncio.get_running_loop()
    number = read = 0
    while count is None or read < count:
        batch = await loop.run_in_executor(None, _read_some)
        if not batch:
            return
        for line in batch:
            number += 1
            if not line.strip():
                continue
            if count is not None and read >= count:
                return
            read += 1
            yield read_line(line, f"line {number}")


def _read_some() -> list[bytes]:
    """Return all available lines; wait until there is at least one."""
    stream = cast(BufferedReader, sys.stdin.buffer)
    first = stream.readline(LINE_MAX)
    if not first:
        return []
    waiting = stream.peek().count(b"\n")
    return [first, *_take(stream, min(waiting, 1024))]


def _take(stream: BufferedReader, count: int) -> Iterator[bytes]:
    for _ in range(count):
        yield stream.readline(LINE_MAX)
