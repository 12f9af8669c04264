"""Tombstones: events that stand for lost events of a publisher (see `losses`), or for deleted ones (see `deleting`).

A tombstone is an event of a special publisher, whose name no client has. Its number is the last lost one, so a later
tombstone has a larger number, and the rules for numbers of publishers apply to tombstones, too.
"""

from collections.abc import Sequence

from gapless.event_runs import EventRun
from gapless.events import Attributes
from gapless.filters import Filter, parse
from gapless.protocols.gapless.identities import Timed
from gapless.protocols.gapless.journal_messages import Entry
from gapless.protocols.parts.filter_pairs import overlap

__all__ = [
    "LOST", "counted_for", "deleted", "first_lost", "is_tombstone", "last_settled", "may_have_matched", "numbers_of",
    "publisher_of", "times_of", "tombstone",
]  # fmt: skip

LOST = "\tlost/"
"""The prefix of these publishers. Names of clients are printable, so none begins with it."""


def tombstone(publisher: str, first: int, last: int, settled: int, text: str, times: Sequence[Timed] = ()) -> EventRun:
    """Return the event that reports these numbers of a publisher, which had advertised the filter, as lost. All brokers
    had processed those up to `settled`. `times` are in order."""
    attributes: Attributes = {"first": first, "settled": settled, "filter": text}
    attributes["times"] = " ".join(":".join(map(str, each)) for each in times)
    return EventRun.of_one(f"{LOST}{publisher}", last, attributes)


def deleted(entry: Entry, text: str) -> Entry:
    """Return the entry that replaces a deleted one. Only readers that have not received the events get it."""
    attributes: Attributes = {"first": entry.first, "settled": 0, "filter": text, "deleted": True}
    return Entry(EventRun.of_one(f"{LOST}{entry.publisher}", entry.last, attributes, b"", entry.timestamp))


def counted_for(entry: Entry) -> str:
    """Return the publisher whose last number the entry has."""
    name = entry.publisher
    return publisher_of(name) if name.startswith(LOST) and "deleted" in entry.events.table.shared else name


def numbers_of(entry: Entry) -> tuple[str, int, int]:
    """Return the publisher of an entry, or of the events it stands for, and the first and the last number."""
    if entry.publisher.startswith(LOST):
        return publisher_of(entry.publisher), first_lost(entry.events), entry.last
    return entry.publisher, entry.first, entry.last


def is_tombstone(publisher: str) -> bool:
    """Return whether events of this name are tombstones."""
    return publisher.startswith(LOST)


def publisher_of(name: str) -> str:
    """Return the publisher that the entry is about."""
    return name.removeprefix(LOST)


def first_lost(events: EventRun) -> int:
    """Return the first lost number."""
    return _number(events, "first")


def last_settled(events: EventRun) -> int:
    """Return the number up to which all brokers had processed the lost events: only readers of history miss those."""
    return _number(events, "settled")


def times_of(events: EventRun) -> list[Timed]:
    """Return when the lost events were published, as far as that is known, in order."""
    texts = str(events.table.shared.get("times", "")).split()
    return [Timed(*map(int, text.split(":"))) for text in texts]


def _number(events: EventRun, name: str) -> int:
    number = events.table.shared.get(name, 0)
    assert isinstance(number, int)
    return number


def may_have_matched(events: EventRun, pattern: Filter) -> bool:
    """Return whether a subscription may lack some of the events that a tombstone stands for."""
    text = events.table.shared["filter"]
    assert isinstance(text, str)
    return overlap(parse(text), pattern)
