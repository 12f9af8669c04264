"""How subscriptions begin: what was asked for is checked, made into a subscription, and taken to the network.

Some begin in an archive, and go on with brokers later (`gapless.client.archived`).
"""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeAlias, TypeVar

import msgspec

from gapless.client.archived import log_seam, open_past
from gapless.client.arguments import check_count, check_text
from gapless.client.confirmations import Making
from gapless.client.hints import hint_at_filter
from gapless.client.positions import Since, moment_of
from gapless.client.presence import Presence
from gapless.client.reader import Reader
from gapless.client.subscription import (
    BaseSubscription,
    ConfirmableSubscription,
    OnFull,
    Subscriber,
    Subscription,
    TypedSubscription,
    chosen_policy,
)
from gapless.errors import CallError, SkippedError
from gapless.events import Event
from gapless.filters import parse
from gapless.names import AckMode
from gapless.positions import Position
from gapless.protocol import NEWEST, Ready, Subscribe

__all__ = ["Subscribing", "check_filter"]

S = TypeVar("S", bound=BaseSubscription[Any])

Settings: TypeAlias = tuple[str, str, OnFull, int]
"""Of a subscription: name, filter, what happens if its events are not taken, and how many may wait."""


class _Client(Subscriber, Protocol):
    """The client that subscribes."""

    async def read(self, filter: str, *, since: Position, until: Position) -> Subscription: ...  # noqa: A002


def check_filter(text: str) -> None:
    """Whether it is one; the log says if it may not mean what its author thinks."""
    parse(check_text("a filter", text))
    hint_at_filter(text)


class Subscribing:
    """The subscribing side of one client."""

    def __init__(self, client: _Client, presence: Presence) -> None:
        self._client = client
        self._presence = presence
        self._took = presence.holdings.pacing.took
        self.making = Making()
        """How events of named subscriptions are made."""

    # ---- what was asked for -------------------------------------------------------------------------------

    def settings(self, text: str, on_full: OnFull | None = None, queue: int = 10_000) -> Settings:
        """Of a new subscription to what this filter matches."""
        check_filter(text)
        self._presence.check_open()
        policy = chosen_policy(self._presence.spec, on_full)
        return self._presence.new_name("s"), text, policy, check_count("queue", queue)

    async def position(self, what: str, value: Since) -> Position:
        """The position that `value` stands for; `what` names it in an error message."""
        return (await self._positions({what: value}))[what]

    async def beginning(self, value: Since | None) -> Position | None:
        """The position that a live subscription begins with; None if it gets what is published from now on."""
        return None if value is None or moment_of("since", value).is_now else await self.position("since", value)

    async def range(self, since: Since, until: Since | None) -> tuple[Position, Position]:
        """The positions that `since` and `until` stand for; the second may be `NEWEST`."""
        given = {"since": since}
        if until is not None and not moment_of("until", until).is_now:
            given["until"] = until
        found = await self._positions(given)
        begin, end = found["since"], found.get("until", NEWEST)
        if moment_of("since", since).is_now or end <= begin:
            raise CallError(f"until ({until!r}) does not lie after since ({since!r}): nothing is between them")
        return begin, end

    async def _positions(self, given: dict[str, Since]) -> dict[str, Position]:
        """The positions that these stand for. All that need the network's clock are resolved against one answer."""
        spec = self._presence.spec
        if not spec.keeps_history:
            what = ", ".join(given)
            raise CallError(f"protocol {spec.name!r} keeps no history, so it has no positions; leave out {what}")
        moments = {what: moment_of(what, value) for what, value in given.items()}
        newest = await self._newest() if any(moment.needs_clock for moment in moments.values()) else 0
        return {what: moment.position(newest) for what, moment in moments.items()}

    async def _newest(self) -> int:
        """The newest timestamp, as the broker says: it is final, and nothing before it is read."""
        reading = self.make(Subscription, self.settings("FALSE"), self._newest)
        await self.begin(reading, since=NEWEST, until=NEWEST)
        events: list[Event] | None = None
        while events != []:
            with suppress(SkippedError):
                events = await reading.take()
        return reading.position.timestamp

    # ---- a subscription -----------------------------------------------------------------------------------

    def make(self, kind: Callable[..., S], settings: Settings, again: Any, *more: Any) -> S:
        """A subscription of this kind; `again` makes another one like it."""
        return kind(self._client, self._took, *settings, again, *more)

    def make_for(self, values: type[Any] | None, settings: Settings, again: Any, *, is_named: bool = False) -> Any:
        """A subscription to events, or to values of a type."""
        if values is None:
            return self.make(ConfirmableSubscription if is_named else Subscription, settings, again)
        reader = Reader(values, self.making.kind if is_named else None)
        return self.make(TypedSubscription, settings, partial(again, type=values), reader)

    async def begin(
        self,
        subscription: S,
        ready: Ready = "whole",
        since: Position | None = None,
        until: Position | None = None,
        *,
        replace: bool = False,
        redeliver_s: float | None = None,
    ) -> S:
        """Returns when it has started. With `redeliver_s`, a group shares it."""
        title = subscription.title
        confirm: AckMode = "manual" if title else "auto"  # the application is nearer to what it took than the node
        call = Subscribe(subscription.name, subscription.filter, ready, since, until, title, confirm, replace)
        if redeliver_s is not None:
            call = msgspec.structs.replace(call, group=True, redeliver_s=redeliver_s)
        if since is None:
            subscription.is_live = True
        else:
            subscription._read_from(None if since == NEWEST else since)
        await self._presence.subscribe(subscription, call)
        return subscription

    def begin_in(
        self, archive: Path | str, subscription: S, ready: Ready, since: Position, until: Position | None
    ) -> S:
        """Let the archive come first, and brokers after it."""
        past = open_past(archive, self._presence.network, subscription.filter, since, until)

        async def go_on(seam: Position) -> None:
            self._presence.check_open()
            log_seam(subscription.filter, archive, seam)
            await self.begin(subscription, ready, seam, until)

        subscription._begin_in(past, self._client, go_on)
        return subscription
