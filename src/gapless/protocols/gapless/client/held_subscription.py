"""A subscription as the client holds it: what is due, what has come, and what will not."""

from gapless.events import Event
from gapless.positions import Position
from gapless.protocol import NEWEST, Ready
from gapless.protocols.gapless import client_messages
from gapless.protocols.gapless.client.named import Named
from gapless.protocols.gapless.client_messages import SubscriptionProgress
from gapless.protocols.gapless.groups.dealer import Dealer
from gapless.protocols.gapless.messages import Cuts, Ranges
from gapless.protocols.gapless.parting import TOGETHER, Parting, join, to_tell
from gapless.protocols.parts.forgetting import forget_oldest
from gapless.protocols.parts.held import Held
from gapless.protocols.parts.ranges import add_range, without

__all__ = ["HeldSubscription"]

UNPLACED_MAX = 1_000
"""Publishers without a cut of which something is lost."""


class HeldSubscription(Held):
    """One of them."""

    def __init__(self, name: str, text: str, ready: Ready, since: Position | None, until: Position | None) -> None:
        super().__init__(name)
        self.text = text
        self.ready = ready
        self.since = _beginning(since)
        """If it reads history: everything up to this timestamp has come; else -1."""
        self.until = _end(until)
        self.has_history = since is not None
        self._start = self.since
        self._begins = None if since in (None, NEWEST, Position.at(0)) else since
        """Nothing up to this position is due, whatever cuts say.

        The smallest story: p:1 is on its way when s is begun from a position after it. s is covered by t, which gets
        p:1, so both have that cut. s is not given p:1. Then its broker dies, and the heir knows nothing but the cut.
        """
        self._ends = None if until in (None, NEWEST) else until
        """Nothing after this position is due."""
        self.is_whole = False
        self.is_behind = False
        """Whether it reads history because the client lay behind."""
        self.was_behind = False
        """Whether it ever did: then it may not have been told all cuts."""
        self.began = 0
        """Of publishers without a cut, what has a larger stamp is due: they came after the subscription."""
        self.skipped: Ranges = {}
        """What will not come, and the application was told so."""
        self._unplaced: Ranges = {}
        """What is lost of publishers that have no cut yet."""
        self.parted = TOGETHER
        """Between which positions halves of the network had gone on without each other: nothing of that comes now."""
        self.told_parted = TOGETHER
        """The same, as the application was told."""
        self.has_early_cuts = False
        """Whether it had cuts when a parting became known, and was not whole yet: it begins from before, with these."""
        self.is_ending = False
        self.named: Named | None = None
        self.dealer: Dealer | None = None
        """If it is read for a group: who deals it out. Then it is none of the application's."""
        self.reached = self.since
        """If it is named: all up to this position has come."""
        if self._begins is not None and not self._begins.is_network_wide:
            self.got[self._begins.publisher] = self._begins.number

    def parts(self, parted: Parting) -> bool:
        """Whether the application has to be told of a parting: once, if it began, or reads from, before its end."""
        begins = self._start if self.has_history else self.began
        if not self.is_whole or (begins >= parted[1] and not self.has_early_cuts):
            return False
        self.parted = parted
        self.has_early_cuts = False
        told, self.told_parted = self.told_parted, join(self.told_parted, to_tell(parted))
        return told != self.told_parted

    def told_as(self, name: str) -> str:
        """Under which name the application is told of a loss: for a group, that with which it takes part."""
        return name if self.dealer is None else self.dealer.call.subscription

    def is_outside(self, event: Event) -> bool:
        """Whether an event lies before the position where the subscription begins, or after the one where it ends."""
        begins, ends = self._begins, self._ends
        return (begins is not None and event.stamp <= begins.timestamp and event.position <= begins) or (
            ends is not None and event.stamp >= ends.timestamp and event.position > ends
        )

    def position(self, stamp: int) -> Position:
        """The position that it has got to, if everything up to this timestamp has come."""
        position = Position.at(stamp)
        if self._begins is not None and position < self._begins:
            return self._begins
        return position if self._ends is None or position < self._ends else self._ends

    def is_due(self, event: Event) -> bool:
        """Whether an event that was read again comes from its cut on, or after the position where it began."""
        cut = self.cuts.get(event.publisher)
        if self.has_history or cut is None:
            return event.stamp > (self._start if self.has_history else self.began)
        return event.seq >= cut

    def stands_before(self, publisher: str, seq: int) -> bool:
        """Whether an event stands before the cut that the application was told.

        The smallest story: p:1 comes by, and s starts with p:2. All who held p:1 are lost, before p's client hears that
        it is safe: it publishes p:1 again.
        """
        return not self.has_history and seq < self.cuts.get(publisher, 0)

    def may_be_due(self, lost: Ranges, position: int) -> Ranges:
        """Of what is lost and was admitted up to a position: not what came before the subscription, of publishers
        without a cut.

        The smallest story: p has left. s begins, falls behind, and its broker, which was restarted, knows only an old
        position that everything had reached: so s is read from there on. That p:1 is gone does not concern s.
        """
        if self.has_history or position > self.began:
            return lost
        return {publisher: ranges for publisher, ranges in lost.items() if publisher in self.cuts}

    def miss(self, lost: Ranges, *, whatever_cuts_say: bool = False) -> Ranges:
        """Of what nobody has any more: what is due, has not come, and was not told before."""
        starts = {} if self.has_history or whatever_cuts_say else self.cuts
        past: Ranges = {p: [(1, max(self.got.get(p, 0), starts.get(p, 1) - 1))] for p in lost}
        missed = without(without(lost, past), self.skipped)
        for publisher, ranges in missed.items():
            for first, last in ranges:
                add_range(self.skipped, publisher, first, last)
        return missed

    def keep_unplaced(self, publisher: str, seq: int) -> None:
        """An event is lost of a publisher that has no cut yet, so nobody can tell whether it is due.

        The smallest story: p is lost with p:1, which c had got before. s begins. c's broker makes a tombstone of p:1,
        and it comes to s. Then p is back, and s starts with p:1.
        """
        add_range(self._unplaced, publisher, seq, seq)
        forget_oldest(self._unplaced, UNPLACED_MAX)

    def start_with(self, publisher: str, cut: int) -> Ranges:
        """Its cut is known. Return what the application misses, of what is lost."""
        self.cuts[publisher] = cut
        missed = self.miss({publisher: self._unplaced.pop(publisher, [])})
        for ranges in missed.values():
            self.got[publisher] = max(ranges[-1][1], self.got.get(publisher, 0))
        return missed

    def was_told_lost(self, publisher: str, seq: int) -> bool:
        """Whether the application was told that it will not get the event: then it does not."""
        return any(first <= seq <= last for first, last in self.skipped.get(publisher, ()))

    def last(self) -> Cuts:
        """The ending cut, if the subscription ended now."""
        return dict(self.got) if self.has_history else super().last()

    def progress(self) -> SubscriptionProgress:
        """How far it has come, for whoever holds the session."""
        return SubscriptionProgress(
            self.name, self.text, dict(self.cuts), dict(self.got), self.is_whole, self.since, self.until, self.is_behind
        )


def _beginning(since: Position | None) -> int:
    """As brokers know it: a timestamp, and the client leaves out what has a larger one and lies before the position."""
    if since is None:
        return -1
    return client_messages.LATEST if since == NEWEST else since.floor


def _end(until: Position | None) -> int:
    if until is None:
        return 0
    return client_messages.NEWEST if until == NEWEST else until.timestamp
