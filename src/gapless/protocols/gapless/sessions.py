"""The end of sessions: the client has attached elsewhere or was disconnected for too long, or this broker is
isolated."""

from gapless.protocol import SetTimer
from gapless.protocols.gapless.client_messages import Closed
from gapless.protocols.gapless.client_state import Session, SessionPhase
from gapless.protocols.gapless.durable.state import GROUP_CLIENT
from gapless.protocols.gapless.local import remove_local
from gapless.protocols.gapless.messages import SessionClosed
from gapless.protocols.gapless.outbox import acknowledge
from gapless.protocols.gapless.routing import remove_advertisement
from gapless.protocols.gapless.state import BrokerState, Due
from gapless.protocols.parts.forgetting import forget_oldest

__all__ = [
    "ISOLATED",
    "ISOLATION_TIMER",
    "SESSION_TIMER",
    "SUPERSEDED",
    "begin_closing",
    "check_isolation",
    "close_session",
    "cut_off",
    "dismiss_all",
    "end_session",
    "expire",
    "finish_closing",
    "lost_client",
    "mark_client_connected",
    "receive_session_closed",
]  # fmt: skip

SESSION_TIMER = "session"
SUPERSEDED = "the client has attached elsewhere"
SESSIONS_REMEMBERED = 10_000
"""The number of clients whose latest session at another broker is remembered."""
ISOLATION_TIMER = "isolation"
ISOLATION_US = 1_000_000
"""The time without enough reachable acceptors after which a broker sends its clients to other brokers."""
ISOLATED = "its broker hears too few other brokers to confirm publications"


# ---- closing -------------------------------------------------------------------------------------------------


def close_session(s: BrokerState, broker: str, client: str, number: int) -> None:
    """End a client's older session on this broker because the client has attached elsewhere. Reject older requests for
    a session from now on."""
    s.latest_sessions[client] = max(number, s.latest_sessions.pop(client, 0))
    forget_oldest(s.latest_sessions, SESSIONS_REMEMBERED)
    session = s.sessions.get(client)
    if session is None or session.number >= number:
        _answer_closed(s, broker, client, number)
        return
    session.closes_for = [(broker, number)]
    begin_closing(s, session)


def end_session(s: BrokerState, client: str) -> None:
    """End a client's session, at an operator's request or after a timeout."""
    session = s.sessions.get(client)
    if session is not None:
        begin_closing(s, session)


def begin_closing(s: BrokerState, session: Session) -> None:
    """Start to close a session: end its subscriptions and accept no more calls. It is closed when all its publications
    are released."""
    session.phase = SessionPhase.CLOSING
    s.busy_clients[session.client] = None
    s.due |= Due.CALLS
    session.queue.clear()
    session.queued_events = 0
    for local in list(session.locals.values()):
        remove_local(s, local.name)


def finish_closing(s: BrokerState, session: Session) -> None:
    """Complete the closing of a session: end its advertisements, and notify the client and the brokers to which it has
    moved."""
    del s.sessions[session.client]
    s.due |= Due.FENCES
    s.busy_clients.pop(session.client, None)
    for advertisement in list(s.advertisements_of.get(session.client, {}).values()):
        if advertisement.origin is None:
            remove_advertisement(s, advertisement, s.seen.get(session.client, 0))
    for broker, number in session.closes_for:
        _answer_closed(s, broker, session.client, number)
    is_superseded = any(number > session.number for _, number in session.closes_for)
    reason = SUPERSEDED if is_superseded else "its session was ended"
    s.send_to(session.client, Closed(session.number, reason, is_superseded))


def _answer_closed(s: BrokerState, broker: str, client: str, number: int) -> None:
    answer = SessionClosed(client, number, s.clock.next(), s.seen.get(client, 0))
    if broker == s.name:
        receive_session_closed(s, answer)
    else:
        s.send(broker, answer)


def receive_session_closed(s: BrokerState, message: SessionClosed) -> None:
    """Record that the old broker has closed the session of a client that is attaching here."""
    session = s.arrivals.get(message.client)
    if session is not None and session.number == message.session and session.last_closed is None:
        session.last_closed = message.clock, message.last
        s.due |= Due.FENCES


def dismiss_all(s: BrokerState, reason: str) -> None:
    """Tell all clients to attach elsewhere, because this incarnation is excluded."""
    for session in (*s.sessions.values(), *s.arrivals.values()):
        if not session.client.startswith(GROUP_CLIENT):
            s.send_to(session.client, Closed(session.number, reason))


# ---- connections ---------------------------------------------------------------------------------------------


def lost_client(s: BrokerState, client: str) -> None:
    """Record that the failure detector suspects the client, and start its session timeout."""
    session = s.sessions.get(client)
    if session is not None and session.is_connected:
        session.is_connected = False
        s.emit(SetTimer(f"{SESSION_TIMER}/{client}", int(s.options.session_s * 1e6)))
    s.arrivals.pop(client, None)


def mark_client_connected(s: BrokerState, client: str) -> None:
    """Record that the failure detector trusts the client again."""
    session = s.sessions.get(client)
    if session is not None and not session.is_connected:
        session.is_connected = True
        acknowledge(s, session, 0)


def expire(s: BrokerState, client: str) -> None:
    """End the session of a client that was disconnected for too long. The client can resume its subscriptions from
    history."""
    session = s.sessions.get(client)
    if session is not None and not session.is_connected:
        end_session(s, client)


# ---- an isolated broker --------------------------------------------------------------------------------------


def _reachable_acceptors(s: BrokerState) -> int:
    """Return the number of this broker's acceptors that are reachable and can hold its journal."""
    return len([name for name in s.topology.acceptors[s.name] if name not in s.suspects and s.is_live(name)])


def check_isolation(s: BrokerState) -> None:
    """Update whether this broker reaches too few acceptors to confirm publications."""
    was_isolated, s.is_isolated = s.is_isolated, _reachable_acceptors(s) < s.needed_holders
    s.is_cut_off = s.is_cut_off and s.is_isolated
    if s.is_isolated and not was_isolated:
        s.set_timer(ISOLATION_TIMER, ISOLATION_US)


def cut_off(s: BrokerState) -> None:
    """Tell all clients to attach elsewhere if this broker is still isolated, because it cannot confirm publications."""
    if s.is_isolated:
        s.is_cut_off = True
        dismiss_all(s, ISOLATED)
        s.arrivals.clear()
