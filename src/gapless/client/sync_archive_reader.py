"""Generated from `gapless.client.archive_reader` by `scripts/generate_sync_client.py`. Edit that file instead."""

from pathlib import Path
from typing import Any, TypeVar, overload

from gapless.client.positions import Since
from gapless.client.sync_subscription import Subscription
from gapless.client.synchronous import Synchronous
from gapless.events import Event

__all__ = ["ArchiveReader"]
T = TypeVar("T")


class ArchiveReader(Synchronous):
    """Reads the events of an archive and continues with brokers at its end, without a gap or a duplicate.
    `Client.archive` returns it.

    `subscription.archive_end` is the position at which brokers took over. The archive must contain all events that
    match the filter; missing events are reported with a `SkippedError`.
    """

    @property
    def directory(self) -> Path:
        """The directory of the archive."""
        found: Path = self._inner.directory
        return found

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
        """Subscribe from a position in the archive. When the application has taken the archived events, brokers deliver
        the later ones.

        Parameters:
            filter: as for `Client.subscribe`.
            type: as for `Client.subscribe`.
            since: after this position, time or age; "earliest" is everything that the archive has.
            max_pending: as for `Client.subscribe`.

        Example: `with client.archive("trades").subscribe("topic = 'trade'", since="30d") as trades:`
        """
        return Subscription(
            self._loop, self._loop.run(self._inner.subscribe(filter, type=type, since=since, max_pending=max_pending))
        )

    @overload
    def read(self, filter: str, since: Since = "earliest", until: Since | None = None) -> Subscription[Event]: ...

    @overload
    def read(
        self, filter: str, since: Since = "earliest", until: Since | None = None, *, type: type[T]
    ) -> Subscription[T]: ...

    def read(
        self, filter: str, since: Since = "earliest", until: Since | None = None, *, type: type[Any] | None = None
    ) -> Subscription[Any]:
        """Read the events between two positions, from the archive as far as it goes and then from brokers.

        Parameters:
            filter: as for `Client.read`.
            since: after this position, time or age; "earliest" is everything that the archive has.
            until: as for `Client.read`.
            type: as for `Client.read`.

        Example: `for trade in client.archive("trades").read("topic = 'trade'", "30d", "7d"): print(trade)`
        """
        return Subscription(self._loop, self._loop.run(self._inner.read(filter, since, until, type=type)))
