"""Starts subscriptions: checks arguments, creates the subscription object, and sends the request to the network.

Some begin in an archive, and continue with brokers later (`gapless.client.archived`).
"""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeVar

from gapless.client.acks import Acks, Making
from gapless.client.archived import log_seam, open_past
from gapless.client.arguments import check_count, check_text
from gapless.client.connection_manager import ConnectionManager
from gapless.client.deliveries import PENDING_MAX, Deliveries, Settings, Subscriber
from gapless.client.hints import hint_at_filter
from gapless.client.opening import Opening
from gapless.client.positions import Since, moment_of
from gapless.client.reader import Reader
from gapless.client.subscription import DurableSubscription, Subscription
from gapless.errors import CallError, SkippedError
from gapless.events import Event
from gapless.filters import parse
from gapless.names import AckMode
from gapless.positions import Position, Volume
from gapless.protocol import NEWEST, Subscribe

__all__ = ["Subscribing", "check_filter"]

S = TypeVar("S", bound=Deliveries)

Again = Callable[[], Awaitable[Any]]
"""A function that subscribes again with the same arguments."""


class _Client(Subscriber, Protocol):
    def read(self, filter: str, since: Position, until: Position) -> Opening[Subscription[Event]]: ...


def check_filter(text: str) -> None:
    """Raise an error if the text is not a valid filter; log a hint if it may not mean what its author intended."""
    parse(check_text("a filter", text))
    hint_at_filter(text)


class Subscribing:
    """Starts the subscriptions of one client."""

    def __init__(self, client: _Client, connection_manager: ConnectionManager) -> None:
        self._client = client
        self._connection_manager = connection_manager
        self._took = connection_manager.registrations.pacing.took
        self.making = Making()
        """How to create the events of durable subscriptions."""

    # ---- arguments ----------------------------------------------------------------------------------------

    def settings(self, text: str, max_pending: int | None = None) -> Settings:
        """Return the parameters of a new subscription with this filter."""
        check_filter(text)
        self._connection_manager.check_open()
        if max_pending is not None:
            check_count("max_pending", max_pending)
        elif not self._connection_manager.spec.paces:
            max_pending = PENDING_MAX
        manager = self._connection_manager
        return Settings(
            self._client, self._took, manager.new_name("s"), text, max_pending,
            manager.publishing.middleware.deliver, manager.registrations.clock.now_s,
        )  # fmt: skip

    async def position(self, what: str, value: Since) -> Position:
        """Return the position that `value` denotes. `what` names it in error messages."""
        return (await self._positions({what: value}))[what]

    async def beginning(self, value: Since | None) -> Position | None:
        """Return the position at which a subscription begins, or None if it begins with live events."""
        return None if value is None or moment_of("since", value).is_now else await self.position("since", value)

    async def range(self, since: Since, until: Since | None) -> tuple[Position, Position]:
        """Return the positions that `since` and `until` denote. The second can be `NEWEST`."""
        given = {"since": since}
        if until is not None and not moment_of("until", until).is_now:
            given["until"] = until
        found = await self._positions(given)
        begin, end = found["since"], found.get("until", NEWEST)
        if end <= begin:
            raise CallError(f"until ({until!r}) is not after since ({since!r}), so there are no events between them")
        return begin, end

    async def _positions(self, given: dict[str, Since]) -> dict[str, Position]:
        """Return the positions that these arguments denote, all relative to the same newest position."""
        spec = self._connection_manager.spec
        if not spec.keeps_history:
            what = ", ".join(given)
            raise CallError(f"protocol {spec.name!r} keeps no history, so it has no positions; leave out {what}")
        moments = {what: moment_of(what, value) for what, value in given.items()}
        newest = await self._newest() if any(moment.needs_clock for moment in moments.values()) else 0
        return {what: moment.position(newest) for what, moment in moments.items()}

    async def _newest(self) -> int:
        """Ask a broker for the newest timestamp. It is final: no earlier event can be added."""
        reading: Subscription[Event] = Subscription(self.settings("FALSE"), self._newest)
        await self.begin(reading, since=NEWEST, until=NEWEST)
        events: list[Event] | None = None
        while events != []:
            with suppress(SkippedError):
                events = await reading.take()
        return reading.position.timestamp

    # ---- a subscription -----------------------------------------------------------------------------------

    def make(self, settings: Settings, again: Again, values: type[Any] | None) -> Subscription[Any]:
        """Return a new subscription object, to events or to values of a type."""
        if values is None:
            return Subscription(settings, again)
        reader = Reader(values, codec=self._connection_manager.publishing.codec)
        return Subscription(settings, again, lambda _, event: reader.read(event))

    def make_durable(
        self, settings: Settings, again: Again, values: type[Any] | None, name: str, ack: AckMode, *, group: bool
    ) -> DurableSubscription[Any]:
        """Return a new durable subscription object, whose events can be acknowledged."""
        acks = Acks(
            settings.id, self._connection_manager.give_input, is_manual=ack == "manual", is_shared=group,
            making=self.making,
            settled=self._connection_manager.publishing.middleware.settle,
        )  # fmt: skip
        reader = None if values is None else Reader(values, self.making.kind, self._connection_manager.publishing.codec)
        made: DurableSubscription[Any] = DurableSubscription(
            settings, again,
            acks.wrap if reader is None else lambda number, event: reader.read(event, partial(acks.wrap, number)),
        )  # fmt: skip
        made.name, made._acks = name, acks
        return made

    async def begin(
        self,
        subscription: S,
        since: Position | None = None,
        until: Position | None = None,
        *,
        replace: bool = False,
        redeliver_s: float | None = None,
        max_deliveries: int | None = None,
        survey: Volume | None = None,
    ) -> S:
        """Start the subscription and return it. With `redeliver_s`, a group shares it."""
        name = subscription.name
        subscription._is_bounded = until is not None
        call = Subscribe(
            subscription.id, subscription.filter, since=since, until=until, name=name,
            ack="manual" if name else "auto",  # the library sees what the application takes
            replace=replace, group=redeliver_s is not None, redeliver_s=redeliver_s or 30.0,
            max_deliveries=max_deliveries or 0, letter_max=self._connection_manager.publishing.event_max,
            survey=survey,
        )  # fmt: skip
        if since is None:
            subscription.is_live = True
        else:
            subscription._read_from(None if since == NEWEST else since)
        await self._connection_manager.subscribe(subscription, call)
        return subscription

    def begin_in(self, archive: Path | str, subscription: S, since: Position, until: Position | None) -> S:
        """Start a subscription that reads the archive first and then continues with brokers."""
        past = open_past(archive, self._connection_manager.network, subscription.filter, since, until)

        async def go_on(seam: Position) -> None:
            self._connection_manager.check_open()
            log_seam(subscription.filter, archive, seam)
            await self.begin(subscription, seam, until)

        subscription._is_bounded = until is not None
        subscription._begin_in(past, self._client, go_on)
        return subscription
