"""Who has not taken all that brokers wait for: a wave asks these, however many clients there are."""

from collections.abc import Mapping

from gapless.protocols.gapless.clients.sessions import Session

__all__ = ["Owing"]


class Owing:
    """Those of one broker."""

    def __init__(self, sessions: Mapping[str, Session]) -> None:
        self.noted: dict[str, None] = {}
        """Clients that got something since they were last found to owe nothing; sessions note themselves here."""
        self._sessions = sessions

    def find(self) -> dict[str, Session]:
        """Their sessions, by client."""
        found = {}
        for client in list(self.noted):
            session = self._sessions.get(client)
            if session is not None and session.released < session.owed:
                found[client] = session
            else:
                del self.noted[client]
        return found
