"""A client of the network for a Spark process: its event loop runs in a thread."""

import asyncio
import logging
from collections.abc import Awaitable, Coroutine
from types import TracebackType
from typing import Any, Self, TypeVar

from gapless.client import Client, connect
from gapless.client.loop_thread import LoopThread
from gapless.errors import SkippedError, SparkError
from gapless.runtime.address import is_tls, parse_url
from gapless_spark.stream.options import Options

__all__ = ["LONG", "Connection", "handle_loss", "in_time", "urls"]

SPARE = 3
"""The number of alternative brokers of a task, besides its first."""

LONG = 60
"""The number of timeouts allowed while brokers search their whole history."""

T = TypeVar("T")


class Connection:
    """A connection, created where it is used because it cannot move between processes."""

    def __init__(self, options: Options, url: str = "") -> None:
        self._loop = LoopThread()
        try:
            self.client: Client = self.run(self._connect(options, url or options.url))
        except BaseException:
            self._loop.stop()
            raise

    async def _connect(self, options: Options, url: str) -> Client:
        # Not recorded: a query makes thousands of clients, and none of them delivers events to an application.
        return await connect(url, name="spark", timeout_s=options.timeout_s, trace="", credentials=options.credentials)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the client's event loop, and wait for its result."""
        return self._loop.run(work)

    def close(self) -> None:
        """Disconnect from the network."""
        try:
            self._loop.run(self.client.close())
        finally:
            self._loop.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


async def in_time(options: Options, work: Awaitable[T], times: int = 2) -> T:
    """Wait for the result of the coroutine, and raise an error after the timeout."""
    patience_s = times * options.timeout_s
    try:
        async with asyncio.timeout(patience_s):
            return await work
    except TimeoutError:
        raise SparkError(
            f"the network did not answer within {patience_s:g} s: no broker is up, or they wait for one that "
            "is down; run gapless status, or raise the option 'timeout'"
        ) from None


def urls(options: Options, client: Client, count: int) -> list[str]:
    """Return the broker addresses for each task: its first broker, and the alternatives if that one is down."""
    known = [address for _, address in sorted(client.addresses.items())] or parse_url(options.url)
    scheme = "gapless+tls://" if is_tls(options.url) else "gapless://"
    return [
        scheme + ",".join(known[(task + step) % len(known)] for step in range(min(1 + SPARE, len(known))))
        for task in range(count)
    ]


def handle_loss(options: Options, error: SkippedError) -> int:
    """Handle lost history: end the query, or count the missing events and continue."""
    if options.fails_on_loss:
        raise SparkError(
            f"{error}; to continue without them set the option failOnDataLoss to false, and for the future "
            "let brokers keep more (history_bytes)"
        ) from None
    logging.getLogger("gapless.spark").warning(f"{error}; failOnDataLoss is false, so the query continues without them")
    return sum(last - first + 1 for ranges in error.lost.values() for first, last in ranges)
