"""The subscriptions and advertisements of a client, and the calls that wait until one has started or ended."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any, Protocol

from gapless.client.advertisement import Advertisement
from gapless.client.deliveries import Deliveries
from gapless.client.network_clock import NetworkClock
from gapless.client.pacing import Pacing
from gapless.client.unsafe import complete, refuse
from gapless.errors import CallError, ClosedError, DeniedError, GaplessError, SubscriptionEndedError
from gapless.event_runs import EventRun
from gapless.events import Event
from gapless.names import (
    LISTING,
    Acknowledged,
    Attached,
    DeadLettered,
    DurableChanged,
    DurableInfo,
    DurablesListed,
    EachAcknowledged,
    JoinedGroup,
    ListDurables,
    MoveDurable,
    Revoked,
)
from gapless.positions import Position
from gapless.protocol import (
    Activated,
    Advertise,
    Advertised,
    CaughtUp,
    CutFixed,
    CutsVoided,
    Deliver,
    DeliverMany,
    Ended,
    Rejected,
    Skipped,
    Subscribe,
    Unadvertise,
    Unsubscribe,
)

__all__ = ["Registrations"]

_logger = logging.getLogger("gapless.client")

ENDED = "the network ended the subscription: the client was disconnected for too long, or all brokers were restarted"
ENDED_EARLY = (
    "the network ended the subscription before it began, because the client was disconnected for too long; "
    "subscribe again"
)


class _ConnectionManager(Protocol):
    name: str
    is_leaving: bool

    def call(self, call: Any) -> None: ...

    def give_input(self, news: Any) -> None: ...


class Registrations:
    """The registrations of one client. `paces` says whether its protocol uses reports of progress, in which case
    brokers send at most `window` deliveries ahead.
    """

    def __init__(self, connection_manager: _ConnectionManager, *, paces: bool, window: int) -> None:
        self.advertisements: dict[str, Advertisement] = {}
        self.subscriptions: dict[str, Deliveries] = {}
        self.pacing = Pacing(
            connection_manager.name,
            self.subscriptions,
            connection_manager.give_input,
            sends_reports=paces,
            window=window,
        )
        self.handlers: dict[type, Callable[[Any], None]] = {
            Advertised: self._on_advertised,
            Activated: self._on_activated,
            CutFixed: self._on_cut_fixed,
            CutsVoided: self._on_cuts_voided,
            Deliver: self._on_deliver,
            DeliverMany: self._on_deliver_many,
            CaughtUp: self._on_caught_up,
            Skipped: self._on_skipped,
            Ended: self._on_ended,
            Attached: self._on_opened,
            Acknowledged: self._on_acknowledged,
            EachAcknowledged: self._on_each_acknowledged,
            DeadLettered: self._on_dead_lettered,
            JoinedGroup: self._on_joined,
            Revoked: self._on_revoked,
            DurablesListed: self._on_listed,
            DurableChanged: self._on_changed,
        }
        """The handler for each type of effect that concerns registrations."""
        self.clock = NetworkClock()
        self._connection_manager = connection_manager
        self._stable: dict[str, asyncio.Future[None]] = {}
        self._starting: dict[str, asyncio.Future[None]] = {}
        self._ending: dict[str, asyncio.Future[None]] = {}
        self._listing: dict[int, asyncio.Future[list[DurableInfo]]] = {}
        self._moving: dict[str, asyncio.Future[None]] = {}
        self._questions = 0

    # ---- calls of the application ---------------------------------------------------------------------------

    async def advertise(self, advertisement: Advertisement) -> None:
        """Send the advertisement, and return when the network knows it."""
        stable = self._stable[advertisement.id] = _future()
        try:
            self._connection_manager.call(Advertise(advertisement.id, advertisement.filter))
            self.advertisements[advertisement.id] = advertisement
            await stable
        except DeniedError:
            self.unadvertise(advertisement)
            raise
        finally:
            self._stable.pop(advertisement.id, None)

    def unadvertise(self, advertisement: Advertisement) -> None:
        """Withdraw the advertisement, unless it has ended."""
        if self.advertisements.pop(advertisement.id, None) is not None:
            self._connection_manager.call(Unadvertise(advertisement.id))

    async def subscribe(self, subscription: Deliveries, call: Subscribe) -> None:
        """Start the subscription, and return when it is active. If the caller stops waiting, the subscription is
        cancelled.
        """
        name = subscription.id
        active = self._starting[name] = _future()
        self.subscriptions[name] = subscription
        self.pacing.look_if_full()
        try:
            self._connection_manager.call(call)
            await active
        except BaseException:
            self._drop(name)
            raise
        finally:
            self._starting.pop(name, None)

    async def unsubscribe(self, subscription: Deliveries) -> None:
        """End the subscription, and return when its ending cut is known."""
        name = subscription.id
        if self.subscriptions.get(name) is not subscription:
            return
        ended = self._ending.get(name)
        if ended is None:
            ended = self._ending[name] = _future()
            if subscription._acks is not None:
                subscription._acks.left()
            subscription._release()
            self.pacing.took()
            self._connection_manager.call(Unsubscribe(name))
        await asyncio.shield(ended)

    async def release(self) -> None:
        """End all registrations. Return when the ending cuts of the subscriptions are known, and the ends of cancelled
        subscriptions.
        """
        for advertisement in list(self.advertisements.values()):
            self.unadvertise(advertisement)
        await asyncio.gather(*(self.unsubscribe(subscription) for subscription in list(self.subscriptions.values())))
        if self._ending:
            await asyncio.wait(self._ending.values())

    async def names(self) -> list[DurableInfo]:
        """Return the durable subscriptions of the network."""
        self._questions += 1
        number = self._questions
        listing: asyncio.Future[list[DurableInfo]] = asyncio.get_running_loop().create_future()
        self._listing[number] = listing
        try:
            self._connection_manager.call(ListDurables(number))
            return await listing
        finally:
            del self._listing[number]

    async def move(self, call: MoveDurable) -> None:
        """Move or delete a durable subscription. Return when that is done."""
        moved = self._moving[call.request] = _future()
        try:
            self._connection_manager.call(call)
            await moved
        finally:
            del self._moving[call.request]

    def reject(self, effect: Rejected) -> None:
        """End a subscription that the network rejected, or whose end it rejected because it has none."""
        if isinstance(effect.call, Unsubscribe) and effect.call.subscription in self._ending:
            complete(self._ending.pop(effect.call.subscription))
        if isinstance(effect.call, Subscribe) and effect.call.subscription in self._starting:
            refuse(self._starting[effect.call.subscription], CallError(effect.reason))

    def _drop(self, name: str) -> None:
        """Cancel a subscription whose caller stopped waiting."""
        if self.subscriptions.pop(name, None) is not None:
            self._ending.setdefault(name, _future())
            self._connection_manager.give_input(Unsubscribe(name))
            self.pacing.took()

    # ---- effects of the node --------------------------------------------------------------------------------

    def deny(self, name: str, reason: str) -> None:
        """Fail a registration for which the client does not have permission, or no longer has it."""
        whole, _, line = name.rpartition("#")
        if line.isdigit() and whole in {*self._starting, *self.subscriptions}:
            name = whole  # a group reports its members' registrations under its own name
        error = DeniedError(reason)
        if name in self._stable:
            refuse(self._stable[name], error)
        elif name in self._starting:
            refuse(self._starting[name], error)
        elif name in self._moving:
            refuse(self._moving[name], error)
        elif name.startswith(LISTING):
            self._deny_listing(int(name.removeprefix(LISTING)), error)
        elif name in self.subscriptions:
            self.subscriptions[name]._end(error)
            self._drop(name)
        elif name in self.advertisements:
            _logger.warning(
                f"an advertisement of {self._connection_manager.name} has ended: {reason}",
                extra={"event": "advertisement.ended"},
            )
            self._connection_manager.give_input(Unadvertise(self.advertisements.pop(name).id))

    def _deny_listing(self, question: int, error: DeniedError) -> None:
        if question in self._listing:
            refuse(self._listing[question], error)

    def fail(self, error: GaplessError, *, is_closed: bool) -> None:
        """Fail all waiting calls, and end the subscriptions with the error, or without one if the client was closed."""
        for future in [*self._stable.values(), *self._starting.values(), *self._moving.values()]:
            refuse(future, error)
        for ended in self._ending.values():
            complete(ended) if is_closed else refuse(ended, error)
        for listed in self._listing.values():
            refuse(listed, error)
        for subscription in self.subscriptions.values():
            subscription._end(None if is_closed else error)
            if subscription._acks is not None:
                subscription._acks.fail(error)

    def _on_advertised(self, effect: Advertised) -> None:
        if effect.advertisement in self._stable:
            complete(self._stable[effect.advertisement])

    def _on_activated(self, effect: Activated) -> None:
        if effect.subscription in self._starting:
            complete(self._starting[effect.subscription])

    def _on_cut_fixed(self, effect: CutFixed) -> None:
        if effect.subscription in self.subscriptions:
            self.subscriptions[effect.subscription].starting_cut[effect.publisher] = effect.from_seq

    def _on_cuts_voided(self, effect: CutsVoided) -> None:
        if effect.subscription in self.subscriptions:
            self.subscriptions[effect.subscription].starting_cut.clear()

    def _on_deliver(self, effect: Deliver) -> None:
        if effect.redelivered or effect.deliveries > 1:
            subscription = self.subscriptions.get(effect.subscription)
            if subscription is not None and subscription._acks is not None:
                subscription._acks.note_again(self.pacing.deliveries + 1, effect.deliveries)
        self._put(effect.subscription, [effect.event])

    def _on_deliver_many(self, effect: DeliverMany) -> None:
        self._put(effect.subscription, effect.events)

    def _put(self, name: str, events: list[Event] | EventRun) -> None:
        if events:
            self.clock.observe(events.stamp if isinstance(events, EventRun) else events[-1].stamp)
        first = self.pacing.delivered(len(events))
        subscription = self.subscriptions.get(name)
        if subscription is None:
            self.pacing.took()
            return
        if not subscription._put(first, events):
            asyncio.get_running_loop().call_soon(self._drop, name)
        if not subscription._holds_back:
            self.pacing.took()

    def _on_caught_up(self, effect: CaughtUp) -> None:
        subscription = self.subscriptions.get(effect.subscription)
        if subscription is not None:
            subscription._count(effect.position, effect.counted)
            subscription._reach(effect.position, is_live=effect.is_live)

    def _on_skipped(self, effect: Skipped) -> None:
        subscription = self.subscriptions.get(effect.subscription)
        if subscription is None or (not effect.lost and effect.gap is not None and effect.gap[0] == 0):
            return  # "earliest" means the earliest event that still exists
        gap = None if effect.gap is None else (Position.at(effect.gap[0]), Position.at(effect.gap[1]))
        subscription._skip(self.pacing.deliveries + 1, effect.lost, gap)

    def _on_ended(self, effect: Ended) -> None:
        name = effect.subscription
        subscription = self.subscriptions.pop(name, None)
        asked = self._ending.pop(name, None)
        if subscription is not None:
            subscription.ending_cut = effect.last_seq
            is_well = asked is not None or effect.is_complete
            error = SubscriptionEndedError(effect.reason or ENDED, effect.last_seq)
            subscription._end(None if is_well else error)
            if subscription._acks is not None:
                subscription._acks.fail(ClosedError("the durable subscription is closed") if is_well else error)
        if asked is not None:
            complete(asked)
        if name in self._starting:
            left = ClosedError("the client is closing")
            refuse(
                self._starting[name],
                left if self._connection_manager.is_leaving else SubscriptionEndedError(ENDED_EARLY),
            )

    def _on_opened(self, effect: Attached) -> None:
        subscription = self.subscriptions.get(effect.subscription)
        if subscription is not None:
            subscription._reach(Position.at(effect.position), is_live=False)
            if subscription._acks is not None:
                subscription._acks.opened(effect.delivered)

    def _on_acknowledged(self, effect: Acknowledged) -> None:
        subscription = self.subscriptions.get(effect.subscription)
        if effect.is_stored and subscription is not None and subscription._acks is not None:
            subscription._acks.kept(effect.count)

    def _on_each_acknowledged(self, effect: EachAcknowledged) -> None:
        subscription = self.subscriptions.get(effect.subscription)
        if effect.is_stored and subscription is not None and subscription._acks is not None:
            subscription._acks.kept_each(effect.counts)

    def _on_dead_lettered(self, effect: DeadLettered) -> None:
        subscription = self.subscriptions.get(effect.subscription)
        if subscription is None or subscription._acks is None:
            return
        subscription._acks.buried(effect.count)
        _logger.warning(
            f"event {effect.publisher}:{effect.seq} of the durable subscription {subscription.name!r} failed "
            f"{effect.deliveries} times (the last time: {effect.reason}) and is now the dead letter "
            f"{self._connection_manager.name}:{effect.letter}",
            extra={"event": "event.dead_lettered"},
        )

    def _on_joined(self, effect: JoinedGroup) -> None:
        subscription = self.subscriptions.get(effect.subscription)
        if subscription is not None:
            subscription._reach(Position.at(effect.position), is_live=True)

    def _on_revoked(self, effect: Revoked) -> None:
        subscription = self.subscriptions.get(effect.subscription)
        if subscription is not None and subscription._acks is not None:
            subscription._acks.revoke(effect.counts)
            subscription._withdraw(frozenset(effect.counts))

    def _on_listed(self, effect: DurablesListed) -> None:
        listing = self._listing.get(effect.request)
        if listing is not None and not listing.done():
            listing.set_result([*effect.found])

    def _on_changed(self, effect: DurableChanged) -> None:
        moved = self._moving.get(effect.request)
        if moved is not None and effect.reason:
            refuse(moved, CallError(effect.reason))
        elif moved is not None:
            complete(moved)


def _future() -> "asyncio.Future[None]":
    return asyncio.get_running_loop().create_future()
