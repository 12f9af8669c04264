"""What a client is delivered, and up to where its application has taken it.

Deliveries have numbers, which the broker counts from the `Attach` on; what is out of order is of an earlier attempt.
What an heir collected may come twice, or in another order: the client leaves out what it has.
"""

from collections import deque
from collections.abc import Iterable, Mapping
from operator import lt

from gapless.events import Event, EventRun, Events
from gapless.protocol import CutFixed, Deliver, DeliverMany, Skipped
from gapless.protocols.gapless.client.held_subscription import HeldSubscription
from gapless.protocols.gapless.client.line import Line
from gapless.protocols.gapless.client.named_client import NamedClient
from gapless.protocols.gapless.client_messages import ClientGot, Delivery
from gapless.protocols.gapless.groups.client import GroupClient
from gapless.protocols.gapless.messages import Cuts
from gapless.protocols.gapless.tombstones import concerns_anybody, has_lost, is_lost

__all__ = ["Deliveries"]


class Deliveries:
    """Those of one client."""

    def __init__(
        self, line: Line, held: Mapping[str, HeldSubscription], named: NamedClient, groups: GroupClient
    ) -> None:
        self.received = 0
        """The number of the broker's last delivery."""
        self.clock = 0
        """No stamp of what it was delivered is larger."""
        self.count = 0
        """How many events were handed to the application."""
        self._line = line
        self._held = held
        self._named = named
        self._groups = groups
        self._paced = 0
        """The last event that a broker waits for: not what a group was dealt, which is confirmed apart."""
        self._taken = 0
        self._untaken: deque[tuple[int, int]] = deque()
        """What is not taken: `count` after a delivery, and its number."""

    def begin_anew(self) -> None:
        """The next broker counts on from what the application has not taken."""
        self.received = max(0, self._paced - self._taken)
        self._untaken = deque([(self._paced, self.received)])

    def receive(self, message: Delivery) -> None:
        """Hand over what has not come before."""
        if message.number != self.received + 1:
            return
        self.received += len(message.events)
        known = self._held
        asked = [(name, known[name], known[name].got) for name in message.subscriptions if name in known]
        events = message.events
        if has_lost(events):
            events = self._tell_lost(asked, events)
        is_run = len(events) > 1 and len(asked) == 1
        if not is_run or not self._deliver_run(asked[0][1], events):
            self._deliver_each(asked, events.apart() if isinstance(events, EventRun) else events)
        self._untaken.append((self._paced, self.received))
        self._groups.work()
        self.tell_taken()

    def deal(self, effect: Deliver) -> int:
        """The application is given what it was dealt in a group; returns which delivery that is."""
        self.count += 1
        self.clock = max(self.clock, effect.event.stamp)
        self._line.emit(effect)
        return self.count

    def _tell_lost(self, asked: list[tuple[str, HeldSubscription, Cuts]], events: Events) -> list[Event]:
        """Tell of tombstones, each in its place; return what follows the last of them."""
        waiting: list[Event] = []
        for event in events:
            if not is_lost(event.attributes):
                waiting.append(event)
                continue
            self._deliver_each(asked, waiting)
            waiting = []
            for name, held, got in asked:
                is_open = held.is_whole and event.stamp > held.began and concerns_anybody(event.attributes)
                if not (is_open or held.has_history or event.publisher in held.cuts):
                    held.keep_unplaced(event.publisher, event.seq)
                    continue
                missed = held.miss({event.publisher: [(event.seq, event.seq)]}, whatever_cuts_say=is_open)
                if missed:
                    got[event.publisher] = event.seq
                    self._line.emit(Skipped(held.told_as(name), missed))
        return waiting

    def _deliver_run(self, held: HeldSubscription, events: Events) -> bool:
        """Hand the events over as one, if they are of one publisher, in order, and none of them has come before."""
        first, last = events[0], events[-1]
        publisher = first.publisher
        if (
            held.is_behind
            or held.named is not None
            or held.dealer is not None
            or held.skipped
            or held.got.get(publisher, 0) >= first.seq
            or held.is_outside(first)
            or held.is_outside(last)
            or held.parted[1] >= first.stamp > 0
            or held.stands_before(publisher, first.seq)
        ):
            return False
        if held.was_behind and publisher not in held.cuts and not held.has_history:
            return False
        if isinstance(events, list):
            seqs = [event.seq for event in events]
            if not all(map(lt, seqs, seqs[1:])) or [event.publisher for event in events].count(publisher) < len(events):
                return False
        held.got[publisher] = last.seq
        self.clock = max(self.clock, last.stamp)
        self.count += len(events)
        self._paced = self.count
        self._line.emit(DeliverMany(events, held.name))
        return True

    def _deliver_each(self, asked: list[tuple[str, HeldSubscription, Cuts]], events: Iterable[Event]) -> None:
        for event in events:
            publisher, seq = event.publisher, event.seq
            if event.stamp > self.clock:
                self.clock = event.stamp
            for name, held, got in asked:
                if got.get(publisher, 0) < seq and (not held.is_behind or self._is_due(held, event)):
                    if held.is_outside(event) or held.stands_before(publisher, seq):
                        continue
                    if held.skipped and held.was_told_lost(publisher, seq):
                        continue
                    if held.parted[0] < event.stamp <= held.parted[1]:
                        continue  # it was told to be missing, and what has come may be an effect of it
                    if held.was_behind and publisher not in held.cuts and not held.has_history:
                        self._begin_with(held, event)
                    got[publisher] = seq
                    if held.dealer is not None:
                        held.dealer.delivered(event)
                        continue
                    self.count += 1
                    self._paced = self.count
                    self._line.emit(Deliver(event, name))
                    if held.named is not None:
                        self._named.delivered(held.named, self.count, event)

    def _is_due(self, held: HeldSubscription, event: Event) -> bool:
        if not held.is_due(event):
            return False
        if event.publisher not in held.cuts and not held.has_history:
            self._begin_with(held, event)
        return True

    def _begin_with(self, held: HeldSubscription, event: Event) -> None:
        """It is the first of its publisher: of one that came while the client lay behind, or its session was lost."""
        held.cuts[event.publisher] = event.seq
        self._line.emit(CutFixed(held.name, event.publisher, event.seq))

    def consumed(self, count: int) -> None:
        """The application has taken so many events."""
        self._taken = count
        self._named.consumed(count)
        self._groups.consumed(count)
        self.tell_taken()

    def tell_taken(self) -> None:
        """Tell the broker up to which number the application has taken everything; not while too much is to be dealt
        out in a group."""
        if self._groups.is_full:
            return
        number = 0
        while self._untaken and self._untaken[0][0] <= self._taken:
            number = self._untaken.popleft()[1]
        if number:
            self._line.send(ClientGot(self._line.attempt, number))
