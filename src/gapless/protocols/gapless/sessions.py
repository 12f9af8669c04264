"""Clients: attaching with a fence, their calls in order, and closing.

A client that moves names the incarnation that served it last, and the largest timestamp it was delivered. Its session
opens behind a **fence**: a final position that is not before that timestamp, and

- if the incarnation is over: includes its seal. Everything it had admitted has arrived everywhere, and the sealed
  journal says which publication of the client was the last;
- if it lives: is after the clock at which it has closed the old session, with everything released that it had
  admitted.

So no effect that the client publishes here can overtake a cause, nothing that was admitted is admitted twice, and
nothing is left out. Subscriptions are resumed by reading history (`local`). No broker inherits anything from another.
"""

from gapless.errors import CallError
from gapless.events import EventRun, Events
from gapless.filters import parse
from gapless.protocol import Expel, SetTimer
from gapless.protocols.gapless.claims import bear, check_call, relieve
from gapless.protocols.gapless.client_messages import (
    Attach,
    ClientAdvertise,
    ClientGot,
    ClientLost,
    ClientPublish,
    ClientSubscribe,
    ClientUnadvertise,
    ClientUnsubscribe,
    ClientWish,
    Closed,
    Detach,
    Granted,
    Ready,
    Retry,
    Stable,
    Unadvertised,
    Unsubscribed,
)
from gapless.protocols.gapless.durable.state import GROUP_CLIENT
from gapless.protocols.gapless.identities import Attempt, Incarnation, Name
from gapless.protocols.gapless.journal import admit, settle
from gapless.protocols.gapless.local import remove_local, subscribe
from gapless.protocols.gapless.losses import admit_loss, note_missing
from gapless.protocols.gapless.messages import CloseSession, LastNumber, LastNumberReply, SessionClosed
from gapless.protocols.gapless.outbox import acknowledge, note, repeat
from gapless.protocols.gapless.positions import ask_wave
from gapless.protocols.gapless.routing import flood, put_advertisement, remove_advertisement
from gapless.protocols.gapless.sealed_journals import length_of, want
from gapless.protocols.gapless.state import Advertisement, BrokerState, LocalSubscription, Session, SessionPhase
from gapless.protocols.parts.forgetting import forget_oldest

__all__ = [
    "SESSION_TIMER", "admit_queued", "answer_last_number", "ask_fences", "attach", "check_fences", "check_isolation",
    "close_session", "dismiss_all", "end_session", "expire", "heard_acceptors", "lost_client", "receive",
    "receive_last_number", "receive_session_closed",
    "saw_client",
]  # fmt: skip

SESSION_TIMER = "session"
FENCED = "it waits for a final position after the client's last session"
SUPERSEDED = "the client has attached elsewhere"
SESSIONS_REMEMBERED = 10_000
"""Of so many clients a broker remembers the latest session that they opened elsewhere."""
ISOLATED_TICKS = 10
"""So many ticks (`broker.RETRY_US`) a broker hears too few acceptors before it sends its clients away."""
ISOLATED = "its broker hears too few others to confirm anything"
PATIENCE = 10
"""So many times the holders of a sealed journal are asked for a number in it; then for the journal."""


# ---- attaching ---------------------------------------------------------------------------------------------


def attach(s: BrokerState, client: str, message: Attach) -> None:
    """A client asks for a session."""
    if s.is_cut_off:
        s.tell(client, Retry(message.session, ISOLATED))
        return
    if message.session < s.latest_sessions.get(client, 0):
        s.tell(client, Closed(message.session, SUPERSEDED, is_superseded=True))
        return
    session = s.sessions.get(client)
    waiting = s.arrivals.get(client)
    if (session and message.session <= session.number) or (waiting and message.session <= waiting.number):
        return
    if (
        session is not None
        and session.phase is SessionPhase.OPEN
        and message.incarnation is not None
        and Incarnation(*message.incarnation) == s.incarnation
        and session.number == message.resumes
    ):
        s.arrivals.pop(client, None)
        session.number, session.is_connected = message.session, True
        s.tell(client, Ready(session.number, s.incarnation, s.seen.get(client, 0), _contacts(s), True, []))
        repeat(s, session, message.received)
        return
    s.arrivals[client] = arriving = Session(client, message.session, message, message.session)
    _ask_fence(s, arriving)
    if not _is_fenced(s, arriving):
        s.tell(client, Retry(message.session, FENCED))


def _contacts(s: BrokerState) -> list[str]:
    """Whom the client may ask when this broker is gone: the nearest first."""
    return [s.name, *(name for name in s.topology.overlay.within(s.name, len(s.topology.brokers)) if s.is_live(name))]


def ask_fences(s: BrokerState) -> None:
    """Questions and answers may have been lost with their brokers."""
    for session in s.arrivals.values():
        session.asked += 1
        _ask_fence(s, session)
        s.tell(session.client, Retry(session.number, FENCED))


def _ask_fence(s: BrokerState, session: Session) -> None:
    message = session.attach
    old = s.incarnation if message.incarnation is None else Incarnation(*message.incarnation)
    if old == s.incarnation:
        close_session(s, s.name, session.client, session.number)
    elif not s.is_dead(old):
        s.send(old.broker, CloseSession(session.client, session.number))
    elif message.published == message.base or length_of(s, old) == 0:
        session.last_closed = 0, message.base
    else:
        if session.asked > PATIENCE and length_of(s, old):
            want(s, old)
        for broker in s.topology.electorate(old.broker):
            if broker == s.name:
                answer_last_number(s, s.name, LastNumber(session.client, session.number, old))
            else:
                s.send(broker, LastNumber(session.client, session.number, old))


def check_fences(s: BrokerState) -> bool:
    """Open the sessions whose fence holds. An earlier one is ended first: its client has not heard of it."""
    is_busy = False
    for session in [each for each in s.arrivals.values() if "fence" in s.off or _is_fenced(s, each)]:
        earlier = s.sessions.get(session.client)
        if earlier is None:
            _open(s, session)
            is_busy = True
        elif earlier.phase is not SessionPhase.CLOSING:
            _begin_closing(s, earlier)
            is_busy = True
    return is_busy


def _is_fenced(s: BrokerState, session: Session) -> bool:
    message = session.attach
    if session.last_closed is None:
        return False
    if message.incarnation is None:
        return True
    if s.final.timestamp < message.largest:
        return False
    old = Incarnation(*message.incarnation)
    if s.is_dead(old):
        return s.is_seal_final(old)
    return s.final.timestamp > session.last_closed[0]


def _open(s: BrokerState, session: Session) -> None:
    """Open it: the client continues after the last number known to be admitted. Numbers not found are lost."""
    client, attach = session.client, session.attach
    del s.arrivals[client]
    found, seen = max(session.last_closed[1] if session.last_closed else 0, attach.base), s.seen.get(client, 0)
    last = max(found, attach.confirmed) if attach.incarnation is None else max(found, attach.confirmed, seen)
    if "last-numbers" not in s.off:
        s.seen[client] = max(seen, last)
    session.phase, session.admitted, session.last_queued = SessionPhase.OPEN, found, last
    session.settled = attach.settled
    s.sessions[client] = session
    s.tell(client, Ready(session.number, s.incarnation, last, _contacts(s), False, list(s.sealed_final.items())))
    if attach.incarnation is not None:
        note_missing(s, session, last)
    session.admitted = last


# ---- closing -----------------------------------------------------------------------------------------------


def close_session(s: BrokerState, broker: str, client: str, number: int) -> None:
    """The client has attached elsewhere: end its session here, if it is older, and open no older one any more."""
    s.latest_sessions[client] = max(number, s.latest_sessions.pop(client, 0))
    forget_oldest(s.latest_sessions, SESSIONS_REMEMBERED)
    session = s.sessions.get(client)
    if session is None or session.number >= number:
        _answer_closed(s, broker, client, number)
        return
    session.closes_for = [(broker, number)]
    _begin_closing(s, session)


def end_session(s: BrokerState, client: str) -> None:
    """An operator, or its absence, ends a client's session."""
    session = s.sessions.get(client)
    if session is not None:
        _begin_closing(s, session)


def _begin_closing(s: BrokerState, session: Session) -> None:
    session.phase = SessionPhase.CLOSING
    s.busy_clients[session.client] = None
    session.queue.clear()
    session.queued_events = 0
    for name in [name for name in s.locals if name.client == session.client]:
        remove_local(s, name)


def _finish_closing(s: BrokerState, session: Session) -> None:
    del s.sessions[session.client]
    s.busy_clients.pop(session.client, None)
    own = [each for each in s.advertisements.values() if each.origin is None and each.publisher == session.client]
    for advertisement in own:
        remove_advertisement(s, advertisement)
    for broker, number in session.closes_for:
        _answer_closed(s, broker, session.client, number)
    is_superseded = any(number > session.number for _, number in session.closes_for)
    reason = SUPERSEDED if is_superseded else "its session was ended"
    s.tell(session.client, Closed(session.number, reason, is_superseded))


def _answer_closed(s: BrokerState, broker: str, client: str, number: int) -> None:
    answer = SessionClosed(client, number, s.clock.next(), s.seen.get(client, 0))
    if broker == s.name:
        receive_session_closed(s, answer)
    else:
        s.send(broker, answer)


def receive_session_closed(s: BrokerState, message: SessionClosed) -> None:
    """The old broker has closed the session of a client that arrives here."""
    session = s.arrivals.get(message.client)
    if session is not None and session.number == message.session and session.last_closed is None:
        session.last_closed = message.clock, message.last


def answer_last_number(s: BrokerState, broker: str, message: LastNumber) -> None:
    """Look up a client's last number in a sealed journal, if all of it is here."""
    incarnation = Incarnation(*message.incarnation)
    status = s.status(incarnation.broker)
    if incarnation.number >= status.sealed_below:
        return
    journal = s.journals.get(incarnation)
    length = dict(status.lengths).get(incarnation.number, 0)
    if length and (journal is None or len(journal) < length):
        return
    last = journal.last_number(message.client) if journal is not None and length else 0
    if last is None:
        return
    answer = LastNumberReply(message.client, message.session, last)
    if broker == s.name:
        receive_last_number(s, answer)
    else:
        s.send(broker, answer)


def receive_last_number(s: BrokerState, message: LastNumberReply) -> None:
    """A holder of the sealed journal has answered."""
    session = s.arrivals.get(message.client)
    if session is not None and session.number == message.session:
        session.last_closed = 0, message.last


def dismiss_all(s: BrokerState, reason: str) -> None:
    """This incarnation is over: let the clients attach elsewhere."""
    for session in (*s.sessions.values(), *s.arrivals.values()):
        if not session.client.startswith(GROUP_CLIENT):
            s.tell(session.client, Closed(session.number, reason))


# ---- a broker that is cut off ------------------------------------------------------------------------------


def heard_acceptors(s: BrokerState) -> int:
    """How many acceptors this broker hears, so that they may hold its journal."""
    return len([name for name in s.topology.acceptors[s.name] if name not in s.suspects and s.is_live(name)])


def check_isolation(s: BrokerState) -> None:
    """A broker that hears too few acceptors confirms nothing: let its clients look for one that does."""
    s.isolated_ticks = s.isolated_ticks + 1 if heard_acceptors(s) < s.needed_holders else 0
    was_cut_off, s.is_cut_off = s.is_cut_off, s.isolated_ticks >= ISOLATED_TICKS
    if s.is_cut_off and not was_cut_off:
        dismiss_all(s, ISOLATED)
        s.arrivals.clear()


# ---- connections -------------------------------------------------------------------------------------------


def lost_client(s: BrokerState, client: str) -> None:
    """The client seems to be away."""
    session = s.sessions.get(client)
    if session is not None and session.is_connected:
        session.is_connected = False
        s.emit(SetTimer(f"{SESSION_TIMER}/{client}", int(s.options.session_s * 1e6)))
    s.arrivals.pop(client, None)


def saw_client(s: BrokerState, client: str) -> None:
    """The client is there, after all."""
    session = s.sessions.get(client)
    if session is not None and not session.is_connected:
        session.is_connected = True
        acknowledge(s, session, 0)


def expire(s: BrokerState, client: str) -> None:
    """The client was away for too long. It resumes its subscriptions from history."""
    session = s.sessions.get(client)
    if session is not None and not session.is_connected:
        end_session(s, client)


# ---- calls -------------------------------------------------------------------------------------------------


def receive(s: BrokerState, client: str, message: object) -> None:
    """A call of a client; ignored if it belongs to another session."""
    session = s.sessions.get(client)
    if isinstance(message, Detach):
        waiting = s.arrivals.get(client)
        if waiting is not None and waiting.number <= message.session:
            del s.arrivals[client]
        if session is not None and session.number == message.session:
            _begin_closing(s, session)
        return
    if session is None or session.phase is not SessionPhase.OPEN or session.number != getattr(message, "session", 0):
        return
    try:
        check_call(s, session, message)
    except CallError as error:
        s.emit(Expel(client, str(error)))
        return
    match message:
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
                s.tell(client, Granted(session.number, message.broker))
        case ClientPublish():
            _queue(session, message.events)
            s.busy_clients[client] = None
        case ClientAdvertise() | ClientUnadvertise():
            if isinstance(message, ClientAdvertise):
                bear(session, message.advertisement, parse(message.filter))
            session.queue.append(message)
            s.busy_clients[client] = None


def _subscribe(s: BrokerState, session: Session, message: ClientSubscribe) -> None:
    name = Name(session.client, message.subscription)
    if name in s.locals:
        return
    attempt = Attempt(session.epoch, 0)
    bear(session, message.subscription, parse(message.filter))
    subscribe(s, session, message, LocalSubscription(name, parse(message.filter), attempt, -1, message.is_resumed))


def _unsubscribe(s: BrokerState, session: Session, message: ClientUnsubscribe) -> None:
    name = Name(session.client, message.subscription)
    if name in s.locals:
        remove_local(s, name)
    note(s, session, Unsubscribed, message.subscription)


def _queue(session: Session, events: Events) -> None:
    first, last = events[0].seq, events[-1].seq
    if last <= session.last_queued:
        return
    fresh = events if first > session.last_queued else events[session.last_queued + 1 - first :]
    session.last_queued = last
    session.queue.append(fresh)
    session.queued_events += len(fresh)


def admit_queued(s: BrokerState) -> bool:
    """Take the calls that wait for their turn, as far as they can be taken."""
    is_busy = False
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
            session.queued_events -= len(call) if isinstance(call, list | EventRun) else 0
            is_busy = True
        if session.phase is SessionPhase.CLOSING and not session.unreleased:
            _finish_closing(s, session)
            is_busy = True
        elif not session.queue and session.phase is SessionPhase.OPEN:
            s.busy_clients.pop(client, None)
    return is_busy


def _take(s: BrokerState, session: Session, call: object) -> bool:
    """Take a call, if that is possible now."""
    if isinstance(call, ClientAdvertise):
        name = Name(session.client, call.advertisement)
        old = s.advertisements.get(name)
        if old is None or old.origin is not None:
            attempt = Attempt(session.epoch, 0)
            put_advertisement(
                s, Advertisement(name, parse(call.filter), attempt, None, s.incarnation, session.admitted)
            )
            flood(s, s.advertisements[name])
        elif old.is_stable:
            s.tell(session.client, Stable(session.number, call.advertisement))
        return True
    if isinstance(call, ClientUnadvertise):
        if session.unreleased:
            return False
        advertisement = s.advertisements.get(Name(session.client, call.advertisement))
        if advertisement is not None and advertisement.origin is None:
            remove_advertisement(s, advertisement)
        relieve(session, call.advertisement)
        s.tell(session.client, Unadvertised(session.number, call.advertisement))
        return True
    assert isinstance(call, list | EventRun)
    if 2 * s.window_used > s.window:  # waves make room: two of them, since one tells what the other found
        settle(s)
        if 2 * s.window_used > s.window:
            ask_wave(s)
    if session.missing or s.window_used >= s.window or not _is_advertised(s, session.client, call):
        return False
    admit(s, session, call)
    return True


def _is_advertised(s: BrokerState, client: str, events: Events) -> bool:
    """Whether each event matches a stable advertisement of its publisher."""
    tests = [
        each.filter.test for each in s.advertisements.values()
        if each.origin is None and each.is_stable and each.publisher == client
    ]  # fmt: skip
    attributes = [each for each, _ in events.alike] if isinstance(events, EventRun) else [e.attributes for e in events]
    return all(any(test(each) for test in tests) for each in attributes)
