"""An event that is lost has a tombstone: it takes the event's number, and goes wherever the event might have gone.

When more than f brokers of a neighbourhood are gone, so may be what they had confirmed. What it was nobody knows, but
numbers of a publisher are consecutive: which are missing can be known (`recovery.holes`, `clients.desk`). Each of them
travels as an event of its publisher with a single attribute that nobody can publish, whose name is empty. Hence it is
journalled, logged, merged, passed on, kept until everyone has it, and inherited, as any event is, by the same rules; it
stands in its place in every stream; and whoever has the event itself, or a later one of its publisher, takes it for
known. It matches every subscription, for nobody can tell; the client tells its application, if it had to expect it.
"""

from collections.abc import Iterable, Mapping

from gapless.events import Attributes, AttributeValue, Event, EventRun

__all__ = ["has_lost", "is_lost", "tombstone"]

NAMELESS = ""
LOST: Attributes = {NAMELESS: "lost"}


def tombstone(publisher: str, seq: int, stamp: int = 0) -> Event:
    """In the place of an event that nobody holds any more."""
    return Event(publisher, seq, LOST, b"", stamp)


def is_lost(attributes: Mapping[str, AttributeValue]) -> bool:
    """Whether these are the attributes of a tombstone."""
    return NAMELESS in attributes


def has_lost(events: Iterable[Event]) -> bool:
    """Whether one of these is a tombstone: asked of every run, so without a call for each event."""
    if isinstance(events, EventRun):
        return any(NAMELESS in attributes for attributes, _ in events.alike)
    return bool([event for event in events if NAMELESS in event.attributes])
