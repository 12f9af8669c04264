"""An event that is lost has a tombstone: it takes the event's number, and goes wherever the event might have gone.

When more than f brokers of a neighbourhood are gone, so may be what they had confirmed. What it was nobody knows, but
numbers of a publisher are consecutive: which are missing can be known (`recovery.holes`, `clients.desk`). Each of them
travels as an event of its publisher with a single attribute that nobody can publish, whose name is empty. Hence it is
journalled, logged, merged, passed on, kept until everyone has it, and inherited, as any event is, by the same rules; it
stands in its place in every stream; and whoever has the event itself, or a later one of its publisher, takes it for
known. It matches every subscription, for nobody can tell; the client tells its application, if it had to expect it.
That is, if it has a starting cut of the publisher; or if the publisher has taken all its advertisements back since.
The smallest story of that: p answers q:1 with p:1, which is safe, and is lost with all brokers but one; q:1 is not safe
yet. p takes its advertisement back, and q publishes q:1 again. Whoever gets that has to be told that p:1 is lost, and
has no cut of p.
"""

from collections.abc import Iterable, Mapping

from gapless.events import Attributes, AttributeValue, Event, EventRun

__all__ = ["concerns_anybody", "has_lost", "is_lost", "tombstone"]

NAMELESS = ""
LOST: Attributes = {NAMELESS: "lost"}
ANYBODYS: Attributes = {NAMELESS: "anybody's"}


def tombstone(publisher: str, seq: int, stamp: int = 0, *, is_anybodys: bool = False) -> Event:
    """In the place of an event that nobody holds any more; `is_anybodys`, if its publisher has taken back all that it
    advertised by then."""
    return Event(publisher, seq, ANYBODYS if is_anybodys else LOST, b"", stamp)


def concerns_anybody(attributes: Mapping[str, AttributeValue]) -> bool:
    """Whether these are the attributes of a tombstone that concerns who has no starting cut, too."""
    return attributes.get(NAMELESS) == ANYBODYS[NAMELESS]


def is_lost(attributes: Mapping[str, AttributeValue]) -> bool:
    """Whether these are the attributes of a tombstone."""
    return NAMELESS in attributes


def has_lost(events: Iterable[Event]) -> bool:
    """Whether one of these is a tombstone: asked of every run, so without a call for each event."""
    if isinstance(events, EventRun):
        return any(NAMELESS in attributes for attributes, _ in events.alike)
    return bool([event for event in events if NAMELESS in event.attributes])
