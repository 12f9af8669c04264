"""Sessions: the shared state of two brokers of a neighbourhood.

A broker opens a session to route over it. It lasts until a connection breaks, one broker suspects the other, or neither
routes over it any more. Both ends number their sessions. `Hello` contains the sender's number, the receiver's number if
the sender has received it, and the names of the subscriptions that the sender knows. A broker that receives a new
number discards the previous session, answers with its own `Hello`, and sends the subscriptions that the peer lacks;
from then on it can **send**. It **listens** only after it has received its own number back. So it ignores all messages
of an earlier session that are still in flight, or that were sent before the peer noticed its end.

*Why this matters:* a late publication that was sent before its sender knew a subscription must not arrive after that
subscription's confirmation has arrived by another path.

Messages from a suspected broker are ignored. Its `Hello` is answered as soon as it is trusted.
"""

from collections.abc import Callable
from typing import Protocol

from gapless_papers.protocols.delta.messages import Hello, Number, Partition, Use
from gapless_papers.protocols.delta.neighbourhood import Neighbourhood
from gapless_papers.protocols.delta.subscriptions import Subscription
from gapless_papers.protocols.delta.unconfirmed import Unconfirmed

__all__ = ["Session", "Sessions"]


class Session:
    """One broker's end of a session."""

    def __init__(self, peer: str, path: tuple[str, ...]) -> None:
        self.peer = peer
        self.distance = len(path)
        self.direction = path[0]
        self.bypassed = path[:-1]
        self.active = False
        """Whether this broker routes over the session."""
        self.peer_active = False
        self.mine: Number = ()
        self.theirs: Number = ()
        """The peer's number for the session; empty until it is known. Only then can this end send."""
        self.is_peer_informed_of_session = False
        """Whether the peer has received the number of this end, so that this end listens."""
        self.called = False
        """Whether the suspected peer waits for an answer."""
        self.outbox: dict[int, Unconfirmed] = {}
        """Unconfirmed publications for this session, by number."""
        self.forget()

    def forget(self) -> None:
        """Discard the state of the session."""
        self.is_peer_informed_of_session = False
        self.has_sent_all = False
        """Whether the peer has been sent the subscriptions it lacked."""
        self.sent_synchronised = False
        self.is_synchronised = False
        """Whether this end has been sent the subscriptions it lacked."""
        self.is_peer_informed = False
        self.received = 0
        """How many subscriptions the peer has sent."""
        self.received_reported = 0
        """For how many of these the peer has been told that they arrived."""
        self.sent = 0
        """How many subscriptions the peer was sent."""
        self.unacknowledged: dict[str, tuple[int, Subscription]] = {}
        """The subscriptions sent that the peer may not have received yet, with their positions in the session."""
        self.owed: dict[str, None] = {}
        """Subscriptions confirmed here that the recovering peer has not confirmed yet."""
        self.illegitimate: dict[str, Subscription] = {}
        """Subscriptions that must not be sent because too many brokers were bypassed."""
        self.unsent: dict[int, Unconfirmed] = dict(self.outbox)
        """Publications of the outbox that have not been sent in this session."""

    @property
    def may_send(self) -> bool:
        return bool(self.theirs)


class _Listener(Protocol):
    """The callbacks of the objects that keep state per session."""

    def summary(self) -> tuple[tuple[str, ...], tuple[str, ...], tuple[Partition, ...]]: ...

    def on_greeted(self, session: Session, hello: Hello) -> None: ...

    def on_closed(self, session: Session) -> None: ...


class Sessions:
    """All sessions of one broker, created when first needed."""

    def __init__(
        self, incarnation: int, neighbourhood: Neighbourhood, send: Callable[[str, object], None], listener: _Listener
    ) -> None:
        self._neighbourhood = neighbourhood
        self._send = send
        self._listener = listener
        self._sessions: dict[str, Session] = {}
        self._usable: dict[str, Session] = {}
        self._beyond: dict[str, tuple[str, ...]] = {}
        self._incarnation = incarnation
        self._count = 0

    def __len__(self) -> int:
        return len(self._usable)

    def get(self, peer: str) -> Session:
        """Return the session with a broker of the neighbourhood, open or not."""
        session = self._sessions.get(peer)
        if session is None:
            session = self._sessions[peer] = Session(peer, self._neighbourhood.paths[peer])
        return session

    def usable(self) -> list[Session]:
        """Return the sessions over which this broker can send."""
        return list(self._usable.values())

    def beyond(self, direction: str) -> tuple[str, ...]:
        """Return the peers with which this broker has or wants a session, in all directions but this."""
        found = self._beyond.get(direction)
        if found is None:
            paths = self._neighbourhood.paths
            peers = dict.fromkeys([*self._neighbourhood.active, *self._usable])
            found = self._beyond[direction] = tuple([peer for peer in peers if paths[peer][0] != direction])
        return found

    # ---- the beginning

    def agree_silently(self) -> None:
        """Open the sessions to the neighbours without messages: at the start of a run all brokers are empty."""
        number = self._next_number()
        for peer in self._neighbourhood.active:
            session = self.get(peer)
            session.active = session.peer_active = True
            session.mine = number
            self._set_theirs(session, number)
            session.is_peer_informed_of_session = session.has_sent_all = session.sent_synchronised = (
                session.is_synchronised
            ) = True
            session.is_peer_informed = True

    def use_active(self) -> None:
        """Open the sessions to the current active peers, and stop using others."""
        active = self._neighbourhood.active
        self._beyond = {}
        for session in [session for session in self._sessions.values() if session.active]:
            if session.peer not in active:
                self._release(session)
        for peer in active:
            session = self.get(peer)
            if not session.active:
                self._engage(session)

    # ---- changes of the peer

    def on_connected(self, peer: str) -> None:
        """Restart the session on a new connection, because messages in flight may be lost."""
        session = self._sessions.get(peer)
        if session is not None:
            self._close(session)
            if session.active:
                self._greet(session)

    def on_suspected(self, peer: str) -> None:
        """Close the session with a peer that may be dead."""
        session = self._sessions.get(peer)
        if session is not None and session.mine:
            session.called = session.may_send
            self._close(session)

    def on_trusted(self, peer: str) -> None:
        """Renew the session with a peer that is trusted again; the peer may believe that the old one has lasted."""
        session = self._sessions.get(peer)
        if session is not None and session.called:
            session.called = False
            if not session.mine:
                self._greet(session)

    # ---- messages

    def on_hello(self, peer: str, hello: Hello) -> None:
        """Accept a session, or record that the peer has accepted it."""
        session = self.get(peer)
        if peer in self._neighbourhood.suspected:
            session.called = True
            return
        session.peer_active = hello.active
        if hello.mine != session.theirs:
            self._forget(session)
            session.mine = session.mine or self._next_number()
            self._set_theirs(session, hello.mine)
            session.is_peer_informed_of_session = hello.yours == session.mine
            self._say_hello(session)
            self._listener.on_greeted(session, hello)
        elif hello.yours == session.mine:
            session.is_peer_informed_of_session = True
        self._close_if_unused(session)

    def on_use(self, peer: str, use: Use) -> None:
        """Record whether the peer routes over the session."""
        session = self.get(peer)
        if session.is_peer_informed_of_session:
            session.peer_active = use.active
            self._close_if_unused(session)
        elif use.active and not session.mine and peer not in self._neighbourhood.suspected:
            self._greet(session)

    # ---- internals

    def _engage(self, session: Session) -> None:
        session.active = True
        if session.theirs:
            self._send(session.peer, Use(True))
        elif not session.mine:
            self._greet(session)

    def _release(self, session: Session) -> None:
        session.active = False
        if session.theirs:
            self._send(session.peer, Use(False))
        self._close_if_unused(session)

    def _close_if_unused(self, session: Session) -> None:
        if session.theirs and session.is_peer_informed_of_session and not session.active and not session.peer_active:
            self._close(session)

    def _greet(self, session: Session) -> None:
        session.mine = self._next_number()
        self._say_hello(session)

    def _say_hello(self, session: Session) -> None:
        self._send(session.peer, Hello(session.mine, session.theirs, session.active, *self._listener.summary()))

    def _close(self, session: Session) -> None:
        session.mine = ()
        session.peer_active = False
        self._forget(session)

    def _forget(self, session: Session) -> None:
        was_open = session.may_send
        self._set_theirs(session, ())
        session.forget()
        if was_open:
            self._listener.on_closed(session)

    def _set_theirs(self, session: Session, number: Number) -> None:
        session.theirs = number
        self._beyond = {}
        if number:
            self._usable[session.peer] = session
        else:
            self._usable.pop(session.peer, None)

    def _next_number(self) -> Number:
        self._count += 1
        return self._incarnation, self._count
