"""Full recovery: a broker that has lost its memory restores its state from its neighbours (section VII-B).

It starts without state. Each session that it opens begins with a partial recovery, which also returns the subscriptions
of its own clients. It processes no event of a client until all its neighbours, or the brokers it can reach in their
place, have reported that they sent everything. The reason is that another broker sends events only for subscriptions
that it has sent before, whereas a client relies on its broker alone.

A neighbour that is itself recovering reports this only when all its other neighbours have sent it everything; on a tree
that ends. At least one of them must be *informed*: it has not lost its memory, or it was restored by an informed
broker. A broker that has just restarted suspects every peer until its connections exist, and must not mistake that for
an empty network. It does so only after `patience_ms`: then all brokers have lost their memories.
"""

from collections.abc import Callable

from gapless_papers.protocols.delta.messages import Synchronised
from gapless_papers.protocols.delta.neighbourhood import Neighbourhood
from gapless_papers.protocols.delta.sessions import Session, Sessions

__all__ = ["Recovery"]


class Recovery:
    """Tracks whether one broker has recovered, and to which peers it can report that it sent everything."""

    def __init__(
        self, neighbourhood: Neighbourhood, sessions: Sessions, send: Callable[[str, object], None],
        on_recovered: Callable[[], None], *, is_recovering: bool,
    ) -> None:  # fmt: skip
        self._neighbourhood = neighbourhood
        self._sessions = sessions
        self._send = send
        self._on_recovered = on_recovered
        self._is_alone = not neighbourhood.paths
        self.is_recovering = is_recovering

    def proceed(self) -> None:
        """Continue the recovery after sessions have changed or a peer has sent everything."""
        if self.is_recovering:
            sources = [self._sessions.get(peer) for peer in self._neighbourhood.active]
            if _have_sent_all(sources) and (_is_informed(sources) or self._is_alone):
                self.is_recovering = False
                self._on_recovered()
        for session in self._sessions.usable():
            if session.has_sent_all and not session.sent_synchronised:
                self._report_synchronised(session)

    def give_up(self) -> None:
        """End the recovery without state, because all brokers have lost their memories."""
        self._is_alone = True
        self.proceed()

    def _report_synchronised(self, session: Session) -> None:
        """Report to the peer that it has been sent everything, if everything from elsewhere has arrived."""
        active = map(self._sessions.get, self._neighbourhood.active)
        others = [other for other in active if other.direction != session.direction]
        if not self.is_recovering or _have_sent_all(others):
            session.sent_synchronised = True
            self._send(session.peer, Synchronised(not self.is_recovering or _is_informed(others)))


def _have_sent_all(sources: list[Session]) -> bool:
    return all(session.is_synchronised for session in sources)


def _is_informed(sources: list[Session]) -> bool:
    return any(session.is_peer_informed for session in sources)
