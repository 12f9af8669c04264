"""What the members of an electorate keep of journals, page by page for those who read them.

A member speaks for a journal as far as it knows that it has every entry: of its own up to any final position, because
it has released what it admitted before that; of a sealed one up to the end, if it has the agreed length; of any other
up to the last entry that it holds, because copies are prefixes. Where it cannot speak, the reader asks another.
"""

from bisect import bisect_right
from collections.abc import Callable
from itertools import chain

from gapless.events import Attributes, Event, EventRun, Events
from gapless.filters import parse
from gapless.positions import TIMESTAMP_MAX
from gapless.protocols.fenced.journal_state import Journal, size_of
from gapless.protocols.fenced.messages import Entry, Incarnation, Page, ReadPage
from gapless.protocols.fenced.state import BrokerState

__all__ = ["answer_page", "holders", "look_up", "sources"]

PAGE_BYTES = 128 * 1024
"""A page is full when entries of so many bytes were looked at,"""
PAGE_EVENTS = 1_024
"""or of so many events. Either takes some milliseconds."""


def sources(s: BrokerState) -> dict[Incarnation, int] | None:
    """All incarnations that have admitted anything, with the lengths of sealed journals, and -1 for others. None while
    a journal is not sealed whose broker is back: nobody knows how long it is."""
    found: dict[Incarnation, int] = {}
    for name in s.topology.brokers:
        status = s.status(name)
        if status.sealed_below < status.number:
            return None
        found |= {Incarnation(name, number): length for number, length in status.lengths if length}
        if not status.is_excluded:
            found[Incarnation(name, status.number)] = -1
    return found


def holders(s: BrokerState, incarnation: Incarnation) -> list[str]:
    """The live brokers that may hold the journal, in the order in which they are asked.

    This broker comes first. Of a journal that grows, its own broker is next, for only that one can speak for its end.
    """
    overlay = s.topology.overlay
    near = [s.name, *overlay.within(s.name, len(s.topology.brokers))]
    members = sorted((incarnation.broker, *s.topology.acceptors[incarnation.broker]), key=near.index)
    if s.current(incarnation.broker) == incarnation:
        members.sort(key=lambda name: (name != s.name, name != incarnation.broker))
    return [name for name in members if s.is_live(name)]


def answer_page(s: BrokerState, peer: str, question: ReadPage) -> None:
    """A reader asks for the next page of a journal."""
    s.send(peer, look_up(s, question))


def look_up(s: BrokerState, question: ReadPage) -> Page:
    """The next page of a journal, as far as this broker can speak for it."""
    incarnation = Incarnation(*question.incarnation)
    journal = s.journal if incarnation == s.incarnation else s.journals.get(incarnation, Journal())
    entries = journal.entries
    spoken, end = _spoken(s, question, incarnation, journal)
    upto, size, count = question.since, 0, 0
    events: list[Events] = []
    if spoken <= question.since:
        return _page(question, upto, [])
    test = parse(question.filter).test
    for place in range(bisect_right(entries, question.since, hi=end, key=_timestamp_of), end):
        entry = entries[place]
        if entry.timestamp > min(spoken, question.until):
            break
        if size >= PAGE_BYTES or count >= PAGE_EVENTS:
            return _page(question, upto, events)
        size, count, upto = size + size_of(entry.events), count + len(entry.events), entry.timestamp
        found = _matching(entry.events, test)
        if found:
            events.append(found)
    return _page(question, spoken, events)


def _timestamp_of(entry: Entry) -> int:
    return entry.timestamp


def _page(question: ReadPage, upto: int, events: list[Events]) -> Page:
    return Page(question.reading, question.incarnation, question.since, upto, 0, events)


def _spoken(s: BrokerState, question: ReadPage, incarnation: Incarnation, journal: Journal) -> tuple[int, int]:
    """Up to which timestamp this broker can speak for the journal, and how many of its entries count."""
    entries = journal.entries
    if incarnation == s.incarnation:
        return (question.until if s.clock.last >= question.until else question.since), len(entries)
    status = s.status(incarnation.broker)
    length = question.length
    if length < 0 and incarnation.number < status.sealed_below:
        length = dict(status.lengths).get(incarnation.number, 0)
    if length < 0:
        return (min(question.until, entries[-1].timestamp) if entries else question.since), len(entries)
    if len(journal) >= length:
        last = entries[length - 1].timestamp if length else 0
        return (TIMESTAMP_MAX if last <= question.until else question.until), length
    return (min(question.until, entries[-1].timestamp) if entries else question.since), len(entries)


def _matching(events: Events, test: Callable[[Attributes], bool]) -> Events:
    """Those that match."""
    if not isinstance(events, EventRun):
        return [event for event in events if test(event.attributes)]
    alike = events.alike
    places = [place for place, (attributes, _) in enumerate(alike) if test(attributes)]
    if len(places) == len(alike):
        return events
    found: list[Event] = list(
        chain.from_iterable(events[alike[place - 1][1] if place else 0 : alike[place][1]] for place in places)
    )
    return found
