"""I1, I2 and I4: which entries may be sent, their timestamps, and the contents of final positions.

An entry of a journal is **valid** when its broker has released it, or when the agreed length of the sealed journal
includes it. Then:

- I1: an entry that is not valid is not sent to another broker or a client. When an entry is released, f acceptors have
  it. The agreed length includes everything that was released.
- I2: an entry's timestamp is larger than those of all events that its publisher had received or published before.
- I4: when a position is final, all entries up to it that will ever be valid are valid already. No publication number
  is valid twice.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from gapless.event_runs import EventRun
from gapless.protocol import Deliver, DeliverMany, Effect, InvariantError, Published, PublishedMany, Send
from gapless.protocols.gapless.client_messages import Delivery
from gapless.protocols.gapless.identities import Incarnation
from gapless.protocols.gapless.invariants.promises import PromiseInvariants
from gapless.protocols.gapless.journal_messages import Hold
from gapless.protocols.gapless.link_messages import LinkMessage, Publication
from gapless.protocols.gapless.messages import Frame
from gapless.protocols.gapless.state import BrokerState
from gapless.protocols.gapless.tombstones import is_tombstone, publisher_of
from gapless.protocols.gapless.topology import Topology

__all__ = ["JournalInvariants"]


@dataclass(eq=False)
class _Entry:
    timestamp: int
    publisher: str
    first: int
    last: int
    is_late: bool
    """Whether a final position at or after its timestamp existed when the entry was admitted."""


@dataclass(eq=False)
class _Journal:
    """The entries that one incarnation has admitted, and how far they are released, sealed and held."""

    incarnation: Incarnation
    entries: list[_Entry] = field(default_factory=list)
    released: int = 0
    sealed: int | None = None
    """The agreed length, once any broker knows it."""
    held: dict[str, int] = field(default_factory=dict)
    """The largest length that each acceptor has ever had."""

    @property
    def counting(self) -> int:
        """Return the number of valid entries."""
        return self.released if self.sealed is None else self.sealed


class JournalInvariants:
    """Checks journals and the messages that brokers send."""

    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        self._journals: dict[Incarnation, _Journal] = {}
        self.sealed_below: dict[str, int] = {}
        """By broker: the largest number known to any broker, below which all incarnations are sealed."""
        self.largest_final = 0
        self._admitted: dict[tuple[str, int], list[tuple[_Journal, int]]] = {}
        """The journal and place of each entry, by publisher and timestamp."""
        self._counted: dict[str, list[tuple[int, int, int]]] = {}
        """By publisher, in order: the first number, last number and timestamp of each valid entry."""
        self._delivered: dict[str, int] = {}
        """The largest timestamp delivered to each client."""
        self._causes: dict[str, tuple[list[int], list[int]]] = {}
        """By client: the numbers that it has published, and the largest timestamp delivered to it before each
        of them."""

    def is_dead(self, s: BrokerState) -> bool:
        """Return whether any broker knows that this incarnation is excluded."""
        return s.number < self.sealed_below.get(s.name, 0)

    # ---- clients ------------------------------------------------------------------------------------------

    def after_client(self, client: str, effects: Sequence[Effect]) -> None:
        """Record the events delivered to the client, and the numbers that it published after them."""
        for effect in effects:
            match effect:
                case Deliver():
                    self._delivered[client] = max(effect.event.stamp, self._delivered.get(client, 0))
                case DeliverMany():
                    largest = effect.events.stamp
                    self._delivered[client] = max(largest, self._delivered.get(client, 0))
                case Published():
                    self._note_causes(client, effect.event.seq)
                case PublishedMany():
                    self._note_causes(client, effect.events.last)

    def _note_causes(self, client: str, last: int) -> None:
        numbers, causes = self._causes.setdefault(client, ([], []))
        numbers.append(last)
        causes.append(self._delivered.get(client, 0))

    # ---- brokers ------------------------------------------------------------------------------------------

    def after_step(
        self, s: BrokerState, effects: Sequence[Effect], promises: PromiseInvariants, message: Any
    ) -> None:  # fmt: skip
        """Check the broker's journal, its copies of others' journals, and the messages it has sent. `message` is the
        message that this step has processed if it is of an `EVENT_PATH` type, otherwise None."""
        own = self._journal(s.incarnation)
        self._note_admitted(s, own)
        if message is None:
            self._note_held(s, s.journals)
            self._note_seals(s)
        elif isinstance(message, Hold):
            self._note_held(s, [Incarnation(*message.copy.incarnation)])
        if s.released > own.released:
            self._check_release(s, own, promises)
        for events in _leaving(effects):
            self._check_leaving(s, events)
        if s.final.timestamp > self.largest_final:
            self._check_final(s.final.timestamp)

    def _journal(self, incarnation: Incarnation) -> _Journal:
        found = self._journals.get(incarnation)
        if found is None:
            found = self._journals[incarnation] = _Journal(incarnation)
        return found

    def _note_admitted(self, s: BrokerState, own: _Journal) -> None:
        for place in range(len(own.entries), len(s.journal)):
            entry = s.journal.entry(place)
            publisher, timestamp = entry.publisher, entry.timestamp
            if own.entries and timestamp <= own.entries[-1].timestamp:
                raise InvariantError("I2", f"the timestamps in the journal of {_text(own)} do not grow at {place}")
            numbers, causes = self._causes.get(publisher, ([], []))
            index = bisect_left(numbers, entry.last)
            cause = causes[index] if index < len(causes) else 0
            if timestamp <= cause:
                raise InvariantError(
                    "I2", f"{publisher}'s {entry.last} has timestamp {timestamp}, and is an effect of one with {cause}"
                )  # fmt: skip
            is_late = timestamp <= self.largest_final
            own.entries.append(_Entry(timestamp, publisher, entry.first, entry.last, is_late))
            self._admitted.setdefault((publisher, timestamp), []).append((own, place))

    def _note_held(self, s: BrokerState, incarnations: Iterable[Incarnation]) -> None:
        for incarnation in incarnations:
            if incarnation.broker != s.name:
                held = self._journal(incarnation).held
                held[s.name] = max(len(s.journals.get(incarnation, ())), held.get(s.name, 0))

    def _check_release(self, s: BrokerState, own: _Journal, promises: PromiseInvariants) -> None:
        acceptors = self._topology.acceptors[s.name]
        needed = min(self._topology.f, len(acceptors))
        best = sorted((own.held.get(each, 0) for each in acceptors), reverse=True)
        if needed and best[needed - 1] < s.released:
            raise InvariantError(
                "I1", f"{_text(own)} has released {s.released} entries, and {needed} acceptors had {best[needed - 1]}"
            )
        written = promises.on_disk(s, s.incarnation)
        if written is not None and written < s.released:
            raise InvariantError("I1", f"{_text(own)} has released {s.released} entries, and its disk has {written}")
        if own.sealed is not None and s.released > own.sealed:
            raise InvariantError("I1", f"{_text(own)} releases {s.released} entries, and was sealed with {own.sealed}")
        # An entry is counted once, even if a broker that does not know the seal yet releases a sealed entry.
        before, own.released = own.counting, s.released
        self._count(own, before, s.released)

    def _note_seals(self, s: BrokerState) -> None:
        for broker, status in s.statuses.items():
            known = self.sealed_below.get(broker, 0)
            if status.sealed_below <= known:
                continue
            self.sealed_below[broker] = status.sealed_below
            lengths = dict(status.lengths)
            for incarnation, journal in self._journals.items():
                if incarnation.broker == broker and known <= incarnation.number < status.sealed_below:
                    self._seal(journal, lengths.get(incarnation.number, 0))

    def _seal(self, journal: _Journal, length: int) -> None:
        if length < journal.released:
            raise InvariantError(
                "I1", f"{_text(journal)} is sealed with {length} entries, and had released {journal.released}"
            )
        if length > len(journal.entries):
            raise InvariantError("I1", f"{_text(journal)} is sealed with {length} entries, and had admitted fewer")
        journal.sealed = length
        self._count(journal, journal.released, length)

    def _count(self, journal: _Journal, start: int, end: int) -> None:
        """Record that these entries are valid."""
        for place in range(start, end):
            entry = journal.entries[place]
            if entry.is_late:
                raise InvariantError(
                    "I4", f"{_text(journal)} adds an event with timestamp {entry.timestamp} to a position that is final"
                )
            counted = self._counted.setdefault(entry.publisher, [])
            index = bisect_left(counted, (entry.first, 0, 0))
            before, after = counted[index - 1] if index else None, counted[index] if index < len(counted) else None
            if (before and before[1] >= entry.first) or (after and after[0] <= entry.last):
                raise InvariantError(
                    "I4", f"{entry.publisher}'s event {entry.first} was admitted twice, and counts twice"
                )
            if (before and before[2] >= entry.timestamp) or (after and after[2] <= entry.timestamp):
                raise InvariantError("I2", f"the timestamps of {entry.publisher} do not grow at {entry.first}")
            counted.insert(index, (entry.first, entry.last, entry.timestamp))

    def _check_leaving(self, s: BrokerState, events: EventRun) -> None:
        publisher, timestamp = events.publisher, events.stamp
        found = [*self._admitted.get((publisher, timestamp), ())]
        if is_tombstone(publisher):  # may stand for a deleted event
            found += self._admitted.get((publisher_of(publisher), timestamp), ())
        if not any(place < journal.counting for journal, place in found):
            raise InvariantError(
                "I1", f"{_text(s)} sends {publisher}'s event {events.first}, which is neither released nor sealed"
            )
        if s.clock.last < timestamp:
            raise InvariantError("I2", f"the clock of {_text(s)} is behind an event that it sends")

    def _check_final(self, position: int) -> None:
        """Check that each entry up to a final position either is valid already or never will be."""
        self.largest_final = position
        for journal in self._journals.values():
            for entry in journal.entries[journal.counting :]:
                if entry.timestamp > position:
                    break
                if journal.sealed is None:
                    raise InvariantError(
                        "I4", f"position {position} is final before an event of {_text(journal)} with timestamp "
                        f"{entry.timestamp} counts",
                    )  # fmt: skip


def _leaving(effects: Sequence[Effect]) -> Iterator[EventRun]:
    for effect in effects:
        if isinstance(effect, Send):
            message = effect.message
            if isinstance(message, Delivery):
                yield message.events
            elif isinstance(message, Frame) and isinstance(message.body, LinkMessage):
                body = message.body.body
                if isinstance(body, Publication):
                    yield body.events


def _text(of: Any) -> str:
    incarnation: Incarnation = of.incarnation
    return f"{incarnation.broker}#{incarnation.number}"
