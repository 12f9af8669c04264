"""Generated from `gapless.client.archive_reader` by `scripts/generate_sync_client.py`. Edit that file instead."""

from pathlib import Path
from typing import Any, TypeVar, overload

from gapless.client import archive_reader
from gapless.client.loop_thread import LoopThread
from gapless.client.positions import Since
from gapless.client.sync_subscription import Subscription
from gapless.events import Event

__all__ = ["ArchiveReader"]
T = TypeVar("T")


class ArchiveReader:
    """Reads an archive, and continues with brokers where it ends, without a gap and without a duplicate. Made by
    `Client.archive`.

    `subscription.archive_end` is the position at which brokers have taken over. The archive has to hold everything that
    the filter matches; where it lacks something, a `SkippedError` says so.
    """

    def __init__(self, loop: LoopThread, inner: archive_reader.ArchiveReader) -> None:
        self._loop = loop
        self._inner = inner
        self.directory: Path = inner.directory

    def __repr__(self) -> str:
        return repr(self._inner)

    @overload
    def subscribe(
        self, filter: str, *, since: Since = "earliest", max_pending: int | None = None
    ) -> Subscription[Event]: ...

    @overload
    def subscribe(
        self, filter: str, *, type: type[T], since: Since = "earliest", max_pending: int | None = None
    ) -> Subscription[T]: ...

    def subscribe(
        self, filter: str, *, type: type[Any] | None = None, since: Since = "earliest", max_pending: int | None = None
    ) -> Subscription[Any]:
        """Subscribe from a position in the archive on; when the application has taken all of the archive, brokers
        continue.

        The parameters are those of `Client.subscribe`.

        Example: `with client.archive("trades").subscribe("topic = 'trade'", since="30d") as trades:`
        """
        call: Any = self._inner.subscribe
        return Subscription(self._loop, self._loop.run(call(filter, type=type, since=since, max_pending=max_pending)))

    @overload
    def read(self, filter: str, since: Since = "earliest", until: Since | None = None) -> Subscription[Event]: ...

    @overload
    def read(
        self, filter: str, since: Since = "earliest", until: Since | None = None, *, type: type[T]
    ) -> Subscription[T]: ...

    def read(
        self, filter: str, since: Since = "earliest", until: Since | None = None, *, type: type[Any] | None = None
    ) -> Subscription[Any]:
        """Read what was published after one position and up to another: from the archive, and the rest from brokers.

        The parameters are those of `Client.read`.

        Example: `for trade in client.archive("trades").read("topic = 'trade'", "30d", "7d"): print(trade)`
        """
        call: Any = self._inner.read
        return Subscription(self._loop, self._loop.run(call(filter, since, until, type=type)))
