"""The subscriptions of a client: how they begin and end, and what its broker answers about them."""

from collections.abc import Iterable, Iterator

from gapless.protocol import (
    Activated,
    CaughtUp,
    CutFixed,
    CutsVoided,
    Deliver,
    Ended,
    Rejected,
    Skipped,
    Subscribe,
    Unsubscribe,
)
from gapless.protocols.gapless.client.deliveries import Deliveries
from gapless.protocols.gapless.client.held_subscription import HeldSubscription
from gapless.protocols.gapless.client.line import Line
from gapless.protocols.gapless.client.named import Named
from gapless.protocols.gapless.client.named_client import NamedClient
from gapless.protocols.gapless.client_messages import (
    Behind,
    ClientSubscribe,
    ClientUnsubscribe,
    Cut,
    Parted,
    Reached,
    SubscriptionProgress,
    Unsubscribed,
)
from gapless.protocols.gapless.groups.client import GroupClient
from gapless.protocols.gapless.groups.dealer import Dealer
from gapless.protocols.gapless.messages import Cuts, Ranges
from gapless.protocols.gapless.name_messages import NameRecord
from gapless.protocols.gapless.parting import TOGETHER
from gapless.protocols.parts.forgetting import forget_oldest
from gapless.protocols.parts.ranges import add_ranges

__all__ = ["Subscriptions"]

SEEN_MAX = 100
"""Of so many publishers it is remembered what came for subscriptions that are over."""


class Subscriptions:
    """Those of one client; what is particular about named ones is in `named`, what came for all in `deliveries`."""

    def __init__(self, line: Line, client: str) -> None:
        self.seen: Cuts = {}
        """By publisher: the last number that was delivered for subscriptions that are over."""
        self._line = line
        self._held: dict[str, HeldSubscription] = {}
        self._parted = TOGETHER
        """Between which positions halves of the network had gone on without each other, as its broker says."""
        self.named = NamedClient(line, self)
        self.groups = GroupClient(client, line, self)
        self.deliveries = Deliveries(line, self._held, self.named, self.groups)

    def __len__(self) -> int:
        return len(self._held)

    def __contains__(self, subscription: str) -> bool:
        return subscription in self._held or subscription in self.named or subscription in self.groups

    def texts(self) -> Iterator[tuple[str, str]]:
        """Names and filters."""
        return ((name, held.text) for name, held in self._held.items())

    @property
    def reading(self) -> int:
        """How many read history because they were to."""
        return sum(held.since >= 0 and not held.is_behind for held in self._held.values())

    # ---- the session --------------------------------------------------------------------------------------

    def progress(self) -> list[SubscriptionProgress]:
        """How far each has come, for whoever holds the session. Those that were about to end have ended."""
        for name in [name for name, held in self._held.items() if held.is_ending]:
            self._end(name, self._held[name].last())
        return [held.progress() for held in self._held.values()]

    def begin_anew(self, names: Iterable[str]) -> None:
        """Whoever holds the session does not know these: their cuts so far are void."""
        for name in names:
            held = self._held[name]
            assert not held.got, "a subscription that delivered cannot be unknown to its heir"
            held.is_behind, held.since = False, -1
            if held.cuts:
                self._line.emit(CutsVoided(name))
                held.cuts = {}

    def expired(self) -> None:
        """The session is no more. What can be read again goes on from where it was; the rest ends."""
        for name, held in list(self._held.items()):
            if held.named is not None or held.dealer is not None:
                held.since, held.is_behind, held.cuts = held.reached, False, {}
            elif held.since < 0 or held.is_behind:
                self._end(name, held.last())

    # ---- calls --------------------------------------------------------------------------------------------

    def subscribe(self, call: Subscribe) -> None:
        """Begin one, whose filter was checked."""
        if call.name:
            reason = self.named.objection(call, is_held=self.groups.holds(call.name))
            if reason:
                self._line.emit(Rejected(call, reason))
            elif call.group:
                self.groups.subscribe(call)
            else:
                self.named.subscribe(call)
        else:
            held = HeldSubscription(call.subscription, call.filter, call.ready, call.since, call.until)
            self._held[call.subscription] = held
            self._line.send(ClientSubscribe(self._line.attempt, call.subscription, call.filter, held.since, held.until))

    def begin_named(self, call: Subscribe, named: Named, record: NameRecord) -> None:
        """A named one is this client's: it goes on after what is confirmed."""
        held = HeldSubscription(call.subscription, call.filter, call.ready, record.begin, None)
        held.named, held.got = named, dict(record.got)
        self._held[call.subscription] = held
        self._line.send(ClientSubscribe(self._line.attempt, call.subscription, call.filter, record.position))

    def listen(self, call: Subscribe, dealer: Dealer, record: NameRecord) -> None:
        """Read for a group, from what is confirmed on."""
        held = HeldSubscription(dealer.line, call.filter, call.ready, record.begin, None)
        held.dealer, held.got = dealer, dict(record.got)
        self._held[dealer.line] = held
        self._line.send(ClientSubscribe(self._line.attempt, dealer.line, call.filter, record.position))

    def deafen(self, line: str) -> None:
        """Another reads for the group, or nobody has to."""
        self._held.pop(line, None)

    def deal(self, effect: Deliver) -> int:
        """The application is given what it was dealt in a group; returns which delivery that is."""
        return self.deliveries.deal(effect)

    def unsubscribe(self, call: Unsubscribe) -> None:
        """End one; a named one when what is confirmed is known."""
        if call.subscription in self.groups:
            self.groups.unsubscribe(call.subscription)
            return
        held = self._held.get(call.subscription)
        if call.subscription in self.named and not (held is not None and held.is_ending):
            if not self.named.unsubscribe(call.subscription):
                self._line.emit(Ended(call.subscription, {}))
            elif held is not None:
                held.is_ending = True
        elif held is None or held.is_ending:
            self._line.emit(Rejected(call, f"there is no subscription {call.subscription!r} to end"))
        else:
            held.is_ending = True
            self._line.send(ClientUnsubscribe(self._line.attempt, call.subscription))

    # ---- answers ------------------------------------------------------------------------------------------

    def cut(self, message: Cut) -> None:
        """It is known where a subscription starts: for some publishers, or for all."""
        held = self._held.get(message.subscription)
        if held is None:
            return
        for publisher, cut in message.cuts.items():
            if publisher not in held.cuts:
                missed = held.start_with(publisher, cut)
                if not held.has_history:
                    self._line.emit(CutFixed(message.subscription, publisher, cut))
                if missed:
                    self._line.emit(Skipped(held.told_as(message.subscription), missed))
        if message.is_whole and not held.is_whole:
            held.is_whole, held.began = True, message.began
        if not held.is_active and held.dealer is None and (message.is_whole or held.ready == "first"):
            held.is_active = True
            self._line.emit(Activated(message.subscription))
        self._tell_parted(message.subscription, held)

    def behind(self, message: Behind) -> None:
        """The client lies behind: these are read from a position on."""
        for name in message.subscriptions:
            held = self._held.get(name)
            if held is not None:
                held.is_behind = held.was_behind = True
                held.since = message.position
                self._line.emit(CaughtUp(name, held.position(message.position), False))

    def reached(self, message: Reached) -> None:
        """All up to a position has come, of one subscription or of all that lay behind."""
        if message.subscription:
            names = [message.subscription] if message.subscription in self._held else []
        else:
            names = [name for name, held in self._held.items() if held.is_behind]
        for name in names:
            held = self._held[name]
            held.since = -1 if message.is_live else message.position
            held.is_behind = held.is_behind and not message.is_live
            lost: Ranges = {}
            for until, ranges in message.lost:
                add_ranges(lost, held.may_be_due(ranges, until))
            missed = held.miss(lost)
            if missed or message.gap:
                self._line.emit(Skipped(held.told_as(name), missed, message.gap))
            if held.dealer is not None:
                held.reached = max(held.reached, message.position)
                held.dealer.reached(held.reached)
                self.groups.work()
                continue
            if held.named is not None and message.position > held.reached:
                held.reached = message.position
                self.named.reached(held.named, self.deliveries.count, message.position)
            self._line.emit(CaughtUp(name, held.position(message.position), message.is_live))

    def parted(self, message: Parted) -> None:
        """What was published between two positions may be missing. Each broker that it comes to says so."""
        is_news = self._parted != (message.since, message.until)
        self._parted = message.since, message.until
        for name, held in self._held.items():
            held.has_early_cuts |= is_news and bool(held.cuts) and not held.is_whole
            self._tell_parted(name, held)

    def _tell_parted(self, name: str, held: HeldSubscription) -> None:
        if held.parts(self._parted):
            self._line.emit(Skipped(held.told_as(name), {}, held.told_parted))

    def unsubscribed(self, message: Unsubscribed) -> None:
        """The broker delivers nothing more for it."""
        held = self._held.get(message.subscription)
        if held is not None:
            last = {} if message.last else held.last()
            last |= {publisher: max(seq, held.got.get(publisher, 0)) for publisher, seq in message.last.items()}
            is_complete = held.until != 0 and not held.is_ending
            self._end(message.subscription, {**held.got, **last} if held.has_history else last, is_complete)

    def end_named(self, subscription: str, reason: str) -> None:
        """A named one is over, and why."""
        self._end(subscription, self._held[subscription].last(), reason=reason)

    def _end(self, name: str, last: Cuts, is_complete: bool = False, reason: str = "") -> None:
        held = self._held.pop(name)
        for publisher, seq in held.got.items():
            self.seen[publisher] = max(seq, self.seen.pop(publisher, 0))
        forget_oldest(self.seen, SEEN_MAX)
        if held.dealer is not None:
            return
        self.named.ended(name)
        self._line.emit(Ended(name, last, is_complete, reason))
