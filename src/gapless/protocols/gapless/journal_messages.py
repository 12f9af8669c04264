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
    """The timestamp up to which the dropped numbers are unknown."""
    until: int = 0
    """The timestamp of the last dropped entry."""
    parts: tuple[tuple[int, int, Numbers], ...] = ()
    """The dropped numbers in parts, each with the timestamps of its first and last entry."""


class JournalCopy(Message, frozen=True):
    """A broker's copy of an incarnation's journal: a prefix of the journal, without the entries that the broker has
    dropped."""

    incarnation: Incarnation
    start: int
    """The number of dropped entries before the first one in this copy."""
    dropped: int
    """The timestamp of the last dropped entry."""
    last_numbers: Cuts
    """Each publisher's last number in the journal, if entries were dropped."""
    has_forgotten: bool
    """Whether publishers are missing from `last_numbers`."""
    entries: list[Entry]
    gone: Dropped = Dropped()
    """The numbers of the entries that the sender has dropped."""

    @property
    def length(self) -> int:
        return self.start + len(self.entries)


class Hold(Message, frozen=True):
    """Entries of the sender's journal, from a place on. If `is_new`, all entries that not all brokers have
    processed."""

    copy: JournalCopy
    is_new: bool


class Held(Message, frozen=True):
    """Reports how many entries of the receiver's journal the sender holds."""

    length: int


class RequestJournal(Message, frozen=True):
    """Requests the receiver's copy of a sealed journal."""

    incarnation: Incarnation


class JournalReply(Message, frozen=True):
    """The answer to `RequestJournal`."""

    copy: JournalCopy


class RequestEntries(Message, frozen=True):
    """Requests the receiver's entries of a journal just before a place."""

    incarnation: Incarnation
    before: int


class Entries(Message, frozen=True):
    """The answer to `RequestEntries`: a page of entries, or none."""

    copy: JournalCopy


class ReadPage(Message, frozen=True):
    """Requests matching entries of a journal after `since` and up to `until`, which is a final position."""

    reading: int
    incarnation: Incarnation
    length: int
    """The length of the journal if the reader knows that it is sealed; otherwise -1."""
    since: int
    until: int
    filter: str


class Page(Message, frozen=True):
    """The answer to `ReadPage`: all matching entries after `since` and up to `upto` that the sender has."""

    reading: int
    incarnation: Incarnation
    since: int
    upto: int
    """The end of the page. It is not after `since` if the sender does not have the next entries."""
    dropped: int
    """The timestamp up to which the sender has dropped all entries; 0 if it has dropped none."""
    events: list[EventRun]
    """Runs of events. All events of a run come from one journal entry and share its timestamp."""
    lost: Ranges | None = None
    """The numbers of the dropped entries of the page, if they are known."""
