"""The journals that members of an electorate keep, page by page for readers.

A member answers for a journal as far as it knows that it has every entry: for its own up to any final position, because
it has released everything admitted before that; for a sealed one up to the end, if it has the agreed length; for any
other up to its last entry, because copies are prefixes. Beyond that, the reader asks another.

**Bounds.** Entries that not all brokers have processed are never dropped, because a handover may need them. They are
bounded by the windows of their brokers, which delay publishers. Of the others, the oldest are dropped when all journals
together take more than `history_bytes`, or when they are older than `history_s`. A member that becomes a holder of a
journal gets the entries that not all brokers have processed at once, and the earlier ones page by page (`refill`), as
long as there is room.
"""

from heapq import heapify, heappop, heappush

from gapless.event_runs import EventRun
from gapless.filters import parse
from gapless.filters.tables import matching
from gapless.positions import TIMESTAMP_MAX
from gapless.protocols.gapless.dropped import dropped_between
from gapless.protocols.gapless.identities import Incarnation
from gapless.protocols.gapless.journal import settle
from gapless.protocols.gapless.journal_messages import Entries, Page, ReadPage, RequestEntries
from gapless.protocols.gapless.journal_state import Journal
from gapless.protocols.gapless.state import BrokerState, Due
from gapless.protocols.gapless.tombstones import is_tombstone, may_have_matched

__all__ = [
    "PATIENCE", "answer_entries", "answer_page", "holders", "look_up", "receive_entries", "refill", "sources", "trim",
]  # fmt: skip

PAGE_BYTES = 128 * 1024
"""A page is full after this many bytes of entries were examined,"""
PAGE_EVENTS = 1_024
"""or this many events. Either takes some milliseconds."""
PATIENCE = 10
"""The number of ticks (`broker.RETRY_US`) without an answer after which the next member is asked."""
DROPPED_AT_ONCE = 5_000
"""The maximum number of entries dropped with one wave, which bounds its duration."""


def sources(s: BrokerState) -> dict[Incarnation, int] | None:
    """Return all incarnations that have admitted anything, with the lengths of sealed journals, and -1 for others.
    Return None while the journal of a broker that has returned is not sealed, because its length is unknown."""
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
    """Return the live brokers that may have the journal, in the order in which they are asked.

    This broker comes first. For a growing journal, its own broker is next, because only that one can answer for its
    end.
    """
    overlay = s.topology.overlay
    near = [s.name, *overlay.within(s.name, len(s.topology.brokers))]
    members = sorted((incarnation.broker, *s.topology.acceptors[incarnation.broker]), key=near.index)
    if s.is_current(incarnation):
        members.sort(key=lambda name: (name != s.name, name != incarnation.broker))
    return [name for name in members if s.is_live(name)]


def answer_page(s: BrokerState, peer: str, question: ReadPage) -> None:
    """Answer a reader's request for the next page of a journal."""
    s.send(peer, look_up(s, question))


def look_up(s: BrokerState, question: ReadPage) -> Page:
    """Return the next page of a journal, as far as this broker can answer for it."""
    incarnation = Incarnation(*question.incarnation)
    journal = s.journal if incarnation == s.incarnation else s.journals.get(incarnation, Journal())
    if journal.dropped > question.since:
        lost = dropped_between(journal.gone, question.since, min(journal.dropped, question.until))
        return Page(question.reading, question.incarnation, question.since, question.since, journal.dropped, [], lost)
    answered, end = _answered(s, question, incarnation, journal)
    upto, size, count = question.since, 0, 0
    events: list[EventRun] = []
    if answered <= question.since:
        return _page(question, upto, [])
    pattern = parse(question.filter)
    for place in range(journal.place_after(question.since), end):
        entry = journal.entry(place)
        if entry.timestamp > min(answered, question.until):
            break
        if size >= PAGE_BYTES or count >= PAGE_EVENTS:
            return _page(question, upto, events)
        size, count, upto = size + journal.size_at(place), count + len(entry.events), entry.timestamp
        if is_tombstone(entry.publisher):
            found = entry.events if may_have_matched(entry.events, pattern) else None
        else:
            found = matching(entry.events, pattern)
        if found is not None:
            events.append(found)
    return _page(question, answered, events)


def _page(question: ReadPage, upto: int, events: list[EventRun]) -> Page:
    return Page(question.reading, question.incarnation, question.since, upto, 0, events)


def _answered(s: BrokerState, question: ReadPage, incarnation: Incarnation, journal: Journal) -> tuple[int, int]:
    """Return up to which timestamp this broker can answer for the journal, and how many of its entries count."""
    held = min(question.until, journal.last_timestamp)
    if incarnation == s.incarnation:
        return (question.until if s.clock.last >= question.until else question.since), len(journal)
    status = s.status(incarnation.broker)
    length = question.length
    if length < 0 and incarnation.number < status.sealed_below:
        length = dict(status.lengths).get(incarnation.number, 0)
    if length < 0 or len(journal) < length:
        return held, len(journal)
    last = journal.entry(length - 1).timestamp if length > journal.start else journal.dropped
    return (TIMESTAMP_MAX if last <= question.until else question.until), length


# ---- what is kept ------------------------------------------------------------------------------------------


def trim(s: BrokerState) -> None:
    """Drop the oldest entries, as long as there are too many, or they are too old. All brokers have processed them."""
    settle(s)
    journals = [s.journal, *s.journals.values()]
    size = sum(journal.size for journal in journals)
    if size <= s.options.history_bytes and not s.options.history_s:
        return
    oldest = s.clock.last - int(s.options.history_s * 1e6) if s.options.history_s else 0
    counts = dict.fromkeys(range(len(journals)), 0)
    heads = [(journal.entries[0].timestamp, place) for place, journal in enumerate(journals) if journal.entries]
    heapify(heads)
    for _ in range(DROPPED_AT_ONCE):
        if not heads or heads[0][0] > s.stable or (size <= s.options.history_bytes and heads[0][0] > oldest):
            break
        place = heappop(heads)[1]
        entries = journals[place].entries
        size -= journals[place].sizes[counts[place]]
        counts[place] += 1
        if counts[place] < len(entries):
            heappush(heads, (entries[counts[place]].timestamp, place))
    for place, count in counts.items():
        journals[place].drop(count)


def refill(s: BrokerState) -> None:
    """Request earlier entries of a journal that is kept from its middle on: one request at a time."""
    if s.refilling is not None:
        s.refill_waited += 1
        if s.refill_waited < PATIENCE:
            return
        s.refill_tried.add(s.refilling[1])
        s.refilling = None
    for incarnation, journal in s.journals.items():
        if journal.lacks_earlier:
            size = sum(each.size for each in (s.journal, *s.journals.values()))
            if 10 * size < 9 * s.options.history_bytes:
                _ask_entries(s, incarnation, journal)
            return


def _ask_entries(s: BrokerState, incarnation: Incarnation, journal: Journal) -> None:
    asked = next((each for each in holders(s, incarnation) if each not in {s.name, *s.refill_tried}), None)
    if asked is None:
        journal.lacks_earlier = False
        s.refill_tried.clear()
    else:
        s.refilling, s.refill_waited = (incarnation, asked), 0
        s.due |= Due.REQUESTS
        s.send(asked, RequestEntries(incarnation, journal.start))


def answer_entries(s: BrokerState, peer: str, message: RequestEntries) -> None:
    """Send the entries just before a place, up to a page."""
    incarnation = Incarnation(*message.incarnation)
    journal = s.journal if incarnation == s.incarnation else s.journals.get(incarnation, Journal())
    end = min(message.before, len(journal))
    start, size = end, 0
    while start > journal.start and size < PAGE_BYTES:
        start -= 1
        size += journal.size_at(start)
    s.send(peer, Entries(journal.copy(incarnation, start, end, is_page=True)))


def receive_entries(s: BrokerState, peer: str, message: Entries) -> None:
    """Process a holder's answer: request more, or ask the next."""
    incarnation = Incarnation(*message.copy.incarnation)
    journal = s.journals.get(incarnation)
    if s.refilling != (incarnation, peer) or journal is None:
        return
    s.refilling = None
    if journal.prepend(message.copy):
        s.refill_tried.clear()
    else:
        s.refill_tried.add(peer)
    if not journal.start:
        journal.lacks_earlier = False
    refill(s)
