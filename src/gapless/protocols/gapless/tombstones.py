"""Tombstones: events that stand for what is lost of a publisher (see `losses`), or was deleted (see `deleting`).

A tombstone is an event of a publisher of its own, whose name no client has. Its number is the last that is lost, so of
several the later has the larger one, and all that is done with numbers of publishers holds for tombstones, too.
"""

from gapless.events import Attributes, Event, Events
from gapless.filters import Filter, parse
from gapless.protocols.gapless.journal_messages import Entry
from gapless.protocols.parts.filter_pairs import overlap

__all__ = [
    "LOST", "counted_for", "deleted", "first_lost", "is_tombstone", "last_settled", "may_have_matched", "numbers_of",
    "publisher_of", "tombstone",
]  # fmt: skip

LOST = "\tlost/"
"""Names of clients can be printed, so none begins like that."""


def tombstone(publisher: str, first: int, last: int, settled: int, text: str) -> list[Event]:
    """The event that reports these numbers of a publisher as lost, which had advertised a filter. All brokers had
    processed those up to `settled`."""
    return [Event(f"{LOST}{publisher}", last, {"first": first, "settled": settled, "filter": text})]


def deleted(entry: Entry, text: str) -> Entry:
    """The entry that takes the place of one that is deleted. Only readers get it, and they have not had the events."""
    attributes: Attributes = {"first": entry.first, "settled": 0, "filter": text, "deleted": True}
    return Entry([Event(f"{LOST}{entry.publisher}", entry.last, attributes, b"", entry.timestamp)])


def counted_for(entry: Entry) -> str:
    """The publisher whose last number the entry has."""
    name = entry.publisher
    return publisher_of(name) if name.startswith(LOST) and "deleted" in entry.events[0].attributes else name


def numbers_of(entry: Entry) -> tuple[str, int, int]:
    """The publisher of an entry, or of what it stands for, and the first and the last number."""
    if entry.publisher.startswith(LOST):
        return publisher_of(entry.publisher), first_lost(entry.events[0]), entry.last
    return entry.publisher, entry.first, entry.last


def is_tombstone(publisher: str) -> bool:
    """Whether events of this name are tombstones."""
    return publisher.startswith(LOST)


def publisher_of(name: str) -> str:
    """Whose entry it is."""
    return name.removeprefix(LOST)


def first_lost(event: Event) -> int:
    """The first number that is lost."""
    return _number(event, "first")


def last_settled(event: Event) -> int:
    """Up to which number all brokers had processed what is lost: only readers of history miss that."""
    return _number(event, "settled")


def _number(event: Event, name: str) -> int:
    number = event.attributes[name]
    assert isinstance(number, int)
    return number


def may_have_matched(events: Events, pattern: Filter) -> bool:
    """Whether a subscription may lack something of what a tombstone stands for."""
    text = events[0].attributes["filter"]
    assert isinstance(text, str)
    return overlap(parse(text), pattern)
