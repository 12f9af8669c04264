"""Attaching clients: a new session opens only behind a fence.

A client that moves reports the incarnation that served it last, and the largest timestamp delivered to it. Its session
opens behind a **fence**: a final position that is not before that timestamp, and that satisfies one more condition.

- If that incarnation is excluded, the position includes its seal. Everything it had admitted has then arrived
  everywhere, and the sealed journal contains the client's last publication.
- If it is live, the position is after the clock at which it closed the old session. By then it had released everything
  it had admitted.

So no effect that the client publishes here can overtake a cause, no publication is admitted twice, and none is omitted.
Subscriptions are resumed by reading history (`local`). No session state is copied between brokers.
"""

from gapless.protocols.gapless.client_messages import Attach, Closed, Ready, Retry
from gapless.protocols.gapless.client_state import Session, SessionPhase
from gapless.protocols.gapless.identities import Incarnation
from gapless.protocols.gapless.losses import note_missing
from gapless.protocols.gapless.messages import CloseSession, LastNumber, LastNumberReply
from gapless.protocols.gapless.outbox import repeat
from gapless.protocols.gapless.sealed_journals import length_of, want
from gapless.protocols.gapless.sessions import ISOLATED, SUPERSEDED, begin_closing, close_session
from gapless.protocols.gapless.state import BrokerState, Due

__all__ = ["answer_last_number", "ask_fences", "ask_holders", "attach", "check_fences", "receive_last_number"]

FENCED = "it waits for a final position after the client's last session"
PATIENCE = 10
"""How many times the holders of a sealed journal are asked for a client's last number in it before they are asked for
the whole journal."""


# ---- attaching -----------------------------------------------------------------------------------------------


def attach(s: BrokerState, client: str, message: Attach) -> None:
    """Process a client's request for a session."""
    if s.is_cut_off:
        s.send_to(client, Retry(message.session, ISOLATED))
        return
    if message.session < s.latest_sessions.get(client, 0):
        s.send_to(client, Closed(message.session, SUPERSEDED, is_superseded=True))
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
        s.send_to(client, Ready(session.number, s.incarnation, s.seen.get(client, 0), _contacts(s), True, []))
        repeat(s, session, message.received)
        return
    s.arrivals[client] = arriving = Session(client, message.session, message, message.session)
    s.due |= Due.FENCES | Due.REQUESTS
    _ask_fence(s, arriving)
    if not _is_fenced(s, arriving):
        s.send_to(client, Retry(message.session, FENCED))


def _contacts(s: BrokerState) -> list[str]:
    """Return the brokers that the client can ask if this one fails, nearest first."""
    return [s.name, *(name for name in s.topology.overlay.within(s.name, len(s.topology.brokers)) if s.is_live(name))]


# ---- the fence -----------------------------------------------------------------------------------------------


def ask_fences(s: BrokerState) -> None:
    """Repeat unanswered requests, because they or their answers may have been lost."""
    for session in s.arrivals.values():
        session.asked += 1
        _ask_fence(s, session)
        s.send_to(session.client, Retry(session.number, FENCED))


def ask_holders(s: BrokerState) -> None:
    """Ask for the last numbers of clients whose previous broker was excluded while they were waiting."""
    for session in s.arrivals.values():
        old = session.attach.incarnation
        if not session.asks_holders and session.last_closed is None and old and s.is_dead(Incarnation(*old)):
            _ask_fence(s, session)


def _ask_fence(s: BrokerState, session: Session) -> None:
    message = session.attach
    old = s.incarnation if message.incarnation is None else Incarnation(*message.incarnation)
    if old == s.incarnation:
        close_session(s, s.name, session.client, session.number)
    elif not s.is_dead(old):
        s.send(old.broker, CloseSession(session.client, session.number))
    elif message.published == message.base or length_of(s, old) == 0:
        session.last_closed = 0, message.base
        s.due |= Due.FENCES
    else:
        session.asks_holders = True
        if session.asked > PATIENCE and length_of(s, old):
            want(s, old)
        for broker in s.topology.electorate(old.broker):
            if broker == s.name:
                answer_last_number(s, s.name, LastNumber(session.client, session.number, old))
            else:
                s.send(broker, LastNumber(session.client, session.number, old))


def check_fences(s: BrokerState) -> None:
    """Open the sessions whose fences are complete. An earlier session of the same client is ended first."""
    for session in [each for each in s.arrivals.values() if "fence" in s.off or _is_fenced(s, each)]:
        earlier = s.sessions.get(session.client)
        if earlier is None:
            _open(s, session)
        elif earlier.phase is not SessionPhase.CLOSING:
            begin_closing(s, earlier)


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
    """Open the session after the largest number known to be admitted. Numbers below it that are in no journal
    are lost."""
    client, attach = session.client, session.attach
    del s.arrivals[client]
    found, seen = max(session.last_closed[1] if session.last_closed else 0, attach.base), s.seen.get(client, 0)
    last = max(found, attach.confirmed) if attach.incarnation is None else max(found, attach.confirmed, seen)
    if "last-numbers" not in s.off:
        s.seen[client] = max(seen, last)
    session.phase, session.admitted, session.last_queued = SessionPhase.OPEN, found, last
    session.settled = attach.settled
    s.sessions[client] = session
    s.send_to(client, Ready(session.number, s.incarnation, last, _contacts(s), False, list(s.sealed_final.items())))
    if attach.incarnation is not None:
        note_missing(s, session, last)
    session.admitted = last


# ---- the last number in a sealed journal ---------------------------------------------------------------------


def answer_last_number(s: BrokerState, broker: str, message: LastNumber) -> None:
    """Reply with a client's last number in a sealed journal, if this broker has all of the journal."""
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
    """Process such a reply from a holder of the sealed journal."""
    session = s.arrivals.get(message.client)
    if session is not None and session.number == message.session:
        session.last_closed = 0, message.last
        s.due |= Due.FENCES
