"""Full recovery: a broker that has lost its memory gets everything back from those around it (section VII-B).

It starts with nothing, and each session that it opens begins with a partial recovery, in which it is also told back the
subscriptions of its own clients. Until all its neighbours, or those it can reach in their place, have said that they
told it all, it processes no event of a client here: another broker can only send events for subscriptions that it has
told, but a client relies on the broker alone.

A neighbour that is recovering itself says so only when all its other neighbours have told it all. On a tree that ends.
"""

from collections.abc import Callable

from gapless.protocols.delta.messages import Synchronised
from gapless.protocols.delta.neighbourhood import Neighbourhood
from gapless.protocols.delta.sessions import Session, Sessions

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
        self.is_recovering = is_recovering

    def proceed(self) -> None:
        """Sessions have changed, or someone has told all."""
        if self.is_recovering and all(map(self._has_told, self._neighbourhood.active)):
            self.is_recovering = False
            self._on_recovered()
        for session in list(self._sessions.usable()):
            if session.is_told and not session.sent_synchronised and self._has_all_for(session):
                session.sent_synchronised = True
                self._send(session.peer, Synchronised())

    def _has_all_for(self, session: Session) -> bool:
        """Whether everything from elsewhere is here."""
        if not self.is_recovering:
            return True
        others = (
            peer for peer in self._neighbourhood.active if self._neighbourhood.direction(peer) != session.direction
        )
        return all(map(self._has_told, others))

    def _has_told(self, peer: str) -> bool:
        return self._sessions.get(peer).is_synchronised
