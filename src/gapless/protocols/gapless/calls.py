"""Calls of clients with sessions; each client's advertisements and publications are processed in order."""

from gapless.errors import CallError
from gapless.event_runs import EventRun
from gapless.filters import parse
from gapless.filters.tables import is_covered
from gapless.protocol import Expel
from gapless.protocols.gapless.claims import add_filter_cost, check_call, subtract_filter_cost
from gapless.protocols.gapless.client_messages import (
    ClientAdvertise,
    ClientGot,
    ClientLost,
    ClientPublish,
    ClientSubscribe,
    ClientUnadvertise,
    ClientUnsubscribe,
    ClientWish,
    Detach,
    Granted,
    Stable,
    Unadvertised,
    Unsubscribed,
)
from gapless.protocols.gapless.client_state import LocalSubscription, Session, SessionPhase
from gapless.protocols.gapless.identities import Attempt, Name
from gapless.protocols.gapless.journal import admit, settle
from gapless.protocols.gapless.local import remove_local, subscribe
from gapless.protocols.gapless.losses import admit_loss, note_missing
from gapless.protocols.gapless.outbox import acknowledge, note
from gapless.protocols.gapless.positions import ask_wave
from gapless.protocols.gapless.routing import flood, put_advertisement, remove_advertisement
from gapless.protocols.gapless.routing_state import Advertisement
from gapless.protocols.gapless.sessions import begin_closing, finish_closing
from gapless.protocols.gapless.state import BrokerState, Due

__all__ = ["admit_queued", "receive"]


def receive(s: BrokerState, client: str, message: object) -> None:
    """Process a client's call. Ignore a call that belongs to another session."""
    session = s.sessions.get(client)
    if isinstance(message, Detach):
        waiting = s.arrivals.get(client)
        if waiting is not None and waiting.number <= message.session:
            del s.arrivals[client]
        if session is not None and session.number == message.session:
            begin_closing(s, session)
        return
    if session is None or session.phase is not SessionPhase.OPEN or session.number != getattr(message, "session", 0):
        return
    try:
        check_call(s, session, message)
    except CallError as error:
        s.emit(Expel(client, str(error)))
        return
    match message:
        case ClientPublish():
            _queue(session, message.events)
            s.busy_clients[client] = None
            s.due |= Due.CALLS
        case ClientGot():
            acknowledge(s, session, message.number)
        case ClientSubscribe():
            _subscribe(s, session, message)
        case ClientUnsubscribe():
            _unsubscribe(s, session, message)
        case ClientLost():
            admit_loss(s, session, message)
        case ClientWish():
            if s.is_live(message.broker) and message.broker not in s.suspects:
                s.send_to(client, Granted(session.number, message.broker))
        case ClientAdvertise() | ClientUnadvertise():
            if isinstance(message, ClientAdvertise):
                add_filter_cost(session, message.advertisement, parse(message.filter))
            session.queue.append(message)
            s.busy_clients[client] = None
            s.due |= Due.CALLS


def _subscribe(s: BrokerState, session: Session, message: ClientSubscribe) -> None:
    name = Name(session.client, message.subscription)
    if name in s.locals:
        return
    attempt = Attempt(session.epoch, 0)
    pattern = parse(message.filter)
    add_filter_cost(session, message.subscription, pattern)
    made = LocalSubscription(name, pattern, attempt, -1, message.is_resumed, survey=message.survey)
    subscribe(s, session, message, made)


def _unsubscribe(s: BrokerState, session: Session, message: ClientUnsubscribe) -> None:
    name = Name(session.client, message.subscription)
    if name in s.locals:
        remove_local(s, name)
    note(s, session, Unsubscribed, message.subscription)


def _queue(session: Session, events: EventRun) -> None:
    fresh = events.after(session.last_queued)
    if fresh is None:
        return
    session.last_queued = fresh.last
    session.queue.append(fresh)
    session.queued_events += len(fresh)


def admit_queued(s: BrokerState) -> None:
    """Process as many of the queued calls as possible."""
    for client, last in s.missing.items():
        if client in s.sessions:
            note_missing(s, s.sessions[client], last)
    s.missing.clear()
    for client in list(s.busy_clients):
        session = s.sessions.get(client)
        if session is None:
            del s.busy_clients[client]
            continue
        while session.queue and _take(s, session, session.queue[0]):
            call = session.queue.popleft()
            session.queued_events -= len(call) if isinstance(call, EventRun) else 0
        if session.phase is SessionPhase.CLOSING and not session.unreleased:
            finish_closing(s, session)
        elif not session.queue and session.phase is SessionPhase.OPEN:
            s.busy_clients.pop(client, None)


def _take(s: BrokerState, session: Session, call: object) -> bool:
    """Process a call, if that is possible now. Return whether it was processed."""
    if isinstance(call, ClientAdvertise):
        name = Name(session.client, call.advertisement)
        old = s.advertisements.get(name)
        if old is None or old.origin is not None:
            attempt = Attempt(session.epoch, 0)
            advertised = Advertisement(name, parse(call.filter), attempt, None, s.incarnation, session.admitted)
            put_advertisement(s, advertised, s.seen.get(session.client, 0))
            flood(s, s.advertisements[name])
        elif old.is_stable:
            s.send_to(session.client, Stable(session.number, call.advertisement))
        return True
    if isinstance(call, ClientUnadvertise):
        if session.unreleased:
            return False
        advertisement = s.advertisements.get(Name(session.client, call.advertisement))
        if advertisement is not None and advertisement.origin is None:
            remove_advertisement(s, advertisement, s.seen.get(session.client, 0))
        subtract_filter_cost(session, call.advertisement)
        s.send_to(session.client, Unadvertised(session.number, call.advertisement))
        return True
    assert isinstance(call, EventRun)
    if 2 * s.window_used > s.window:  # two waves make room, because the second one reports the result of the first
        settle(s)
        if 2 * s.window_used > s.window:
            ask_wave(s)
    if session.missing or s.window_used >= s.window or not _is_advertised(s, session.client, call):
        return False
    admit(s, session, call)
    return True


def _is_advertised(s: BrokerState, client: str, events: EventRun) -> bool:
    """Return whether each event matches a stable advertisement of its publisher."""
    filters = [
        each.filter for each in s.advertisements_of.get(client, {}).values() if each.origin is None and each.is_stable
    ]
    return is_covered(events.table, filters)
