"""`gapless sub`: prints events as JSON lines, or their rate, and the total at the end."""

import asyncio
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

import msgspec

from gapless.cli.event_lines import event_line
from gapless.cli.exit_codes import INTERRUPTED, PIPE_CLOSED
from gapless.client import Client, DurableSubscription, Subscription, connect
from gapless.client.durables import REDELIVER_S
from gapless.client.positions import Since
from gapless.errors import AckTooLateError, CallError, SkippedError
from gapless.events import Event
from gapless.filters import parse
from gapless.positions import Position
from gapless.printable import printable_lines
from gapless.runtime.event_loop import run

__all__ = ["Span", "subscribe"]

_Subscription: TypeAlias = Subscription | DurableSubscription

TAKE_MAX = 256
"""The maximum number of events that are taken and printed together."""
RATE_S = 1.0
"""The interval in seconds at which the rate is printed."""


class Span(msgspec.Struct, frozen=True):
    """The start and end of a subscription, as typed (see `gapless.client.positions`)."""

    since: str | None = None
    until: str | None = None
    durable: str | None = None
    """The name of a durable subscription to continue, instead of a start."""
    archive: Path | None = None
    """An archive to read first, for events that brokers have dropped."""
    group: bool = False
    """Whether the durable subscription is shared."""
    redeliver_s: float | None = None

    def begin(self) -> Since | None:
        """Return the position after which to start; None to start now."""
        if self.durable is not None and (self.since is not None or self.until is not None):
            raise CallError(
                "--durable continues where the subscription stopped, so leave out --since and --until; see "
                "also: gapless subscriptions move"
            )
        if self.archive is not None and self.since is None:
            raise CallError("--archive needs --since: an archive contains past events")
        if self.group and self.durable is None:
            raise CallError("--group needs a durable subscription: add --durable NAME")
        if self.redeliver_s is not None and not self.group:
            raise CallError("--redeliver needs a durable subscription that a group shares: add --group")
        if self.until is not None and self.since is None:
            raise CallError("--until needs --since: live events have no end; see also --seconds")
        return self.since

    def end(self) -> Since | None:
        """Return the position at which to end; None for no end."""
        return self.until


def subscribe(
    url: str, text: str, span: Span, count: int | None, seconds: float | None, *, credentials: Path | None, rate: bool,
    quiet: bool, as_json: bool,
) -> int:  # fmt: skip
    """Print events until the count or the time limit is reached, or nobody reads the output any more."""
    parse(text)  # report an invalid filter before connecting
    span.begin()
    return run(_subscribe(url, text, span, count, seconds, _Rate(as_json) if rate else None, quiet, credentials))


async def _subscribe(
    url: str, text: str, span: Span, count: int | None, seconds: float | None, rate: "_Rate | None", quiet: bool,
    credentials: Path | None,
) -> int:  # fmt: skip
    async with connect(url, name="sub", timeout_s=2.0, credentials=credentials) as client:
        subscription = await _open(client, text, span)
        if not quiet:
            _print_begin(subscription, span)
        take = _print_events if rate is None else rate.count
        taking = asyncio.create_task(_take(subscription, count, take, prints_seam=not quiet))
        printing = None if rate is None else asyncio.create_task(rate.print_rates(taking))
        was_interrupted = _cancel_on_signal(taking)
        done, _ = await asyncio.wait([taking], timeout=seconds)
        if not done:
            taking.cancel()
            await asyncio.wait([taking])
        is_read = printing is None or await printing
        if was_interrupted():
            return INTERRUPTED
        if not is_read:
            return PIPE_CLOSED
        return 0 if taking.cancelled() else taking.result()


async def _open(client: Client, text: str, span: Span) -> _Subscription:
    since = span.begin()
    if span.durable is not None:
        redeliver_s = REDELIVER_S if span.redeliver_s is None else span.redeliver_s
        return await client.durable(span.durable, text, ack="manual", group=span.group, redeliver_s=redeliver_s)
    if span.archive is not None and since is not None:
        archive = client.archive(span.archive)
        if span.until is not None:
            return await archive.read(text, since, span.end())
        return await archive.subscribe(text, since=since)
    if span.until is not None and since is not None:
        return await client.read(text, since, span.end())
    return await client.subscribe(text, since=since)


def _cancel_on_signal(task: "asyncio.Task[int]") -> Callable[[], bool]:
    """Make signals cancel the task. Return a function that returns whether one did."""
    interrupted = []

    def interrupt() -> None:
        interrupted.append(True)
        task.cancel()

    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, interrupt)
    return lambda: bool(interrupted)


async def _take(
    subscription: _Subscription, count: int | None, give: Callable[[Sequence[Event]], bool], *, prints_seam: bool
) -> int:
    taken = 0
    while count is None or taken < count:
        try:
            events = await subscription.take(TAKE_MAX if count is None else min(TAKE_MAX, count - taken))
        except SkippedError as error:
            print(printable_lines(f"gapless sub: {error}"), file=sys.stderr, flush=True)
            continue
        if prints_seam and subscription.archive_end is not None:
            prints_seam = False
            _print_seam(subscription.archive_end)
        if not events:
            break
        taken += len(events)
        if not give(events):
            return PIPE_CLOSED
        if isinstance(subscription, DurableSubscription):
            await _acknowledge(subscription)
    return 0


async def _acknowledge(subscription: DurableSubscription) -> None:
    """Acknowledge the events that were printed."""
    try:
        await subscription.ack()
    except AckTooLateError as error:
        print(printable_lines(f"gapless sub: {error}"), file=sys.stderr, flush=True)


def _print_begin(subscription: _Subscription, span: Span) -> None:
    cuts = ", ".join(
        f"event {number} of {publisher}" for publisher, number in sorted(subscription.starting_cut.items())
    )
    begin = f"it begins with {cuts}" if cuts else "no client publishes such events yet"
    if span.durable is not None:
        begin = f"{span.durable} continues after the last acknowledged event"
        begin += ", shared by a group" if span.group else ""
    elif span.since not in (None, "now"):
        begin = f"events published since {span.since}" + (", then live events" if span.until is None else "")
    print(f"subscribed; {begin}", file=sys.stderr, flush=True)


def _print_seam(seam: Position) -> None:
    at = seam.time.isoformat(timespec="seconds")
    print(
        f"events up to position {seam} ({at}) came from the archive; brokers deliver the later ones",
        file=sys.stderr,
        flush=True,
    )


def _print_events(events: Sequence[Event]) -> bool:
    return _write(b"".join(map(event_line, events)))


def _write(lines: bytes) -> bool:
    """Write the lines. Return False if the reader of the output has closed it."""
    out = sys.stdout.buffer
    try:
        out.write(lines)
        out.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), out.fileno())
        return False
    return True


class _Rate:
    """Prints the rate of events every second, and the total at the end."""

    def __init__(self, as_json: bool) -> None:
        self._as_json = as_json
        self._start = self._since = time.monotonic()
        self._total = self._reported = 0

    def count(self, events: Sequence[Event]) -> bool:
        """Count more events."""
        self._total += len(events)
        return True

    async def print_rates(self, taking: "asyncio.Task[int]") -> bool:
        """Print a line per second while events are taken, then the total. Return False if the reader of the output has
        closed it."""
        while not (await asyncio.wait([taking], timeout=RATE_S))[0]:
            if not self._print_rate(time.monotonic()):
                taking.cancel()
                return False
        return self._print_total(time.monotonic())

    def _print_rate(self, now: float) -> bool:
        rate = (self._total - self._reported) / (now - self._since)
        self._since, self._reported = now, self._total
        if self._as_json:
            return self._print_json(now, rate)
        return _write(f"{rate:,.0f} events/s, {self._total:,} in all\n".encode())

    def _print_total(self, now: float) -> bool:
        seconds = now - self._start
        rate = self._total / max(seconds, 1e-9)
        if self._as_json:
            return self._print_json(now, rate, is_total=True)
        return _write(f"{self._total:,} events in {seconds:.1f} s ({rate:,.0f}/s)\n".encode())

    def _print_json(self, now: float, rate: float, *, is_total: bool = False) -> bool:
        line = {"seconds": round(now - self._start, 3), "events": self._total, "events_per_second": round(rate, 3)}
        return _write(msgspec.json.encode({**line, "total": is_total}) + b"\n")
