"""Journals, and the messages that replicate, fetch and read their entries."""

from typing import NamedTuple, TypeAlias

from gapless.event_runs import EventRun
from gapless.protocols.gapless.identities import Incarnation
from gapless.protocols.parts.messages import Cuts, Message
from gapless.protocols.parts.ranges import Ranges

__all__ = [
    "Dropped", "Entries", "Entry", "Held", "Hold", "JournalCopy", "JournalReply", "Numbers", "Page", "ReadPage",
    "RequestEntries", "RequestJournal",
]  # fmt: skip


Numbers: TypeAlias = dict[str, tuple[int, int]]
"""By publisher: the first and the last number of a range."""


class Entry(NamedTuple):
    """One entry of a journal: events of one publisher that were admitted together, with one timestamp."""

    events: EventRun

    @property
    def publisher(self) -> str:
        return self.events.publisher

    @property
    def first(self) -> int:
        return self.events.first

    @property
    def last(self) -> int:
        return self.events.last

    @property
    def timestamp(self) -> int:
        return self.events.stamp


class Dropped(NamedTuple):
    """The numbers of entries that a journal has dropped (see `dropped`)."""

    since: int = 0
    """The numbers dropped up to this timestamp are unknown."""
    until: int = 0
    """Nothing after this was dropped."""
    parts: tuple[tuple[int, int, Numbers], ...] = ()
    """Parts of the dropped numbers, each with the timestamps of its first and its last entry."""


class JournalCopy(Message, frozen=True):
    """A broker's copy of the journal of one incarnation: a prefix of it, except the entries that the broker dropped."""

    incarnation: Incarnation
    start: int
    """The number of entries before the first one here."""
    dropped: int
    """The timestamp of the last of these."""
    last_numbers: Cuts
    """If there are any: each publisher's last number in the journal; ..."""
    has_forgotten: bool
    """... or not each one's."""
    entries: list[Entry]
    gone: Dropped = Dropped()
    """The entries that the sender itself has dropped."""

    @property
    def length(self) -> int:
        return self.start + len(self.entries)


class Hold(Message, frozen=True):
    """Entries of the sender's journal, from a place on. With `is_new`, all that not all brokers have processed."""

    copy: JournalCopy
    is_new: bool


class Held(Message, frozen=True):
    """Says how many entries of the receiver's journal the sender holds."""

    length: int


class RequestJournal(Message, frozen=True):
    """Requests the receiver's copy of this sealed journal."""

    incarnation: Incarnation


class JournalReply(Message, frozen=True):
    """A sealed journal."""

    copy: JournalCopy


class RequestEntries(Message, frozen=True):
    """Requests the receiver's entries of this journal just before a place."""

    incarnation: Incarnation
    before: int


class Entries(Message, frozen=True):
    """The answer: a page of it, or nothing."""

    copy: JournalCopy


class ReadPage(Message, frozen=True):
    """Requests matching entries of this incarnation's journal after `since` and up to `until`, which is final."""

    reading: int
    incarnation: Incarnation
    length: int
    """The journal's length if the reader knows that it is sealed; otherwise -1."""
    since: int
    until: int
    filter: str


class Page(Message, frozen=True):
    """The first part of them: the sender answers for the journal from `since` up to `upto`."""

    reading: int
    incarnation: Incarnation
    since: int
    upto: int
    """Not after `since`, if the sender does not have the next entries."""
    dropped: int
    """The sender has dropped everything up to this timestamp; 0 if nothing."""
    events: list[EventRun]
    """Each of one entry, and so with one timestamp."""
    lost: Ranges | None = None
    """The numbers dropped up to there, if they are known."""
