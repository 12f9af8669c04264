"""Generated from `gapless.client.subscribing_calls` by `scripts/generate_sync_client.py`. Edit that file instead."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, overload

from gapless.client.answering import Answer
from gapless.client.caller_side import CallerSide
from gapless.client.durables import REDELIVER_S
from gapless.client.milestones import Milestones
from gapless.client.positions import Since
from gapless.client.sync_admin import Admin
from gapless.client.sync_answering import Answering
from gapless.client.sync_archive_reader import ArchiveReader
from gapless.client.sync_subscription import DurableSubscription, Subscription
from gapless.events import Event
from gapless.names import AckMode
from gapless.positions import Position

__all__ = ["SubscribingCalls"]
T = TypeVar("T")


class SubscribingCalls(CallerSide):
    """Base class of `Client`: the calls that receive events."""

    @property
    def admin(self) -> Admin:
        """Lists, moves and deletes durable subscriptions, and ends clients."""
        return Admin(self._loop, self._inner.admin)

    @overload
    def subscribe(
        self, filter: str, *, since: Since | None = None, max_pending: int | None = None
    ) -> Subscription[Event]: ...

    @overload
    def subscribe(
        self, filter: str, *, since: Since | None = None, type: type[T], max_pending: int | None = None
    ) -> Subscription[T]: ...

    def subscribe(
        self, filter: str, *, since: Since | None = None, type: type[Any] | None = None, max_pending: int | None = None
    ) -> Subscription[Any]:
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

        Example: `with client.subscribe("topic = 'price' AND amount < 10") as prices:`
        """
        return Subscription(
            self._loop, self._loop.run(self._inner.subscribe(filter, since=since, type=type, max_pending=max_pending))
        )

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
    ) -> DurableSubscription: ...

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
    ) -> DurableSubscription[T]: ...

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
    ) -> DurableSubscription[Any]:
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
                `subscription.ack()`, or leave `with event:`. Only "manual" has `event.nack()`.
            replace: allow another filter or `group` than before.
            redeliver_s: in a group, redeliver an event to another member if it is not acknowledged within this time.
            max_deliveries: an event that was delivered this many times without an acknowledgement becomes a dead
                letter, an event with `dead_letter.subscription` and the event's own attributes with the prefix
                `event.`.
            max_pending: as for `subscribe`.

        Example: `with client.durable("billing", "topic = 'order'", ack="manual") as orders:`
        """
        return DurableSubscription(
            self._loop,
            self._loop.run(
                self._inner.durable(
                    name,
                    filter,
                    type=type,
                    group=group,
                    ack=ack,
                    replace=replace,
                    redeliver_s=redeliver_s,
                    max_deliveries=max_deliveries,
                    max_pending=max_pending,
                )
            ),
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
        """Read the events between two positions, in causal order. Iteration ends with the last one.

        All subscriptions and reads of a client share one window, so one whose events you do not take stops the others.
        Close a read that you do not finish; if you forget, the log `gapless.client` names it.

        Parameters:
            filter: the condition for events.
            since: after this position, time or age; "earliest" is the beginning of history.
            until: up to this position, time or age. None: everything confirmed before the call.
            type: as for `subscribe`.

        Example: `for order in client.read("topic = 'order'", "1h"): print(order)`
        """
        return Subscription(self._loop, self._loop.run(self._inner.read(filter, since, until, type=type)))

    def archive(self, directory: Path | str) -> ArchiveReader:
        """Return a reader for an archive, which is a directory that `gapless archive` writes.

        Parameters:
            directory: the directory of the archive.

        Example: `trades = client.archive("trades").subscribe("topic = 'trade'", since="30d")`
        """
        return ArchiveReader(self._loop, self._inner.archive(directory))

    def position(self, at: Since = "now") -> Position:
        """Return the newest position, or the one that a time or age denotes. Every event confirmed before this call is
        at or before the newest position.

        Parameters:
            at: a time or an age instead. A broker answers; the clock of this machine is not used.

        Example: `checkpoint = client.position()`
        """
        found: Position = self._loop.run(self._inner.position(at))
        return found

    def milestones(
        self, filter: str, since: Since = "earliest", until: Since | None = None, *, events: int = 4096
    ) -> Milestones:
        """Return positions that divide a range of history evenly, so that several programs can share a long read, each
        from one position to the next.

        Parameters:
            filter: the condition for the events to count.
            since: the positions are after this one.
            until: the last of them. None: the newest position.
            events: how many matching events may lie between two positions. Events of one timestamp stay together.

        Example: `parts = client.milestones("topic = 'trade'", since="7d").positions`
        """
        found: Milestones = self._loop.run(self._inner.milestones(filter, since, until, events=events))
        return found

    def answer(
        self,
        filter: str,
        handler: Callable[[Event], Answer],
        *,
        group: str | None = None,
        concurrency: int = 1,
        redeliver_s: float = REDELIVER_S,
        max_pending: int | None = None,
    ) -> Answering:
        """Answer requests that match a filter: call a handler with each request, and publish its result as the reply.

        If the handler raises, the caller gets a `RequestFailedError` with the text. The reply of a handler that is
        still running when its caller stops waiting is dropped.

        Parameters:
            filter: the condition for requests.
            handler: a function of the request. It returns the attributes of the reply, or attributes and a payload, or
                None for no reply.
            group: share the requests with all clients that answer with the same group, a durable subscription of this
                name: each goes to one of them. Requests that arrive while there is no worker wait for the next.
            concurrency: how many requests are handled at the same time, each in a thread.
            redeliver_s: in a group, redeliver a request to another worker if it is not finished within this time.
            max_pending: as for `subscribe`.

        Example: `with client.answer("topic = 'ask'", price, group="quotes") as answering:`
        """
        return self._answer(
            filter, handler, group=group, concurrency=concurrency, redeliver_s=redeliver_s, max_pending=max_pending
        )

    def unsubscribe(self, subscription: Subscription[Any]) -> None:
        """End a subscription as `subscription.close()` does. Return when its ending cut is known.

        Parameters:
            subscription: the result of `subscribe`, `durable` or `read`.

        Example: `client.unsubscribe(prices)`
        """
        self._loop.run(self._inner.unsubscribe(getattr(subscription, "_inner", subscription)))
