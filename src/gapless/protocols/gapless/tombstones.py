"""Tombstones: events that stand for what is lost of a publisher (see `losses`).

A tombstone is an event of a publisher of its own, whose name no client has. Its number is the last that is lost, so of
several the later has the larger one, and all that is done with numbers of publishers holds for tombstones, too.
"""

from gapless.events import Event, Events
from gapless.filters import Filter, parse
from gapless.protocols.parts.filter_pairs import overlap

__all__ = ["LOST", "first_lost", "is_tombstone", "may_have_matched", "publisher_of", "tombstone"]

LOST = "\tlost/"
"""Names of clients can be printed, so none begins like that."""


def tombstone(publisher: str, first: int, last: int, text: str) -> list[Event]:
    """What says that these numbers of a publisher are lost, which had advertised a filter."""
    return [Event(f"{LOST}{publisher}", last, {"first": first, "filter": text})]


def is_tombstone(publisher: str) -> bool:
    """Whether events of this name are tombstones."""
    return publisher.startswith(LOST)


def publisher_of(name: str) -> str:
    """Whose entry it is."""
    return name.removeprefix(LOST)


def first_lost(event: Event) -> int:
    """The first number that is lost."""
    first = event.attributes["first"]
    assert isinstance(first, int)
    return first


def may_have_matched(events: Events, pattern: Filter) -> bool:
    """Whether a subscription may lack something of what a tombstone stands for."""
    text = events[0].attributes["filter"]
    assert isinstance(text, str)
    return overlap(parse(text), pattern)
