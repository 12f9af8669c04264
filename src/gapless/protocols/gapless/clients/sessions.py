"""The broker's side of its clients: a client is a leaf of the tree, and its session is a link that can move.

A session outlives its connection and its broker. The broker keeps what it delivered until the client has taken
it; the client keeps what it published until it is safe, and knows the cut and position of each subscription. To
resume, the client tells all of this in one `Attach`, wherever the session is by then, and both sides go on: one
rule for a lost connection and a lost broker.

- A publication waits until the advertisement it relies on is stable, and until the backups hold it (`journal`).
- Nothing is delivered to a client before the backups know its subscriptions and their cuts. So a subscription that was
  lost with its broker has delivered nothing, and starts afresh with a later cut.
- A session whose client has not come back yet (an *orphan*) collects everything that matches. When the client brings
  its cuts and positions, what lies before them is dropped. It may bring cuts that the backups were not told; then those
  that were inferred are corrected (`reconcile`).
"""

from bisect import insort
from collections.abc import Container, Iterable, Iterator, Mapping

import msgspec

from gapless.errors import CallError
from gapless.events import Event, EventRun, Events
from gapless.filters import Filter, parse
from gapless.protocols.gapless.client_messages import (
    Attach,
    Behind,
    Delivery,
    Note,
    Reached,
    SubscriptionProgress,
    Unsubscribed,
)
from gapless.protocols.gapless.clients.inbox import Inbox
from gapless.protocols.gapless.clients.outbox import Outbox, Outgoing
from gapless.protocols.gapless.clients.session_state import (
    Hearing,
    Lag,
    Presence,
    Turn,
    next_hearing,
    next_lag,
    next_presence,
)
from gapless.protocols.gapless.epochs import Epoch, epoch_of
from gapless.protocols.gapless.messages import Cuts, SessionRecord
from gapless.protocols.gapless.routing.records import Advertisement, Subscription
from gapless.protocols.gapless.tombstones import is_lost

__all__ = ["Session"]

NEVER = 1 << 62
STANDING = (Hearing.STILL, Hearing.STILL_AND_DEAF)
DEAF = (Hearing.DEAF, Hearing.STILL_AND_DEAF)

RUN_MAX = 512
"""Events in one message. A run is not cut: no more are admitted at once."""
DELIVERY_MAX = 256
"""Events in one message that are put together."""
ALONE_MIN = 32
"""A run of so many events is not put together with others: its bytes serve all who get it."""


class Session:
    """One client of this broker."""

    def __init__(self, client: str, epoch: Epoch, noted: dict[str, None] | None = None) -> None:
        """`noted`: where those are noted to whom something is due (see `owing`)."""
        self.client = client
        self._noted = {} if noted is None else noted
        self.epoch = epoch
        self.attempt = 0
        """The client's current attempt."""
        self.subscriptions: dict[str, Subscription] = {}
        self.advertisements: dict[str, Advertisement] = {}
        self.stable: dict[str, None] = {}
        """The advertisements that events may rely on."""
        self.inbox = Inbox()
        self.queued = 0
        """The last publication put into the inbox."""
        self.admitted = 0
        self.secure_at = 0
        """Nothing is delivered before the backups hold the journal up to this number."""
        self.outbox = Outbox()
        self.last_cuts: dict[str, Cuts] = {}
        """By subscription: the cuts of publishers, also of those that have left since; kept for an absent client."""
        self.pasts: dict[tuple[str, int], Cuts] = {}
        """By event that an orphan collected in a hand-over in which cuts were inferred: how far its past reaches."""
        self.inferred: dict[str, Cuts] = {}
        """By inherited subscription: cuts that the heir had to infer, by publisher, and how early they may be."""
        self.untold: dict[str, None] = {}
        """Inherited subscriptions that were lost before the backups knew any cut: they have delivered nothing."""
        self.place = ""
        """The broker at which the client began the session."""
        self._presence = Presence.ORPHAN
        self._hearing = Hearing.OPEN
        self._lag = Lag.LIVE
        self._behind = -1
        self.in_flight = 0
        """Publications that wait for the backups."""
        self.dismissed = 0
        """The attempt with which the client was told to come again, since what it says with that does not count."""
        self.unready: dict[str, int] = {}
        """Subscriptions whose client was not told that nothing is left out any more, each with the number of the entry
        of the journal that makes it known; 0 if there is none yet."""
        self.timed_publication: tuple[int, int] | None = None
        """One that is not safe yet: its number, and when it came."""
        self.timed_delivery: tuple[int, int] | None = None
        """One that the application has not taken yet: how many there were with it, and when it was due."""
        self.owes_since = -1
        """Since when it keeps waves waiting; -1 if it does not."""
        self.owes_until = 0
        """How many deliveries it has to take so that this was another wait."""
        self.began: dict[str, int] = {}
        """By subscription: the broker's clock when it began (see `SessionRecord`)."""
        self.anew: dict[str, int] = {}
        """By subscription that began afresh: in which attempt its client was told so, if it may not have heard it."""
        self.revived: dict[str, None] = {}
        """Subscriptions that were lost with more than f brokers, and go on: their client knows the cuts that count."""
        self.lost: list[tuple[int, int]] = []
        """What its client published and nobody holds any more, if it may not have heard that."""
        self.told_lost = 0
        """In which attempt it was told so."""
        self.unburied: Cuts = {}
        """By publisher: the last event that its client was delivered and that is lost, if it has no tombstone yet."""
        self.notes: list[tuple[int, Note]] = []
        """What is to be told after that many deliveries."""
        self._catching_up: Container[str] = ()
        """The subscriptions that its client was told last, in this attempt, to catch up with."""
        self._read_to = -1
        """How far it was told to have come with them."""
        self.brought: dict[str, Cuts] = {}
        """By what the client reads out of history: the cuts that it knew when it came."""
        self.read_texts: dict[str, str] = {}
        """The filters of what the client reads out of history, by name."""
        self._live = 0
        """How many deliveries did not come out of history."""
        self._version = 0
        self._total = 0
        self._first = 1
        self._taken_number = 0

    @property
    def held(self) -> int:
        """The last number of its client's up to which everything is here."""
        return max(self.queued, self.admitted)

    @property
    def is_orphan(self) -> bool:
        """Whether the client still has to come and claim the session."""
        return self._presence is Presence.ORPHAN

    @property
    def is_away(self) -> bool:
        """Whether the client is out of sight, and the session's time runs."""
        return self._presence is not Presence.HERE

    @property
    def is_still(self) -> bool:
        """Whether it is about to be given back to the broker at which it began, and stands still."""
        return self._hearing in STANDING

    @property
    def is_deaf(self) -> bool:
        """Whether something that the client said was left out: it has to say all again, when it attaches."""
        return self._hearing in DEAF

    @property
    def is_heard(self) -> bool:
        """Whether what the client says counts."""
        return self._hearing is Hearing.OPEN

    @property
    def is_live(self) -> bool:
        """Whether the client keeps up, as its record says."""
        return self._lag is Lag.LIVE

    @property
    def is_falling(self) -> bool:
        """Whether the record says that the client lies behind, and the backups may not hold it yet."""
        return self._lag is Lag.FALLING

    @property
    def behind(self) -> int:
        """A position up to which the client has taken everything, if it is not live; -1 if it is (see `lagging`)."""
        return self._behind

    def sight(self, turn: Turn) -> None:
        """The client is out of sight, or in sight again."""
        self._presence = next_presence(self._presence, turn)

    def turn(self, turn: Turn) -> None:
        """The session stands still, goes on, or leaves out what the client said."""
        self._hearing = next_hearing(self._hearing, turn)

    def lag(self, turn: Turn, position: int = -1) -> None:
        """The client falls behind or catches up; if it was live, it has taken everything up to the position."""
        was_live, self._lag = self.is_live, next_lag(self._lag, turn)
        if self.is_live:
            self._behind = -1
        elif was_live:
            assert position >= 0, "who lies behind does so from a position on"
            self._behind = position

    @property
    def total(self) -> int:
        """How many deliveries there were."""
        return self._total

    @property
    def owed(self) -> int:
        """How many deliveries brokers wait for. They do not wait for those out of history, which are kept there."""
        return self._live

    @property
    def released(self) -> int:
        """How many of the deliveries that are owed nobody waits for any more."""
        return self._live - self.outbox.length + self.outbox.from_history

    @property
    def taken(self) -> int:
        """How many of all deliveries have left the outbox: the client took them, or reads them again."""
        return self._total - self.outbox.length

    def record(self) -> SessionRecord:
        """The session as the backups have to know it, in a new version."""
        self._version += 1
        return SessionRecord(
            self.client,
            self.epoch,
            self._version,
            {name: subscription.filter.text for name, subscription in self.subscriptions.items()},
            {name: self._cuts(name) for name in self.subscriptions},
            {name: (ad.filter.text, ad.first, name in self.stable) for name, ad in self.advertisements.items()},
            self.admitted,
            {name: subscription.still_awaited() for name, subscription in self.subscriptions.items()},
            self.place,
            self.behind,
            {name: self.began[name] for name in self.subscriptions if name in self.began},
            dict(self.anew),
            list(self.lost),
            list(self.revived),
        )

    @property
    def can_go_home(self) -> bool:
        """Whether nothing of it is under way: the client is there, its publications are out, its cuts are whole, and
        its advertisements stable."""
        is_busy = self.in_flight or self.unburied or self.unready or len(self.stable) < len(self.advertisements)
        return not (self.is_away or is_busy)

    @property
    def can_fall_behind(self) -> bool:
        """Whether it may be served out of history: no cut of it is open or inferred, and it does not stand still."""
        return not (self.is_falling or self.is_still or self.unready or self.inferred or self.untold)

    @property
    def has_history(self) -> bool:
        """Whether anything that came out of history was not taken."""
        return self.outbox.from_history > 0

    @property
    def collects(self) -> bool:
        """Whether what is published is kept for it; not for an orphan that will read it out of history.

        A subscription that has delivered nothing yet is not read. The smallest story: c falls behind with s, ends s,
        and begins t. All brokers die before any knows a cut of t, and come back. t gets its cut at the heir, p:3. c
        comes when p:3 has passed, and t goes on with p:4.
        """
        return not (self.is_orphan and not self.is_live) or self.is_falling or bool(self.inferred or self.untold)

    def filters(self) -> Iterator[Filter]:
        """All that the client asks for and offers."""
        for subscription in self.subscriptions.values():
            yield subscription.filter
        for advertisement in self.advertisements.values():
            yield advertisement.filter
        for name, text in self.read_texts.items():
            if name not in self.subscriptions:
                yield parse(text)

    def texts(self) -> Iterator[tuple[str, str]]:
        """All that the client asks for and offers: names and filters."""
        for subscription in self.subscriptions.values():
            yield subscription.name, subscription.filter.text
        for advertisement in self.advertisements.values():
            yield advertisement.name, advertisement.filter.text
        yield from ((name, text) for name, text in self.read_texts.items() if name not in self.subscriptions)

    def due_from(self, subscription: Subscription, publisher: str) -> int:
        """The number from which on what matches is due: the cut; an orphan's cuts are not known here.

        Of a publisher that has left, an event may be found on a disk: to who knew its cut, it is still due.
        """
        if self.is_orphan:
            return 0
        cut = subscription.cuts.get(publisher)
        return subscription.former.get(publisher, NEVER) if cut is None else cut

    def is_due(self, name: str, event: Event) -> bool:
        """Whether an event that is read again lies after the start of a subscription, as this broker knows it.

        A publisher without a cut came after the subscription, so only what has a larger stamp than the broker's clock
        at its begin is due.
        """
        subscription = self.subscriptions[name]
        for cuts in (self.last_cuts.get(name, {}), subscription.former, subscription.cuts):
            if event.publisher in cuts:
                return event.seq >= cuts[event.publisher]
        return event.stamp > self.began.get(name, 0)

    def bound_cuts(self, progress: SubscriptionProgress) -> SubscriptionProgress:
        """The progress without cuts that are earlier than this broker knows them to be.

        A cut is replicated before anything is delivered. So an heir needs the client only for cuts that it inferred,
        and knows how early these may be.
        """
        name = progress.subscription
        if name not in self.subscriptions:
            return progress
        earliest = {**self._cuts(name), **self.inferred.get(name, {})}
        cuts = {publisher: max(cut, earliest.get(publisher, cut)) for publisher, cut in progress.cuts.items()}
        return msgspec.structs.replace(progress, cuts=cuts)

    def put(self, deliveries: Iterable[Outgoing]) -> None:
        """Further deliveries; those out of history nobody waits for."""
        for run in deliveries:
            if self.is_orphan and not run.is_history:
                self._keep_cuts(run.events[0].publisher, run.names)
            self.outbox.put(run)
            self._total += len(run.events)
            if not run.is_history:
                self._live += len(run.events)
                self._noted[self.client] = None

    def fall_behind(self) -> None:
        """Drop what was not sent and is in the history. Brokers wait for nothing of the rest any more.

        Subscriptions that have ended meanwhile end where the client is.
        """
        taken, before = self.taken, len(self.outbox)
        places = self.outbox.drop_unsent()
        self.notes = [(taken + places[max(0, count - taken)], _end_here(said)) for count, said in self.notes]
        self._total -= before - len(self.outbox)
        self.timed_delivery = None

    def note(self, message: Note) -> None:
        """Tell it after all deliveries that there are now."""
        self.notes.append((self._total, message))

    def reconcile(self, progress: SubscriptionProgress) -> None:
        """The client brings its cuts. Where the heir took one for later than it is, correct the cuts that it inferred.

        The heir inferred them from the later one. Each of them moves to the first event of its publisher that
        comes after something the client gets.
        """
        subscription = self.subscriptions[progress.subscription]
        if all(subscription.cuts.get(publisher, 0) <= cut for publisher, cut in progress.cuts.items()):
            return
        least = {p: seq for p, seq in self.inferred.get(subscription.name, {}).items() if p not in progress.cuts}
        for event in [event for run in self.outbox if subscription.name in run.names for event in run.events]:
            publisher, seq = event.publisher, event.seq
            if seq < least.get(publisher, NEVER):
                continue
            past = self.pasts.get((publisher, seq), {})
            if any(past.get(other, 0) >= cut for other, cut in progress.cuts.items()):
                del least[publisher]
                for known in (subscription.cuts, self.last_cuts.get(subscription.name, {})):
                    if seq < known.get(publisher, 0):
                        known[publisher] = seq

    def _keep_cuts(self, publisher: str, names: list[str]) -> None:
        for name in names:
            cut = self.subscriptions[name].cuts.get(publisher)
            if cut is not None:
                self.last_cuts.setdefault(name, {}).setdefault(publisher, cut)

    def _keep_cuts_of_outbox(self) -> None:
        """Note a cut for all that is in the outbox. It was due when it came, even if its publisher has left since.

        Tombstones do not count: they come to all.
        """
        for run in self.outbox:
            if run.is_history or is_lost(run.events[0].attributes):
                continue
            publisher = run.events[0].publisher
            for name in run.names:
                if publisher not in self.last_cuts.get(name, ()) and name in self.subscriptions:
                    known, seq = self.subscriptions[name], run.events[0].seq
                    cut = known.former.get(publisher, known.cuts.get(publisher, seq))
                    self.last_cuts.setdefault(name, {})[publisher] = min(cut, seq)

    def keep_former_cuts(self) -> None:
        """Keep the cuts of publishers that have left: a client that is away, or lies behind, may not know them."""
        for name, subscription in self.subscriptions.items() if self.is_away or not self.is_live else ():
            for publisher, cut in subscription.former.items():
                self.last_cuts.setdefault(name, {}).setdefault(publisher, cut)

    def _cuts(self, name: str) -> Cuts:
        """All known cuts of a subscription. Of a publisher that left and came back, the earliest counts."""
        subscription = self.subscriptions[name]
        return {**subscription.cuts, **subscription.former, **self.last_cuts.get(name, {})}

    def unsent(self, window: int) -> list[Delivery | Note]:
        """The deliveries and notes that can go out now, in order: no more than a window ahead of the application."""
        outbox = self.outbox
        room = min(outbox.length, self._taken_number + window + 1 - self._first) - outbox.sent
        if room <= 0 and not self.notes:
            return []
        taken = self._total - outbox.length
        found: list[Delivery | Note] = []
        latest: Delivery | None = None
        own: list[Event] | None = None  # the events of the latest, if they are no run that others have, too
        while room > 0:
            place = taken + outbox.sent
            if self.notes and self.notes[0][0] <= place:
                self._say_notes(place, found)
                latest = None
            most = min(room, self.notes[0][0] - place) if self.notes else room
            following, number = outbox.next, self._first + outbox.sent
            if latest is None or not _joins(latest, following):
                events = outbox.send(min(most, RUN_MAX))
                latest, own = Delivery(self.attempt, number, events, following.names), None
                found.append(latest)
            else:
                if own is None:
                    own = [*latest.events]
                    found[-1] = latest = Delivery(self.attempt, latest.number, own, latest.subscriptions)
                own.extend(outbox.send(min(most, DELIVERY_MAX - len(own))))
            room -= taken + outbox.sent - place
        self._say_notes(taken + outbox.sent, found)
        return found

    def take_leave(self, message: Unsubscribed) -> None:
        """Tell that a subscription ended, right after its last delivery: those for others may have to wait."""
        place = self.outbox.place_after(message.subscription)
        insort(self.notes, (self.taken + place, message), key=lambda note: note[0])

    def _say_notes(self, deliveries: int, found: list[Delivery | Note]) -> None:
        while self.notes and self.notes[0][0] <= deliveries:
            _, note = self.notes.pop(0)
            found.append(note)
            if isinstance(note, Behind):
                self._catching_up, self._read_to = note.subscriptions, -1
            elif isinstance(note, Reached) and not note.subscription:
                self._read_to = note.position

    def come_to(self, names: Iterable[str], reached: int) -> int:
        """How far the client has come with these subscriptions when it hears what follows, if it had all up to a
        position.

        The smallest story: c reads from 1 on, is told that what lies between 2 and 4 is lost, and goes on with 5, an
        effect of 3. It falls behind again. Meanwhile 3 is found. If c began again with 1, it would get 3 after 5.
        """
        return max(reached, self._read_to) if all(name in self._catching_up for name in names) else reached

    def got(self, number: int) -> None:
        """The client's application has taken the deliveries up to this number."""
        last = self._first + self.outbox.sent - 1
        if number > last:
            raise CallError(f"{self.client!r} confirms delivery {number}, but was sent only {last}")
        self._taken_number = max(self._taken_number, number)
        count = number - self._first + 1
        if count > 0:
            self.outbox.drop(count)
            self._first += count

    def find_late(
        self, brought: Iterable[SubscriptionProgress], known: Container[str], anew: Container[str], reached: int
    ) -> tuple[list[str], int]:
        """The subscriptions that their client must read again out of history, and from which position on.

        The client knows which of them lie behind, if it was told. If the session is an orphan, or nothing is known here
        of what the client was told, all others may lie behind, too, from the position in the session's record on. If
        the record has none, the client lacks nothing that has reached everyone, whatever it says. If it has one, the
        client may still lack more. The smallest story: c lies behind, its broker is gone round, and comes back with an
        old disk, which does not know that c lay behind: no wave had waited for c before its broker was gone.
        """
        self.lag(Turn.ASKED_ABOUT)
        is_unsure = not self.is_live and (self.is_orphan or not known)
        late, position = [], NEVER
        for progress in brought:
            name = progress.subscription
            if name not in anew and (progress.is_behind or is_unsure or name in known):
                late.append(name)
                position = min(position, progress.since if progress.is_behind else self.behind)
        return late, max(position, reached) if self.is_live else position

    def claim(self, message: Attach, voided: Container[str], late: Container[str] = ()) -> None:
        """The client is back: keep of the deliveries what it lacks, and number them anew.

        What is there for `late` subscriptions is read again.
        """
        if not self.is_orphan:
            self._keep_cuts_of_outbox()
        self.attempt = message.attempt
        self._presence = next_presence(self._presence, Turn.CLAIMED)
        self._hearing = next_hearing(self._hearing, Turn.CLAIMED)
        self.epoch = epoch_of(message.attempt)
        self.notes.clear()
        self._catching_up, self._read_to = (), -1
        brought = {progress.subscription: progress for progress in message.brought if progress.is_live}
        self.pasts = {}
        self.inferred = {}
        self.untold = {}
        ours = [name for name in brought if name in self.subscriptions and name not in late]
        due = {name: self._due(brought[name], name in voided) for name in ours}
        before, self.outbox = self.outbox, Outbox()
        for run in before:
            if run.is_history:
                continue  # a reading begins again where the client says
            publisher = run.events[0].publisher
            unknown = 0 if is_lost(run.events[0].attributes) else NEVER
            dues = [(name, due[name].get(publisher, unknown)) for name in run.names if name in due]
            for event in run.events:
                lacking = [name for name, first in dues if event.seq >= first]
                if lacking:
                    self.outbox.put(Outgoing([event], lacking))
        self._taken_number = 0
        self._first = message.unread + 1

    def _due(self, progress: SubscriptionProgress, is_voided: bool) -> Cuts:
        """By publisher: from where on the client lacks what is there for the subscription."""
        known = self._cuts(progress.subscription)
        cuts = known if is_voided else {**known, **progress.cuts}
        return {publisher: max(cut, progress.got.get(publisher, 0) + 1) for publisher, cut in cuts.items()}

    def take_publications(self, most: int) -> Events:
        """The next publications out of the inbox that may go out."""
        tests = [self.advertisements[name].filter.test for name in self.stable]
        return self.inbox.take(most, tests, may_lose=len(self.stable) == len(self.advertisements))

    def find_void(self, brought: Mapping[str, SubscriptionProgress], heard: int) -> list[str]:
        """The subscriptions whose client knows cuts that do not count, or may know such.

        They have delivered nothing. The client was told these cuts by a broker that is gone, and they were lost with
        it. Either the heir knew no cut at all, or the subscription has begun afresh since, and the client did not hear
        that. The smallest story of the second: b1 tells v that s starts with p:78, and dies before its backups know s.
        v comes to b0, where s begins afresh with p:121. The answer is late, v asks again, and brings p:78. b0 knows s
        by now. If b0 took that for the same s, v would believe that it gets p:78 to p:120, and never would.
        """
        return [
            name
            for name, progress in brought.items()
            if name in self.subscriptions
            and not (progress.got or progress.is_whole)
            and (name in self.untold or self.anew.get(name, 0) > heard)
        ]

    def begin_anew(self, names: Iterable[str], heard: int) -> None:
        """The client is told in this attempt that these begin afresh."""
        self.anew = {name: told for name, told in self.anew.items() if told > heard and name in self.subscriptions}
        self.anew.update(dict.fromkeys(names, self.attempt))

    def lose(self, first: int, last: int, heard: int) -> None:
        """These numbers of what the client published are lost, if there are any.

        Losses that the client has heard of in an earlier attempt are not told again.
        """
        if self.told_lost and heard >= self.told_lost:
            self.lost = []
        if first <= last:
            self.lost.append((first, last))

    def cuts_missing(self, name: str, held: Cuts) -> Cuts:
        """What the broker knows of the subscription's cuts and the client does not."""
        return {publisher: cut for publisher, cut in self._cuts(name).items() if publisher not in held}


def _joins(latest: Delivery, following: Outgoing) -> bool:
    """Whether what follows goes into the same message."""
    size, more = len(latest.events), len(following.events)
    is_long = more >= ALONE_MIN or (isinstance(latest.events, EventRun) and size >= ALONE_MIN)
    return not is_long and size < DELIVERY_MAX and latest.subscriptions == following.names


def _end_here(note: Note) -> Note:
    return Unsubscribed(note.attempt, note.subscription, {}) if isinstance(note, Unsubscribed) else note
