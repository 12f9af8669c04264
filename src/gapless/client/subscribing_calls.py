"""Base class of the client with the calls that receive events: subscriptions, reads of history, and answers to
requests.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, overload

from gapless.client.admin import Admin
from gapless.client.answering import Answering, Handler
from gapless.client.archive_reader import ArchiveReader
from gapless.client.arguments import check_count, check_kind
from gapless.client.client_base import ClientBase
from gapless.client.durables import REDELIVER_S, check_durable, check_redelivery
from gapless.client.milestones import Milestones, begin_survey
from gapless.client.opening import Opening
from gapless.client.positions import Since
from gapless.client.requests import ANSWERABLE
from gapless.client.subscribing import Subscribing, check_filter
from gapless.client.subscription import DurableSubscription, Subscription
from gapless.errors import CallError
from gapless.events import Event
from gapless.names import AckMode
from gapless.positions import Position, Volume

__all__ = ["SubscribingCalls"]

T = TypeVar("T")


class SubscribingCalls(ClientBase):
    """Base class of `Client`: the calls that receive events."""

    def __init__(self, *arguments: Any, **choices: Any) -> None:
        super().__init__(*arguments, **choices)
        self._subscribing = Subscribing(self, self._connection_manager)
        self.admin: Admin = Admin(self._connection_manager, self._subscribing, self._access)
        """Lists, moves and deletes durable subscriptions, and ends clients."""

    @overload
    def subscribe(
        self, filter: str, *, since: Since | None = None, max_pending: int | None = None
    ) -> Opening[Subscription[Event]]: ...

    @overload
    def subscribe(
        self, filter: str, *, since: Since | None = None, type: type[T], max_pending: int | None = None
    ) -> Opening[Subscription[T]]: ...

    def subscribe(
        self,
        filter: str,
        *,
        since: Since | None = None,
        type: type[Any] | None = None,
        max_pending: int | None = None,
    ) -> Opening[Subscription[Any]]:
        """Subscribe to the events that match a filter. Every matching event published after this call returns is
        delivered.

        It returns when the starting cut is complete: one number for every publisher that may match.

        Parameters:
            filter: the condition for events, as in an SQL `WHERE`.
            since: start with history after this position, time or age (see `gapless.client.positions`), in causal
                order; live events follow, without a gap or a duplicate. If brokers have discarded some of it, a
                `SkippedError` is raised at that point.
            type: a msgspec struct, a dataclass or a pydantic model; the subscription yields its instances.
            max_pending: end the subscription with a `SlowConsumerError` when more than this number of events are
                pending. None: brokers serve a slow subscription from history.

        Example: `async with client.subscribe("topic = 'price' AND amount < 10") as prices:`
        """
        opening = self._subscribe(filter, since, type, max_pending)
        return Opening(opening, "client.subscribe(…)", Subscription)

    async def _subscribe(
        self, filter: str, since: Since | None, type: type[Any] | None, max_pending: int | None
    ) -> Subscription[Any]:
        settings = self._subscribing.settings(filter, max_pending)
        position = await self._subscribing.beginning(since)
        made = self._subscribing.make(settings, partial(self._subscribe, filter, None, type, max_pending), type)
        return await self._subscribing.begin(made, position)

    @overload
    def durable(
        self,
        name: str,
        filter: str,
        *,
        group: bool = False,
        ack: AckMode = "auto",
        replace: bool = False,
        redeliver_s: float = REDELIVER_S,
        max_deliveries: int | None = None,
        max_pending: int | None = None,
    ) -> Opening[DurableSubscription]: ...

    @overload
    def durable(
        self,
        name: str,
        filter: str,
        *,
        type: type[T],
        group: bool = False,
        ack: AckMode = "auto",
        replace: bool = False,
        redeliver_s: float = REDELIVER_S,
        max_deliveries: int | None = None,
        max_pending: int | None = None,
    ) -> Opening[DurableSubscription[T]]: ...

    def durable(
        self,
        name: str,
        filter: str,
        *,
        type: type[Any] | None = None,
        group: bool = False,
        ack: AckMode = "auto",
        replace: bool = False,
        redeliver_s: float = REDELIVER_S,
        max_deliveries: int | None = None,
        max_pending: int | None = None,
    ) -> Opening[DurableSubscription[Any]]:
        """Attach to a durable subscription, which outlives this client. The first client that attaches creates it.

        The next client that attaches, on any machine and at any time, continues after the last acknowledged event:
        nothing is missing, and only unacknowledged events are delivered again. A new durable subscription begins with
        the events published after the call. Without `group`, one client at a time is attached; the previous one gets a
        `SubscriptionEndedError`.

        Parameters:
            name: the name of the durable subscription in the network.
            filter: the condition for events. Another filter than before is refused, unless `replace` is set.
            type: a msgspec struct, a dataclass or a pydantic model; a field of `DurableEvent` gets the event to
                acknowledge.
            group: share it with all clients that attach with `group=True`: each event is delivered to one of them.
            ack: "auto" acknowledges an event when you ask for the next one; "manual" when you call `event.ack()` or
                `subscription.ack()`, or leave `async with event:`. Only "manual" has `event.nack()`.
            replace: allow another filter or `group` than before.
            redeliver_s: in a group, redeliver an event to another member if it is not acknowledged within this time.
            max_deliveries: an event that was delivered this many times without an acknowledgement becomes a dead
                letter, an event with `dead_letter.subscription` and the event's own attributes with the prefix
                `event.`.
            max_pending: as for `subscribe`.

        Example: `async with client.durable("billing", "topic = 'order'", ack="manual") as orders:`
        """
        choices = (type, group, ack, replace, redeliver_s, max_deliveries, max_pending)
        return Opening(self._attach(name, filter, *choices), "client.durable(…)", DurableSubscription)

    async def _attach(
        self, name: str, filter: str, type: type[Any] | None, group: bool, ack: AckMode, replace: bool,
        redeliver_s: float, max_deliveries: int | None, max_pending: int | None,
    ) -> DurableSubscription[Any]:  # fmt: skip
        settings = self._subscribing.settings(filter, max_pending)
        checked = check_durable(
            self._connection_manager.spec, name, ack, redeliver_s, max_deliveries, group=group, replace=replace
        )
        again = partial(self._attach, name, filter, type, group, ack, replace, redeliver_s, max_deliveries, max_pending)
        made = self._subscribing.make_durable(settings, again, type, checked, ack, group=group)
        return await self._subscribing.begin(
            made, replace=replace, redeliver_s=redeliver_s if group else None, max_deliveries=max_deliveries
        )

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
        """Read the events between two positions, in causal order. Iteration ends with the last one.

        All subscriptions and reads of a client share one window, so one whose events you do not take stops the others.
        Close a read that you do not finish; if you forget, the log `gapless.client` names it.

        Parameters:
            filter: the condition for events.
            since: after this position, time or age; "earliest" is the beginning of history.
            until: up to this position, time or age. None: everything confirmed before the call.
            type: as for `subscribe`.

        Example: `async for order in await client.read("topic = 'order'", "1h"): print(order)`
        """
        return Opening(self._read(filter, since, until, type), "client.read(…)", Subscription)

    async def _read(self, filter: str, since: Since, until: Since | None, type: type[Any] | None) -> Subscription[Any]:
        settings = self._subscribing.settings(filter)
        begin, end = await self._subscribing.range(since, until)
        made = self._subscribing.make(settings, partial(self._read, filter, since, until, type), type)
        return await self._subscribing.begin(made, begin, end)

    def archive(self, directory: Path | str) -> ArchiveReader:
        """Return a reader for an archive, which is a directory that `gapless archive` writes.

        Parameters:
            directory: the directory of the archive.

        Example: `trades = client.archive("trades").subscribe("topic = 'trade'", since="30d")`
        """
        return ArchiveReader(self._subscribing, directory)

    async def position(self, at: Since = "now") -> Position:
        """Return the newest position, or the one that a time or age denotes. Every event confirmed before this call is
        at or before the newest position.

        Parameters:
            at: a time or an age instead. A broker answers; the clock of this machine is not used.

        Example: `checkpoint = await client.position()`
        """
        return await self._subscribing.position("at", at)

    async def milestones(
        self, filter: str, since: Since = "earliest", until: Since | None = None, *, events: int = 4_096
    ) -> Milestones:
        """Return positions that divide a range of history evenly, so that several programs can share a long read, each
        from one position to the next.

        Parameters:
            filter: the condition for the events to count.
            since: the positions are after this one.
            until: the last of them. None: the newest position.
            events: how many matching events may lie between two positions. Events of one timestamp stay together.

        Example: `parts = (await client.milestones("topic = 'trade'", since="7d")).positions`
        """
        check_count("events", events)
        begin, end = await self._subscribing.range(since, until)
        survey = await begin_survey(self, filter, begin, end, Volume(events))
        return await survey.milestones(begin, events)

    def answer(
        self,
        filter: str,
        handler: Handler,
        *,
        group: str | None = None,
        concurrency: int = 1,
        redeliver_s: float = REDELIVER_S,
        max_pending: int | None = None,
    ) -> Opening[Answering]:
        """Answer requests that match a filter: call a handler with each request, and publish its result as the reply.

        If the handler raises, the caller gets a `RequestFailedError` with the text. The handler is cancelled when the
        caller stops waiting.

        Parameters:
            filter: the condition for requests.
            handler: an asynchronous function of the request. It returns the attributes of the reply, or attributes and
                a payload, or None for no reply.
            group: share the requests with all clients that answer with the same group, a durable subscription of this
                name: each goes to one of them. Requests that arrive while there is no worker wait for the next.
            concurrency: how many requests are handled at the same time.
            redeliver_s: in a group, redeliver a request to another worker if it is not finished within this time.
            max_pending: as for `subscribe`.

        Example: `async with client.answer("topic = 'ask'", price, group="quotes") as answering:`
        """
        choices = (group, concurrency, redeliver_s, max_pending)
        return Opening(self._answer(filter, handler, *choices), "client.answer(…)", Answering)

    async def _answer(
        self, filter: str, handler: Handler, group: str | None, concurrency: int, redeliver_s: float,
        max_pending: int | None,
    ) -> Answering:  # fmt: skip
        check_filter(filter)
        check_count("concurrency", concurrency)
        if not callable(handler):
            raise CallError("the handler of requests must be an asynchronous function of one argument, the request")
        subscription = await self._requests(f"({filter}) AND {ANSWERABLE}", group, redeliver_s, max_pending)
        now_s: Callable[[], float] = self._connection_manager.registrations.clock.now_s
        answering = Answering(self._answerer(), filter, subscription, handler, concurrency, now_s)
        try:
            return await answering._begin()
        except BaseException:
            await answering.close()
            raise

    async def _requests(
        self, filter: str, group: str | None, redeliver_s: float, max_pending: int | None
    ) -> Subscription[Any]:
        if group is not None:
            check_redelivery(redeliver_s, group=True)
            return await self._attach(group, filter, None, True, "manual", False, redeliver_s, None, max_pending)
        check_redelivery(redeliver_s, group=False)
        return await self._subscribe(filter, None, None, max_pending)

    def _answerer(self) -> Any:
        """Return this client, typed as one that can also publish, to send replies."""
        return self

    async def unsubscribe(self, subscription: Subscription[Any]) -> None:
        """End a subscription as `subscription.close()` does. Return when its ending cut is known.

        Parameters:
            subscription: the result of `subscribe`, `durable` or `read`.

        Example: `await client.unsubscribe(prices)`
        """
        check_kind("a subscription", subscription, Subscription, "subscribe()")
        await self._connection_manager.registrations.unsubscribe(subscription)
