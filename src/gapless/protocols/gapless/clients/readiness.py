"""When a subscription is ready: when its cut is whole, and the backups know the subscription.

The backups know the subscription. They need not know its cut: what the cut lets in is kept until the client has it,
whoever holds the session, and the client brings the cut along.
"""

from collections.abc import Callable
from typing import Any

from gapless.protocols.gapless.client_messages import Cut
from gapless.protocols.gapless.clients.readings import Readings
from gapless.protocols.gapless.clients.sessions import Session
from gapless.protocols.gapless.options import GaplessOptions
from gapless.protocols.gapless.retention.journal import Journal
from gapless.protocols.gapless.routing.routing_table import RoutingTable

__all__ = ["Readiness"]

NEVER = 1 << 62


class Readiness:
    """The subscriptions of one broker's clients that are not ready yet."""

    def __init__(
        self,
        options: GaplessOptions,
        sessions: dict[str, Session],
        table: RoutingTable,
        journal: Journal,
        readings: Readings,
        send: Callable[[str, Any], None],
        secure: Callable[[Session], None],
    ) -> None:
        self._waits_for_backups = "held-start" not in options.switched_off
        self._sessions = sessions
        self._table = table
        self._journal = journal
        self._readings = readings
        self._send = send
        self._secure = secure
        self._clients: dict[str, None] = {}
        """Who waits."""

    def wait_for(self, session: Session, name: str) -> None:
        """Let the client know, later, that nothing is left out any more."""
        self._table.await_cuts(session.subscriptions[name])
        session.unready[name] = 0
        self._clients[session.client] = None

    def forget(self, client: str) -> None:
        """Its session is over, or is another's."""
        self._clients.pop(client, None)

    def check(self) -> None:
        """Tell the clients whose subscriptions are ready. One that reads on may lead to another check meanwhile."""
        if not self._clients:
            return
        held = self._journal.held if self._waits_for_backups else NEVER
        for client in list(self._clients):
            if client not in self._clients:
                continue
            session = self._sessions[client]
            for name in list(session.unready):
                number = session.unready.get(name, 0)
                if 0 < number <= held and self._table.is_whole(session.subscriptions[name]):
                    del session.unready[name]
                    if name in self._readings.of(client):
                        self._readings.is_whole(session, name)
                    else:
                        whole_at = self._journal.clock.last
                        self._send(client, Cut(session.attempt, name, {}, is_whole=True, began=whole_at))
                        self._readings.go_on(client)
            if not session.unready:
                self._clients.pop(client, None)

    def all_known(self) -> None:
        """Every stable advertisement is known now: subscriptions that came before know what they have to wait for."""
        for client in list(self._clients):
            session = self._sessions[client]
            for name in session.unready:
                self.wait_for(session, name)
            self._secure(session)
