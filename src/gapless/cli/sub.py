"""`gapless sub`: events in, JSON lines out."""

import asyncio
import os
import signal
import sys
import time
from collections.abc import Callable

from gapless.cli.event_lines import event_line
from gapless.cli.exit_codes import INTERRUPTED, PIPE_CLOSED
from gapless.client import Subscription, connect
from gapless.runtime.event_loop import run

__all__ = ["subscribe"]


def subscribe(url: str, text: str, count: int | None, seconds: float | None, *, rate: bool, quiet: bool) -> int:
    """Print what comes, until enough has come, the time is up, or nobody reads."""
    return run(_subscribe(url, text, count, seconds, rate, quiet))


async def _subscribe(url: str, text: str, count: int | None, seconds: float | None, rate: bool, quiet: bool) -> int:
    async with connect(url, name="sub", timeout_s=2.0) as client:
        subscription = await client.subscribe(text)
        if not quiet:
            cuts = ", ".join(f"{publisher} {number}" for publisher, number in sorted(subscription.cuts.items()))
            print(f"subscribed; from event … of publisher on: {cuts or 'nobody yet'}", file=sys.stderr, flush=True)
        printing = asyncio.create_task(_print(subscription, count, rate, quiet))
        was_interrupted = _cancel_on_signal(printing)
        done, _ = await asyncio.wait([printing], timeout=seconds)
        if not done:
            printing.cancel()
            await asyncio.wait([printing])
        if was_interrupted():
            return INTERRUPTED
        return 0 if printing.cancelled() else printing.result()


def _cancel_on_signal(task: "asyncio.Task[int]") -> Callable[[], bool]:
    """Let signals end the task; what is returned tells whether one did."""
    interrupted = []

    def interrupt() -> None:
        interrupted.append(True)
        task.cancel()

    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, interrupt)
    return lambda: bool(interrupted)


async def _print(subscription: Subscription, count: int | None, rate: bool, quiet: bool) -> int:
    counter = _Rate() if rate else None
    printed = 0
    out = sys.stdout.buffer
    while count is None or printed < count:
        events = await subscription.take(256 if count is None else min(256, count - printed))
        if not events:
            break
        printed += len(events)
        if counter is not None:
            counter.add(len(events))
            continue
        try:
            out.write(b"".join(map(event_line, events)))
            out.flush()
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), out.fileno())
            return PIPE_CLOSED
    return 0


class _Rate:
    """Prints how many events a second come, instead of the events."""

    def __init__(self) -> None:
        self._since = time.monotonic()
        self._count = 0
        self._total = 0

    def add(self, count: int) -> None:
        """So many more; a line a second."""
        self._count += count
        self._total += count
        now = time.monotonic()
        if now - self._since >= 1:
            print(f"{self._count / (now - self._since):,.0f} events/s, {self._total:,} in all", flush=True)
            self._since, self._count = now, 0
