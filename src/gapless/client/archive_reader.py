"""Subscriptions and reads that begin in an archive, which is a directory that `gapless archive` writes."""

from functools import partial
from pathlib import Path
from typing import Any, TypeVar, overload

from gapless.client.arguments import check_path
from gapless.client.opening import Opening
from gapless.client.positions import Since
from gapless.client.subscribing import Subscribing
from gapless.client.subscription import Subscription
from gapless.errors import CallError
from gapless.events import Event
from gapless.protocol import NEWEST

__all__ = ["ArchiveReader"]

T = TypeVar("T")


class ArchiveReader:
    """Reads the events of an archive and continues with brokers at its end, without a gap or a duplicate.
    `Client.archive` returns it.

    `subscription.archive_end` is the position at which brokers took over. The archive must contain all events that
    match the filter; missing events are reported with a `SkippedError`.
    """

    def __init__(self, subscribing: Subscribing, directory: Path | str) -> None:
        self._subscribing = subscribing
        self.directory: Path = check_path("archive", directory)
        """The directory of the archive."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {str(self.directory)!r}>"

    @overload
    def subscribe(
        self, filter: str, *, since: Since = "earliest", max_pending: int | None = None
    ) -> Opening[Subscription[Event]]: ...

    @overload
    def subscribe(
        self, filter: str, *, type: type[T], since: Since = "earliest", max_pending: int | None = None
    ) -> Opening[Subscription[T]]: ...

    def subscribe(
        self,
        filter: str,
        *,
        type: type[Any] | None = None,
        since: Since = "earliest",
        max_pending: int | None = None,
    ) -> Opening[Subscription[Any]]:
        """Subscribe from a position in the archive. When the application has taken the archived events, brokers deliver
        the later ones.

        Parameters:
            filter: as for `Client.subscribe`.
            type: as for `Client.subscribe`.
            since: after this position, time or age; "earliest" is everything that the archive has.
            max_pending: as for `Client.subscribe`.

        Example: `async with client.archive("trades").subscribe("topic = 'trade'", since="30d") as trades:`
        """
        opening = self._subscribe(filter, since, type, max_pending)
        return Opening(opening, "archive.subscribe(…)", Subscription)

    async def _subscribe(
        self, filter: str, since: Since, type: type[Any] | None, max_pending: int | None
    ) -> Subscription[Any]:
        settings = self._subscribing.settings(filter, max_pending)
        position = await self._subscribing.beginning(since)
        if position is None:
            raise CallError("an archive holds past events: pass since to say where to begin, or use client.subscribe()")
        made = self._subscribing.make(settings, partial(self._subscribe, filter, since, type, max_pending), type)
        return self._subscribing.begin_in(self.directory, made, position, None)

    @overload
    def read(
        self, filter: str, since: Since = "earliest", until: Since | None = None
    ) -> Opening[Subscription[Event]]: ...

    @overload
    def read(
        self, filter: str, since: Since = "earliest", until: Since | None = None, *, type: type[T]
    ) -> Opening[Subscription[T]]: ...

    def read(
        self,
        filter: str,
        since: Since = "earliest",
        until: Since | None = None,
        *,
        type: type[Any] | None = None,
    ) -> Opening[Subscription[Any]]:
        """Read the events between two positions, from the archive as far as it goes and then from brokers.

        Parameters:
            filter: as for `Client.read`.
            since: after this position, time or age; "earliest" is everything that the archive has.
            until: as for `Client.read`.
            type: as for `Client.read`.

        Example: `async for trade in await client.archive("trades").read("topic = 'trade'", "30d", "7d"): print(trade)`
        """
        return Opening(self._read(filter, since, until, type), "archive.read(…)", Subscription)

    async def _read(self, filter: str, since: Since, until: Since | None, type: type[Any] | None) -> Subscription[Any]:
        settings = self._subscribing.settings(filter)
        begin, end = await self._subscribing.range(since, until)
        made = self._subscribing.make(settings, partial(self._read, filter, since, until, type), type)
        end = await self._subscribing.position("until", "now") if end == NEWEST else end
        return self._subscribing.begin_in(self.directory, made, begin, end)
