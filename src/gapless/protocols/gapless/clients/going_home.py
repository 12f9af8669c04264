"""Sessions that go back to the broker at which their clients began them, when that one has returned."""

from collections.abc import Callable
from typing import Any

import msgspec

from gapless.protocols.gapless.client_messages import Gone
from gapless.protocols.gapless.clients.session_state import Turn
from gapless.protocols.gapless.clients.sessions import Session
from gapless.protocols.gapless.messages import SessionRecord

__all__ = ["GoingHome"]

KEPT_STEP = 3
"""One more than an heir adds to what it is told, which is one more than what was held."""


class GoingHome:
    """Those of one broker's sessions that began elsewhere."""

    def __init__(
        self,
        sessions: dict[str, Session],
        send: Callable[[str, Any], None],
        secure: Callable[[Session], None],
        go_on: Callable[[Session], None],
    ) -> None:
        self._sessions = sessions
        self._send = send
        self._secure = secure
        self._go_on = go_on

    def give_back(self, broker: str) -> dict[str, SessionRecord]:
        """The sessions that clients began at a broker that returns, as that one will hold them.

        They stand still here until it has them, or until the hand-over comes to nothing (`keep_leaving`). Nothing is
        delivered meanwhile, either. Its smallest story: an event comes after the contribution was sent, and its client
        answers it at the broker that it has gone back to, before the event has come there.
        """
        records = {}
        for session in self._sessions.values():
            if session.place == broker and session.can_leave:
                session.turn(Turn.STANDS_STILL)
                records[session.client] = msgspec.structs.replace(session.record(), epoch=session.epoch + 1)
        return records

    def belongs_to(self, broker: str, *, is_there: bool = False) -> bool:
        """Whether a session is here that was begun at that broker; and, if asked for, whether its client is there."""
        return any(
            session.place == broker and not (is_there and session.is_away) for session in self._sessions.values()
        )

    def prepare_leaving(self, broker: str) -> bool:
        """Let the sessions that belong to that broker stand still; tell whether all of them could leave now."""
        waiting = False
        for session in self._sessions.values():
            if session.place == broker and not session.is_away:
                session.turn(Turn.STANDS_STILL)
                waiting = waiting or not session.can_leave
        return not waiting

    def keep_leaving(self) -> None:
        """The hand-over came to nothing here: the sessions that were about to leave go on.

        Others may have completed it. What is here has to count as newer then than what was told, and than what its heir
        made of that. Its smallest story: b0 tells a session that is to go back to b3 and drops the hand-over, b4
        completes it. b3 dies. The session at b0 has changed since, but b4 brings what was told, as if it were newer.
        Clients that were ignored meanwhile say everything again when they attach.
        """
        for session in [session for session in self._sessions.values() if session.is_leaving]:
            session.turn(Turn.GOES_ON)
            session.epoch += KEPT_STEP
            self._secure(session)
            if session.is_deaf:
                self._send(session.client, Gone(session.attempt))
            else:
                self._go_on(session)
