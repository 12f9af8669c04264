"""Stores the journals that a broker keeps as a member of an electorate, and serves them to readers page by page.

A member serves as much of a journal as it has without gaps: its own journal up to any final position, because
everything admitted before that is released; a sealed journal up to its end, if it has the agreed length; any other
journal up to its last entry, because copies are prefixes. For later entries the reader asks another member.

**Bounds.** Entries that not all brokers have processed are never dropped, because a handover may need them. The windows
of the brokers bound their number by delaying publishers. Of the other entries, the oldest are dropped when all journals
together exceed `history_bytes`, or when they are older than `history_s`. A new holder of a journal receives the entries
that not all brokers have processed at once, and earlier ones page by page (`refill`), as long as there is room.
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
"""The size of the examined entries, in bytes, after which a page is full."""
PAGE_EVENTS = 1_024
"""The number of events after which a page is full. Either limit takes a few milliseconds."""
PATIENCE = 10
"""The number of ticks (see `broker.RETRY_US`) without an answer after which the next member is asked."""
DROPPED_AT_ONCE = 5_000
"""The maximum number of entries dropped with one wave, which limits the duration of that step."""


def sources(s: BrokerState) -> dict[Incarnation, int] | None:
    """Return all incarnations that have admitted events, with the lengths of sealed journals, and -1 for others. Return
    None while the journal of a restarted broker's previous incarnation is not sealed, because its length is unknown."""
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
    """Return the live brokers that may have the journal, in the order in which to ask them.

    This broker comes first. For a growing journal its own broker is next, because only that broker knows its end.
    """
    overlay = s.topology.overlay
    near = [s.name, *overlay.within(s.name, len(s.topology.brokers))]
    members = sorted((incarnation.broker, *s.topology.acceptors[incarnation.broker]), key=near.index)
    if s.is_current(incarnation):
        members.sort(key=lambda name: (name != s.name, name != incarnation.broker))
    return [name for name in members if s.is_live(name)]


def answer_page(s: BrokerState, peer: str, question: ReadPage) -> None:
    """Answer a reader's request for a page of a journal."""
    s.send(peer, look_up(s, question))


def look_up(s: BrokerState, question: ReadPage) -> Page:
    """Return the next page of a journal, as far as this broker can vouch for it."""
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
    """Return the timestamp up to which this broker can vouch for the journal, and the number of its valid entries."""
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


# ---- retention ---------------------------------------------------------------------------------------------


def trim(s: BrokerState) -> None:
    """Drop the oldest entries while the journals are too large, or the entries too old. All brokers have processed
    them."""
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
    """Request earlier entries of a journal whose beginning is missing here, one page at a time."""
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
    """Send a page of the entries just before a place."""
    incarnation = Incarnation(*message.incarnation)
    journal = s.journal if incarnation == s.incarnation else s.journals.get(incarnation, Journal())
    end = min(message.before, len(journal))
    start, size = end, 0
    while start > journal.start and size < PAGE_BYTES:
        start -= 1
        size += journal.size_at(start)
    s.send(peer, Entries(journal.copy(incarnation, start, end, is_page=True)))


def receive_entries(s: BrokerState, peer: str, message: Entries) -> None:
    """Process a page of earlier entries: request more, or ask the next member."""
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
