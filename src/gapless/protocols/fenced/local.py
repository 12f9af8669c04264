"""Subscriptions of clients that have their sessions here: attempts, activation, and history for those that are resumed.

An attempt begins with a note of the clock, of the final position, and of the publishers that advertise what overlaps.
When all of these have answered, the cut is whole, and the subscription is **active**: whatever is published from now
on is delivered. Nothing is delivered before. A publisher that was not there yet needs no cut: its events have larger
timestamps than the beginning of the attempt, since its advertisement had to pass this broker.

A subscription that was active elsewhere is **resumed**: its attempt is an ordinary one, and then it reads history
from its position up to a final position after the attempt, and goes over to what came since.
"""

from gapless.events import Event
from gapless.filters import parse
from gapless.protocols.fenced.client_messages import Active, Position
from gapless.protocols.fenced.messages import Attempt, Incarnation, ReadHistory, ReadReply
from gapless.protocols.fenced.outbox import deliver, note
from gapless.protocols.fenced.routing import activate, put_subscription, spread
from gapless.protocols.fenced.state import (
    BrokerState,
    Journal,
    LocalState,
    LocalSubscription,
    Reading,
    Session,
    Subscription,
)
from gapless.protocols.parts.filter_pairs import overlap

__all__ = [
    "activate_whole", "answer_read", "ask_again", "begin_attempt", "finish_readings", "receive_read_reply",
    "restart_attempts", "start_readings",
]  # fmt: skip


def begin_attempt(s: BrokerState, local: LocalSubscription) -> None:
    """Send the subscription out, as a new attempt."""
    local.begin, local.position = s.clock.last, s.final.timestamp
    local.cuts, local.buffer = {}, []
    s.pending[local.name] = local
    local.expected = {each.publisher for each in s.advertisements.values() if overlap(each.filter, local.filter)}
    subscription = Subscription(local.name, local.filter, local.attempt, None, False)
    put_subscription(s, subscription)
    spread(s, subscription)


def restart_attempts(s: BrokerState) -> bool:
    """Start again what was voided."""
    names, s.restarts = list(s.restarts), {}
    for name in names:
        local = s.locals.get(name)
        if local is not None and local.state is LocalState.PENDING:
            local.attempt = Attempt(local.attempt.session, local.attempt.restart + 1)
            begin_attempt(s, local)
    return bool(names)


def activate_whole(s: BrokerState) -> bool:
    """Activate the attempts whose cut is whole."""
    whole = [
        local for local in s.pending.values() if local.expected <= local.cuts.keys() and local.name not in s.restarts
    ]  # fmt: skip
    for local in whole:
        del s.pending[local.name]
        session = s.sessions[local.name.client]
        if local.resumes_from is None:
            _announce(s, session, local)
            local.state = LocalState.LIVE
            for events in local.buffer:
                deliver(s, session, events, [local.name.local])
            local.buffer = []
        else:
            local.state, local.target = LocalState.READING, s.clock.last
            s.awaiting_history[local.name] = local
        activate(s, s.subscriptions[local.name])
    return bool(whole)


def _announce(s: BrokerState, session: Session, local: LocalSubscription) -> None:
    name, cuts, begin, position = local.name.local, dict(local.cuts), local.begin, local.position
    note(s, session, lambda number: Active(session.number, number, name, cuts, begin, position))


# ---- history -----------------------------------------------------------------------------------------------


def _sources(s: BrokerState) -> set[Incarnation] | None:
    """All incarnations that have admitted anything; None as long as a journal is not sealed whose broker is back."""
    found = set()
    for name in s.topology.brokers:
        status = s.status(name)
        if status.sealed_below < status.number:
            return None
        found |= {Incarnation(name, number) for number, length in status.lengths if length}
        if not status.is_excluded:
            found.add(Incarnation(name, status.number))
    return found


def start_readings(s: BrokerState) -> bool:
    """Let resumed subscriptions read, once a final position lies after their attempts: those of a client together."""
    if s.is_frozen or not s.awaiting_history:
        return False
    busy = {id(local) for reading in s.readings.values() for local in reading.subscriptions}
    ready: dict[str, list[LocalSubscription]] = {}
    for local in s.awaiting_history.values():
        if local.target <= s.final.timestamp and id(local) not in busy:
            ready.setdefault(local.name.client, []).append(local)
    for subscriptions in ready.values():
        since = min(local.resumes_from or 0 for local in subscriptions)
        reading = Reading(s.next_request, subscriptions, since, s.final.timestamp)
        s.next_request += 1
        s.readings[reading.request] = reading
        _ask(s, reading)
    return bool(ready)


def _ask(s: BrokerState, reading: Reading) -> None:
    texts = [local.filter.text for local in reading.subscriptions]
    question = ReadHistory(reading.request, reading.since, reading.until, texts)
    receive_read_reply(s, s.name, _look_up(s, question))
    if reading.request in s.readings:
        for name in s.topology.brokers:
            if name != s.name and s.is_live(name):
                s.send(name, question)


def ask_again(s: BrokerState) -> None:
    """Answers may have been lost with their brokers."""
    for reading in list(s.readings.values()):
        if any(s.locals.get(local.name) is not local for local in reading.subscriptions):
            del s.readings[reading.request]
        else:
            _ask(s, reading)


def answer_read(s: BrokerState, peer: str, message: ReadHistory) -> None:
    """Look up what a reader asks for."""
    s.send(peer, _look_up(s, message))


def _look_up(s: BrokerState, question: ReadHistory) -> ReadReply:
    complete: list[Incarnation] = []
    events: list[Event] = []
    for incarnation, journal in ((s.incarnation, s.journal), *s.journals.items()):
        if incarnation == s.incarnation:
            is_complete = s.clock.last >= question.until
        else:
            lengths = dict(s.status(incarnation.broker).lengths)
            is_complete = lengths.get(incarnation.number) == len(journal)
        if is_complete:
            complete.append(incarnation)
            events += _matching(journal, question)
    return ReadReply(question.request, complete, events)


def _matching(journal: Journal, question: ReadHistory) -> list[Event]:
    filters = [parse(text) for text in question.filters]
    return [
        event
        for entry in journal.entries
        if question.since < entry.timestamp <= question.until
        for event in entry.events
        if any(each.matches(event.attributes) for each in filters)
    ]


def receive_read_reply(s: BrokerState, peer: str, message: ReadReply) -> None:
    """A part of what was asked for."""
    reading = s.readings.get(message.request)
    if reading is None:
        return
    for event in message.events:
        reading.events[event.publisher, event.seq] = event
    reading.complete |= {Incarnation(*each) for each in message.complete}


def finish_readings(s: BrokerState) -> bool:
    """Deliver what has been read, in causal order, and go over to what came since."""
    if s.is_frozen:
        return False
    if not s.readings:
        return False
    sources = _sources(s)
    if sources is None:
        return False
    whole = [reading for reading in s.readings.values() if sources <= reading.complete]
    for reading in whole:
        del s.readings[reading.request]
        live = [local for local in reading.subscriptions if s.locals.get(local.name) is local]
        if live:
            _finish(s, reading, live)
    return bool(whole)


def _finish(s: BrokerState, reading: Reading, subscriptions: list[LocalSubscription]) -> None:
    session = s.sessions[subscriptions[0].name.client]
    for event in sorted(reading.events.values(), key=lambda each: (each.stamp, each.publisher, each.seq)):
        names = [local.name.local for local in subscriptions if local.filter.matches(event.attributes)]
        if names:
            deliver(s, session, [event], names)
    for local in subscriptions:
        _go_live(s, session, local, reading.until)


def _go_live(s: BrokerState, session: Session, local: LocalSubscription, until: int) -> None:
    name = local.name.local
    note(s, session, lambda number: Position(session.number, number, until, name))
    local.state = LocalState.LIVE
    s.awaiting_history.pop(local.name, None)
    for events in local.buffer:
        if events[0].stamp > until:
            deliver(s, session, events, [name])
    local.buffer = []
