"""Full recovery: a broker that has lost its memory gets everything back from those around it (section VII-B).

It starts with nothing, and each session that it opens begins with a partial recovery, in which it is also told back the
subscriptions of its own clients. Until all its neighbours, or those it can reach in their place, have said that they
told it all, it processes no event of a client here: another broker can only send events for subscriptions that it has
told, but a client relies on the broker alone.

A neighbour that is recovering itself says so only when all its other neighbours have told it all; on a tree that ends.
One of them at least must be *informed*: not have lost its memory, or have heard from one who is. A broker that has just
restarted suspects everyone until its connections are there, and must not take that for an empty world. Only when its
patience is over does it believe so: then everybody has lost their memories.
"""

from collections.abc import Callable

from gapless_papers.protocols.delta.messages import Synchronised
from gapless_papers.protocols.delta.neighbourhood import Neighbourhood
from gapless_papers.protocols.delta.sessions import Session, Sessions

__all__ = ["Recovery"]


class Recovery:
    """Whether one broker has recovered, and whom it can tell that it has told all."""

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
        """Sessions have changed, or someone has told all."""
        if self.is_recovering:
            sources = [self._sessions.get(peer) for peer in self._neighbourhood.active]
            if _have_told(sources) and (_is_informed(sources) or self._is_alone):
                self.is_recovering = False
                self._on_recovered()
        for session in self._sessions.usable():
            if session.is_told and not session.sent_synchronised:
                self._say_synchronised(session)

    def despair(self) -> None:
        """Nobody knows anything: all have lost their memories, and there is nothing to wait for."""
        self._is_alone = True
        self.proceed()

    def _say_synchronised(self, session: Session) -> None:
        """If everything from elsewhere is here."""
        active = map(self._sessions.get, self._neighbourhood.active)
        others = [other for other in active if other.direction != session.direction]
        if not self.is_recovering or _have_told(others):
            session.sent_synchronised = True
            self._send(session.peer, Synchronised(not self.is_recovering or _is_informed(others)))


def _have_told(sources: list[Session]) -> bool:
    return all(session.is_synchronised for session in sources)


def _is_informed(sources: list[Session]) -> bool:
    return any(session.is_peer_informed for session in sources)
