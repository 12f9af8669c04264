"""Subscriptions of clients with sessions on this broker: attempts, activation, and switching to history and back.

An attempt begins by recording the clock, the final position, and the publishers with overlapping advertisements. When
all of these publishers' brokers have answered, the cut is complete, and the subscription is **active**: every later
publication is delivered. Nothing is delivered before. A publisher that was unknown when the attempt began needs no cut:
its advertisement has to pass this broker, so all its events have larger timestamps than the beginning of the attempt.

Four kinds of subscriptions read history (`reading`): those that were active at another broker, those that begin in the
past, those that end there, and those whose client lags. In the first two cases an ordinary attempt precedes the read; a
subscription whose client lags stays active. All subscriptions of a client that were live before read together, in one
order, because an event for one of them can be an effect of an event for another.
"""

from gapless.protocols.gapless.claims import subtract_filter_cost
from gapless.protocols.gapless.client_messages import NEWEST, Active, ClientSubscribe, Lagging, Reached, Unsubscribed
from gapless.protocols.gapless.client_state import (
    Kept,
    LocalState,
    LocalSubscription,
    NewestSearch,
    Reading,
    Session,
    SessionPhase,
)
from gapless.protocols.gapless.identities import Attempt, Name
from gapless.protocols.gapless.journal_state import cost_of
from gapless.protocols.gapless.outbox import deliver, drop_live, note
from gapless.protocols.gapless.positions import ask_wave
from gapless.protocols.gapless.reading import WORK_MAX, advance, begin_reading, end_reading, rest
from gapless.protocols.gapless.routing import activate, put_subscription, remove_subscription, spread
from gapless.protocols.gapless.routing_state import Subscription
from gapless.protocols.gapless.state import BrokerState, Due
from gapless.protocols.parts.filter_pairs import overlap

__all__ = [
    "activate_whole",
    "find_newest",
    "read_on",
    "remove_local",
    "restart_attempts",
    "subscribe",
    "switch_lagging_to_history",
]


def subscribe(s: BrokerState, session: Session, message: ClientSubscribe, local: LocalSubscription) -> None:
    """Start a client's subscription, whose start and end can be positions."""
    s.locals[local.name] = session.locals[local.name.local] = local
    # A ticket for position 0 would grant all of history, so the subscription waits for the first final position.
    lacks_position = not s.final.timestamp and s.owners.has_tickets
    if lacks_position or (message.since >= 0 and NEWEST in (message.since, message.until)):
        s.searches[local.name] = NewestSearch(session, message, s.clock.last)
        s.due |= Due.SEARCHES
    else:
        _begin(s, session, message, local)


def find_newest(s: BrokerState) -> None:
    """Start the subscriptions whose newest position is known now; request waves for the others.

    No clock shows the newest position, because a broker may have confirmed events with timestamps that no other broker
    has seen. The first position that becomes final after the call may have been proposed before the call. The second
    one was proposed later, so all brokers have echoed it after the call. Frames contain clocks, so by then the root's
    clock is not before any timestamp given before the call, and the end of that wave brings its clock here.
    """
    found = []
    for name, search in s.searches.items():
        final = s.final.timestamp
        if search.first and final > search.first:
            found.append(name)
            continue
        if not search.first and final > search.before:
            search.first = final
        ask_wave(s)
    for name in found:
        search = s.searches.pop(name)
        _begin(s, search.session, search.message, s.locals[name], s.clock.last)


def _begin(
    s: BrokerState, session: Session, message: ClientSubscribe, local: LocalSubscription, newest: int = 0
) -> None:
    """Start the subscription. `newest` replaces the placeholder `NEWEST` in the message."""
    until = 0 if message.since < 0 else newest if message.until == NEWEST else message.until
    if message.since >= 0:  # just before the newest position, so that the read lasts until that position is final
        local.since = local.position = newest - 1 if message.since == NEWEST else message.since
        if not local.is_resumed:
            note(s, session, Active, local.name.local, {}, 0, local.since, until)
    if until:
        begin_reading(s, session, [local], local.since, until)
    else:
        begin_attempt(s, local)


def begin_attempt(s: BrokerState, local: LocalSubscription) -> None:
    """Send the subscription as a new attempt."""
    local.begin, local.cuts = s.clock.last, {}
    if local.since < 0:
        local.position = s.final.timestamp
        local.kept = Kept(s.clock.last, s.options.lag_window // 2)
    s.pending[local.name] = local
    s.due |= Due.ATTEMPTS
    local.expected = {each.publisher for each in s.advertisements.values() if overlap(each.filter, local.filter)}
    subscription = Subscription(local.name, local.filter, local.attempt, None, False)
    put_subscription(s, subscription)
    spread(s, subscription)


def restart_attempts(s: BrokerState) -> None:
    """Restart the voided attempts."""
    names, s.restarts = list(s.restarts), {}
    for name in names:
        local = s.locals.get(name)
        if local is not None and local.state is LocalState.PENDING:
            local.attempt = Attempt(local.attempt.session, local.attempt.restart + 1)
            begin_attempt(s, local)


def remove_local(s: BrokerState, name: Name) -> None:
    """Remove an ended subscription."""
    local = s.locals.pop(name)
    session = s.sessions.get(name.client)
    if session is not None:
        session.locals.pop(name.local, None)
        subtract_filter_cost(session, name.local)
    s.pending.pop(name, None)
    s.searches.pop(name, None)
    reading = local.reading
    if reading is not None:
        reading.subscriptions.pop(name.local)
        if not reading.subscriptions:
            end_reading(s, reading)
    elif local.is_resumed and s.sessions[name.client].phase is SessionPhase.OPEN:
        _resume_together(s, s.sessions[name.client])
    remove_subscription(s, name)


# ---- activation --------------------------------------------------------------------------------------------


def activate_whole(s: BrokerState) -> None:
    """Activate the attempts whose cuts are complete."""
    whole = [
        local for local in s.pending.values() if local.expected <= local.cuts.keys() and local.name not in s.restarts
    ]  # fmt: skip
    for local in whole:
        del s.pending[local.name]
        session = s.sessions[local.name.client]
        if local.since < 0:
            _begin_with_its_cut(s, session, local)
        elif local.is_resumed:
            local.state = LocalState.READING
            _resume_together(s, session)
        else:
            begin_reading(s, session, [local], local.since)
        activate(s, s.subscriptions[local.name])


def _begin_with_its_cut(s: BrokerState, session: Session, local: LocalSubscription) -> None:
    name = local.name.local
    ticket = s.owners.ticket(session.client, local.filter.text, local.position)
    place = note(s, session, Active, name, dict(local.cuts), local.begin, local.position, 0, ticket)
    kept = local.kept
    if kept is None or not kept.is_complete:
        note(s, session, Lagging, local.position, [name])
        _read_together(s, session, [local])
        return
    local.state, local.kept, local.live_place = LocalState.LIVE, None, place
    for events, names in kept.events:
        deliver(s, session, events, names, cost_of(events), is_live=True)


def _resume_together(s: BrokerState, session: Session) -> None:
    """Start the history read of the client's resumed subscriptions when all of them are active here."""
    own = [local for local in session.locals.values() if local.is_resumed]
    waiting = [local for local in own if local.state is LocalState.READING and local.reading is None]
    if waiting and not any(local.state is LocalState.PENDING for local in own):
        _read_together(s, session, waiting)


def _read_together(s: BrokerState, session: Session, subscriptions: list[LocalSubscription]) -> None:
    """Read history for these subscriptions, together with those that already read, from the smallest position on. The
    client ignores the events that it receives twice as a result."""
    for known in [reading for reading in session.readings.values() if reading.is_resuming]:
        subscriptions = [*known.subscriptions.values(), *subscriptions]
        end_reading(s, known)
    begin_reading(s, session, subscriptions, min(local.position for local in subscriptions), is_resuming=True)


# ---- switching to history and back -------------------------------------------------------------------------


def read_on(s: BrokerState) -> None:
    """Continue all reads that can proceed, until this turn's work is used up."""
    while s.due_readings and s.read_work < WORK_MAX:
        number = next(iter(s.due_readings))
        del s.due_readings[number]
        reading = s.readings.get(number)
        if reading is not None and advance(s, reading):
            if reading.until:
                _finish(s, reading)
            else:
                _go_live(s, reading)
    if s.due_readings:
        rest(s)


def _finish(s: BrokerState, reading: Reading) -> None:
    """Process the end of a read."""
    for local in list(reading.subscriptions.values()):
        remove_local(s, local.name)
        note(s, reading.session, Unsubscribed, local.name.local)


def _go_live(s: BrokerState, reading: Reading) -> None:
    """Switch to live events: the kept ones follow, because the read has reached a position after which all
    were kept."""
    session, kept, subscriptions = reading.session, reading.kept, list(reading.subscriptions.values())
    assert kept is not None, "what reads without an end keeps what is published"
    end_reading(s, reading)
    if reading.is_resuming:
        session.is_lagging = False
    place = note(s, session, Reached, reading.position, [local.name.local for local in subscriptions], True, None, {})
    for local in subscriptions:
        local.state, local.live_place = LocalState.LIVE, place
    for events, names in kept.events:
        present = [name for name in names if name in reading.subscriptions]
        if events.stamp > reading.position and present:
            deliver(s, session, events, present, cost_of(events), is_live=True)


def switch_lagging_to_history(s: BrokerState) -> None:
    """Drop the unsent live events of lagging clients, and read them from history instead."""
    lagging, s.lagging = s.lagging, {}
    for client in lagging:
        session = s.sessions.get(client)
        if session is not None and session.waiting > s.options.lag_window:
            drop_live(session)
            live = [each for each in session.locals.values() if each.state is LocalState.LIVE]
            if live:
                _switch_to_history(s, session, live)


def _switch_to_history(s: BrokerState, session: Session, live: list[LocalSubscription]) -> None:
    session.is_lagging = True
    place, position = session.position_sent
    for local in live:
        if place > local.live_place:
            local.position = max(local.position, position)
    start = min(local.position for local in live)
    note(s, session, Lagging, start, [local.name.local for local in live])
    _read_together(s, session, live)
