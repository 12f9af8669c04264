"""Reading history: the journals of all brokers are merged page by page into one order.

A **read** serves subscriptions that need older events: those that continue at a new broker, that begin in the past,
that end there, and those of a client that lags. It proceeds in **rounds**. A round ends at a final position, so the
contents of each journal up to there are fixed. For each journal there is a **source**: the read asks the nearest live
member of its electorate for the next page, and the next member if that one cannot answer. Entries up to the smallest
timestamp that all sources have passed are put into the session's queue, sorted by timestamp, publisher and number:
effects have larger timestamps than their causes. The queue is filled no faster than the client takes deliveries.

From the beginning of a round on, matching new events are kept, up to a limit. When a round ends at a position that is
not before the first kept event, the kept events with larger timestamps follow, and the subscriptions are live. If there
were too many, the kept events are dropped, and another round follows.

A member drops the oldest entries of a journal when they take too much memory. If no member has the first entries that a
source needs, the source continues after them. Their numbers are reported to the client first, or, if they are unknown,
the **gap** between two timestamps.
"""

from collections.abc import Iterator
from heapq import heapify, heappop, heappush

from gapless.errors import FilterError
from gapless.event_runs import EventRun
from gapless.filters import parse
from gapless.positions import NO_EVENTS, TIMESTAMP_MAX, Volume
from gapless.protocol import SetTimer
from gapless.protocols.gapless.advertised import may_concern
from gapless.protocols.gapless.client_messages import Reached
from gapless.protocols.gapless.client_state import Kept, LocalState, LocalSubscription, Reading, Session, Source
from gapless.protocols.gapless.dividing import Division
from gapless.protocols.gapless.history import PATIENCE, holders, look_up, sources
from gapless.protocols.gapless.identities import Incarnation
from gapless.protocols.gapless.journal_messages import Page, ReadPage
from gapless.protocols.gapless.journal_state import cost_of, size_of
from gapless.protocols.gapless.outbox import deliver, has_room, note
from gapless.protocols.gapless.positions import ask_wave
from gapless.protocols.gapless.sealed_journals import length_of, want
from gapless.protocols.gapless.state import BrokerState, Due
from gapless.protocols.gapless.tombstones import is_tombstone, may_have_matched
from gapless.protocols.parts.ranges import Ranges, add_ranges, without

__all__ = ["READ_TIMER", "WORK_MAX", "advance", "ask_again", "begin_reading", "end_reading", "receive_page", "rest"]

READ_TIMER = "read"
WORK_MAX = 2_048
"""The maximum number of events that one turn of a broker puts into queues. A page of its own journals counts as
`PAGE_WORK`."""
PAGE_WORK = 1_024
FEW = 32
"""The maximum number of filters that are tested one by one."""
TEXT_MAX = 10_000
"""The maximum length of the combined filter of one read. Beyond it, all events are read, and the reader drops unwanted
ones."""


def begin_reading(
    s: BrokerState, session: Session, subscriptions: list[LocalSubscription], position: int, until: int = 0,
    *, is_resuming: bool = False,
) -> None:  # fmt: skip
    """Start a read for a client's subscriptions, from a position on."""
    reading = Reading(s.next_request, session, {}, position, until, is_resuming)
    s.next_request += 1
    for local in subscriptions:
        local.state, local.reading, local.kept = LocalState.READING, reading, None
        reading.subscriptions[local.name.local] = local
    reading.survey = subscriptions[0].survey
    reading.filter = _any_of([local.filter.text for local in subscriptions])
    reading.is_earliest = position == 0 and not is_resuming
    s.readings[reading.number] = session.readings[reading.number] = reading
    s.due_readings[reading.number] = None
    s.due |= Due.READINGS | Due.REQUESTS


def end_reading(s: BrokerState, reading: Reading) -> None:
    """End a read that serves no subscription any more."""
    s.readings.pop(reading.number, None)
    reading.session.readings.pop(reading.number, None)
    for local in reading.subscriptions.values():
        local.reading = None


def _any_of(texts: list[str]) -> str:
    """Return the text of a filter that matches the union of these filters; TRUE if that would be too long."""
    if len(texts) == 1:
        return texts[0]
    text = " OR ".join(f"({each})" for each in dict.fromkeys(texts))
    if len(text) > TEXT_MAX:
        return "TRUE"
    try:
        parse(text)
    except FilterError:
        return "TRUE"
    return text


def rest(s: BrokerState) -> None:
    """Continue in the next turn, because this turn's work is used up."""
    if not s.is_resting:
        s.is_resting = True
        s.emit(SetTimer(READ_TIMER, 0))


# ---- rounds ------------------------------------------------------------------------------------------------


def advance(s: BrokerState, reading: Reading) -> bool:
    """Continue a read as far as possible now. Return whether it has reached its end; then the kept events follow."""
    while s.read_work < WORK_MAX:
        if reading.position >= reading.target:
            if _is_at_end(reading):
                return bool(reading.until) or has_room(s, reading.session)
            if not _begin_round(s, reading):
                return False
        for source in reading.sources.values():
            if not source.asked and not source.events and source.upto < reading.target:
                _ask(s, reading, source)
        if not _merge(s, reading):
            return False
    s.due_readings[reading.number] = None
    return False


def _is_at_end(reading: Reading) -> bool:
    """Return whether nothing is left to read, so that the read only waits for room. Another round would use up that
    room."""
    if reading.until:
        return reading.position >= reading.until
    kept = reading.kept
    return kept is not None and kept.is_complete and reading.position >= kept.since


def _begin_round(s: BrokerState, reading: Reading) -> bool:
    if not reading.until and (reading.kept is None or not reading.kept.is_complete):
        reading.kept = Kept(s.clock.last, s.options.lag_window // 2)
    needed = reading.until or (reading.kept.since if reading.kept else 0)
    final = s.final.timestamp
    if final < needed <= max(s.clock.last, s.clock.now):
        ask_wave(s)
    end = min(final, reading.until or final)
    journals = sources(s) if end > reading.position else None
    if journals is None:
        return False
    reading.target = end
    for incarnation in journals:
        if incarnation not in reading.sources:
            reading.sources[incarnation] = Source(incarnation, reading.position)
    return True


# ---- sources -----------------------------------------------------------------------------------------------


def _ask(s: BrokerState, reading: Reading, source: Source) -> None:
    """Ask the next member for the next page. The member can be this broker itself."""
    while s.read_work < WORK_MAX and not source.events and source.upto < reading.target:
        sealed = length_of(s, source.incarnation)
        length = -1 if sealed is None else sealed
        if not length:
            source.upto = TIMESTAMP_MAX
            return
        asked = next((name for name in holders(s, source.incarnation) if name not in source.tried), None)
        if asked is None:
            if source.dropped:
                _lose(reading, source)
            elif length >= 0:
                want(s, source.incarnation)
            return
        question = ReadPage(
            reading.number, source.incarnation, length, source.upto, reading.target, reading.filter
        )  # fmt: skip
        if asked != s.name:
            source.asked, source.waited = s.current(asked), 0
            s.send(asked, question)
            return
        s.read_work += PAGE_WORK
        _take(source, s.name, look_up(s, question))


def _lose(reading: Reading, source: Source) -> None:
    """Skip entries that no member has, and record the loss."""
    if source.lost is None or reading.is_earliest:
        reading.gap_until = max(reading.gap_until, source.dropped)
        source.upto = source.dropped
    else:
        add_ranges(reading.lost, source.lost)
        source.upto = min(source.dropped, reading.target)
    source.dropped, source.lost = 0, None
    source.tried.clear()


def _take(source: Source, holder: str, page: Page) -> None:
    if page.since != source.upto:
        return
    if page.dropped > source.upto:
        source.tried.add(holder)
        if not source.dropped or page.dropped < source.dropped:
            source.dropped, source.lost = page.dropped, page.lost
    elif page.upto <= source.upto:
        source.tried.add(holder)
    else:
        source.upto, source.dropped = page.upto, 0
        source.tried.clear()
        source.events.extend(page.events)


def receive_page(s: BrokerState, peer: str, page: Page) -> None:
    """Process a page from a member."""
    reading = s.readings.get(page.reading)
    source = None if reading is None else reading.sources.get(Incarnation(*page.incarnation))
    if reading is None or source is None:
        return
    if source.asked is not None and source.asked.broker == peer:
        source.asked = None
    _take(source, peer, page)
    s.due_readings[reading.number] = None
    s.due |= Due.READINGS


def ask_again(s: BrokerState) -> None:
    """Repeat requests, because answers may have been lost, and members may have received entries since."""
    for reading in s.readings.values():
        for source in reading.sources.values():
            asked = source.asked
            if asked is None:
                source.tried.clear()
                continue
            source.waited += 1
            if s.is_dead(asked) or source.waited >= PATIENCE:
                source.tried.add(asked.broker)
                source.asked = None
        s.due_readings[reading.number] = None
    s.due |= Due.READINGS


# ---- merging -----------------------------------------------------------------------------------------------


def _merge(s: BrokerState, reading: Reading) -> bool:
    """Queue the entries that all sources have passed, as far as there is room. Return whether more can be
    done at once."""
    if reading.gap_until or reading.lost:
        return _report_loss(s, reading)
    horizon = min(reading.target, *(source.upto for source in reading.sources.values()))
    if horizon <= reading.position or not has_room(s, reading.session):
        return False
    heads = [(_key(source.events[0]), place) for place, source in enumerate(reading.sources.values()) if source.events]
    heapify(heads)
    found = list(reading.sources.values())
    while heads and heads[0][0][0] <= horizon and has_room(s, reading.session) and s.read_work < WORK_MAX:
        place = heappop(heads)[1]
        events = found[place].events
        _put(s, reading, events.popleft())
        if events:
            heappush(heads, (_key(events[0]), place))
    _reach(s, reading, min(horizon, heads[0][0][0] - 1 if heads else horizon))
    return reading.position == horizon


def _key(events: EventRun) -> tuple[int, str, int]:
    return events.stamp, events.publisher, events.first


def _reach(s: BrokerState, reading: Reading, position: int) -> None:
    if position > reading.position:
        _pass(reading, position)
        if reading.survey is None or position >= reading.target:
            _note_reached(s, reading, position)


def _note_reached(s: BrokerState, reading: Reading, position: int) -> None:
    counted, reading.counted = reading.counted, NO_EVENTS
    note(s, reading.session, Reached, position, list(reading.subscriptions), False, None, {}, counted, cost=1)


def _pass(reading: Reading, position: int) -> None:
    reading.position, reading.is_earliest = position, False
    for local in reading.subscriptions.values():
        local.position = max(local.position, position)


def _report_loss(s: BrokerState, reading: Reading) -> bool:
    """Report the entries that no broker has any more, once they are known for all journals. If the read has not
    delivered anything yet, it begins after the loss instead, so that no effect arrives without its cause."""
    if any(source.upto <= reading.position for source in reading.sources.values()):
        return False
    gap = (max(0, reading.position), reading.gap_until) if reading.gap_until else None
    lost, reading.lost = _without_kept(reading), {}
    if reading.is_earliest:
        gap = (0, reading.gap_until)
        for source in reading.sources.values():
            while source.events and source.events[0].stamp <= reading.gap_until:
                source.events.popleft()
            source.upto = max(source.upto, reading.gap_until)
        _pass(reading, reading.gap_until)
    reading.gap_until = 0
    for name, local in reading.subscriptions.items():
        own = may_concern(s, lost, local.filter)
        if gap or own:
            note(s, reading.session, Reached, reading.position, [name], False, gap, own, cost=1 + len(own))
    return True


def _without_kept(reading: Reading) -> Ranges:
    """Return the lost numbers, except those of kept events, which follow at the end of the round."""
    found: Ranges = {publisher: list(ranges) for publisher, ranges in reading.lost.items()}
    for events, _ in reading.kept.events if reading.kept is not None else ():
        publisher, first, last = events.publisher, events.first, events.last
        if publisher in found and events.stamp > reading.target:
            found[publisher] = [part for pair in found[publisher] for part in without([(first, last)], *pair)]
    return found


def _put(s: BrokerState, reading: Reading, events: EventRun) -> None:
    """Deliver the events of one entry to their subscriptions, or count them for a survey."""
    for names, part in _parts(s, reading, events):
        s.read_work += len(part)
        if reading.survey is not None and not is_tombstone(part.publisher):
            _count(s, reading, reading.survey, part)
        elif names:
            reading.session.history_bytes += size_of(part)
            deliver(s, reading.session, part, names, cost_of(part), is_live=False)


def _count(s: BrokerState, reading: Reading, limit: Volume, events: EventRun) -> None:
    """Count events for a survey. First report the position before them if too many were counted since the last one."""
    added = len(events), events.size
    if reading.counted.plus(*added).exceeds(limit) and events.stamp > reading.counted_until:
        _note_reached(s, reading, reading.counted_until)
    reading.counted, reading.counted_until = reading.counted.plus(*added), events.stamp


def _parts(s: BrokerState, reading: Reading, events: EventRun) -> Iterator[tuple[list[str], EventRun]]:
    """Yield the events in parts, each with the names of the subscriptions that match it."""
    stamp = events.stamp
    wanted = {name: local for name, local in reading.subscriptions.items() if local.position < stamp}
    if [local.filter.text for local in wanted.values()] == [reading.filter]:
        yield list(wanted), events
        return
    if is_tombstone(events.publisher):
        yield [name for name, local in wanted.items() if may_have_matched(events, local.filter)], events
        return
    client = reading.session.client
    if len(wanted) > FEW:
        division = Division(events, s.index.names)
        found = s.index.match_many(division.rows)
        matches = [[name.local for name in each if name.client == client and name.local in wanted] for each in found]
    else:
        division = Division(events, frozenset().union(*(local.filter.names for local in wanted.values())))
        tests = [(name, local.filter.test) for name, local in wanted.items()]
        matches = [[name for name, test in tests if test(attributes)] for attributes in division.rows]
    matched = {row: names for row, names in enumerate(matches) if names}
    if matched:
        yield from division.divided(matched)
