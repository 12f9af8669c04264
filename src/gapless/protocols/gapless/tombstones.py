"""Tombstones: events that stand for a publisher's lost events (see `losses`) or deleted events (see `deleting`).

A tombstone is an event of a special publisher whose name no client can have. Its number is the last lost number, so a
later tombstone has a larger number, and the rules for publication numbers apply to tombstones, too.
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
"""The prefix of the names of these publishers. Clients' names are printable, so none of them begins with a tab."""


def tombstone(publisher: str, first: int, last: int, settled: int, text: str, times: Sequence[Timed] = ()) -> EventRun:
    """Return the event that reports the publisher's numbers `first` to `last` as lost. `text` is a filter that the
    publisher had advertised; all brokers had processed the numbers up to `settled`; `times` are the known publication
    times in order."""
    attributes: Attributes = {"first": first, "settled": settled, "filter": text}
    attributes["times"] = " ".join(":".join(map(str, each)) for each in times)
    return EventRun.of_one(f"{LOST}{publisher}", last, attributes)


def deleted(entry: Entry, text: str) -> Entry:
    """Return the entry that replaces a deleted one. Only readers that have not received the events receive it."""
    attributes: Attributes = {"first": entry.first, "settled": 0, "filter": text, "deleted": True}
    return Entry(EventRun.of_one(f"{LOST}{entry.publisher}", entry.last, attributes, b"", entry.timestamp))


def counted_for(entry: Entry) -> str:
    """Return the publisher whose last number the entry contains."""
    name = entry.publisher
    return publisher_of(name) if name.startswith(LOST) and "deleted" in entry.events.table.shared else name


def numbers_of(entry: Entry) -> tuple[str, int, int]:
    """Return the publisher of the entry's events, or of the events that a tombstone stands for, with their first and
    last number."""
    if entry.publisher.startswith(LOST):
        return publisher_of(entry.publisher), first_lost(entry.events), entry.last
    return entry.publisher, entry.first, entry.last


def is_tombstone(publisher: str) -> bool:
    """Return whether events of this publisher are tombstones."""
    return publisher.startswith(LOST)


def publisher_of(name: str) -> str:
    """Return the publisher of the lost events, for the name of a tombstone's publisher; other names are returned as
    they are."""
    return name.removeprefix(LOST)


def first_lost(events: EventRun) -> int:
    """Return the first lost number."""
    return _number(events, "first")


def last_settled(events: EventRun) -> int:
    """Return the number up to which all brokers had processed the lost events, so that only history reads miss them."""
    return _number(events, "settled")


def times_of(events: EventRun) -> list[Timed]:
    """Return the known times at which the lost events were published, in order."""
    texts = str(events.table.shared.get("times", "")).split()
    return [Timed(*map(int, text.split(":"))) for text in texts]


def _number(events: EventRun, name: str) -> int:
    number = events.table.shared.get(name, 0)
    assert isinstance(number, int)
    return number


def may_have_matched(events: EventRun, pattern: Filter) -> bool:
    """Return whether a subscription with this filter may lack some of the events that a tombstone stands for."""
    text = events.table.shared["filter"]
    assert isinstance(text, str)
    return overlap(parse(text), pattern)
