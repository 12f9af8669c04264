"""Journals, and the messages that replicate, fetch and read their entries."""

from typing import NamedTuple, TypeAlias

from gapless.events import EventRun, Events
from gapless.protocols.gapless.identities import Incarnation
from gapless.protocols.parts.messages import Cuts, Message
from gapless.protocols.parts.ranges import Ranges

__all__ = [
    "Dropped", "Entries", "Entry", "Held", "Hold", "JournalCopy", "JournalReply", "Numbers", "Page", "ReadPage",
    "RequestEntries", "RequestJournal",
]  # fmt: skip


Numbers: TypeAlias = dict[str, tuple[int, int]]
"""By publisher, the first and the last of some numbers."""


class Entry(NamedTuple):
    """One entry of a journal: events of one publisher that were admitted together, with one timestamp."""

    events: Events

    @property
    def publisher(self) -> str:
        return self.events.publisher if isinstance(self.events, EventRun) else self.events[0].publisher

    @property
    def first(self) -> int:
        return self.events.first if isinstance(self.events, EventRun) else self.events[0].seq

    @property
    def last(self) -> int:
        return self.events.last if isinstance(self.events, EventRun) else self.events[-1].seq

    @property
    def timestamp(self) -> int:
        return self.events.stamp if isinstance(self.events, EventRun) else self.events[0].stamp


class Dropped(NamedTuple):
    """The numbers of entries that a journal has dropped (see `dropped`)."""

    since: int = 0
    """The numbers that were dropped up to this timestamp are not known."""
    until: int = 0
    """Nothing was dropped after this."""
    parts: tuple[tuple[int, Numbers], ...] = ()
    """Each with its last timestamp."""


class JournalCopy(Message, frozen=True):
    """A broker's copy of the journal of one incarnation: a prefix of it, without entries that it could drop."""

    incarnation: Incarnation
    start: int
    """So many entries came before the first one here."""
    dropped: int
    """The timestamp of the last of these."""
    last_numbers: Cuts
    """If there are any: for each publisher its last number in the journal; ..."""
    has_forgotten: bool
    """... or not for each."""
    entries: list[Entry]
    gone: Dropped = Dropped()
    """The entries that the sender has dropped itself."""

    @property
    def length(self) -> int:
        return self.start + len(self.entries)


class Hold(Message, frozen=True):
    """Entries of the sender's journal, from a place on. With `is_new`, all that not all brokers have processed."""

    copy: JournalCopy
    is_new: bool


class Held(Message, frozen=True):
    """The sender holds so many entries of the receiver's journal."""

    length: int


class RequestJournal(Message, frozen=True):
    """Send what you hold of this sealed journal."""

    incarnation: Incarnation


class JournalReply(Message, frozen=True):
    """A sealed journal."""

    copy: JournalCopy


class RequestEntries(Message, frozen=True):
    """Send what you hold of this journal just before a place."""

    incarnation: Incarnation
    before: int


class Entries(Message, frozen=True):
    """The answer: a page of it, or nothing."""

    copy: JournalCopy


class ReadPage(Message, frozen=True):
    """Ask for matching entries of this incarnation's journal after `since` and up to `until`, which is final."""

    reading: int
    incarnation: Incarnation
    length: int
    """If the reader knows that the journal is sealed: its length; else -1."""
    since: int
    until: int
    filter: str


class Page(Message, frozen=True):
    """The first part of it: the sender speaks for the journal from `since` up to `upto`."""

    reading: int
    incarnation: Incarnation
    since: int
    upto: int
    """Not after `since`, if the sender does not hold what follows."""
    dropped: int
    """The sender holds nothing any more up to this timestamp; 0 if it has dropped nothing."""
    events: list[Events]
    """Each of one entry, so with one timestamp."""
    lost: Ranges | None = None
    """The numbers that were dropped up to there, if they are known."""
