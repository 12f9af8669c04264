"""Sessions that go back to the broker at which their clients began them, when that one has returned."""

from collections.abc import Callable
from typing import Any

import msgspec

from gapless.protocols.gapless.client_messages import Gone
from gapless.protocols.gapless.clients.session_state import Turn
from gapless.protocols.gapless.clients.sessions import Session
from gapless.protocols.gapless.epochs import inherited, kept
from gapless.protocols.gapless.messages import SessionRecord

__all__ = ["GoingHome"]


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

        They stand still here until that broker has them, or until this one drops the hand-over (`go_on_here`). Nothing
        is delivered meanwhile. Its smallest story: an event comes after the contribution was sent, and is delivered.
        The client goes home, and publishes an answer there before the event itself has come there.
        """
        records = {}
        for session in self._sessions.values():
            if session.place == broker and session.can_go_home:
                session.turn(Turn.STANDS_STILL)
                records[session.client] = msgspec.structs.replace(session.record(), epoch=inherited(session.epoch))
        return records

    def belongs_to(self, broker: str, *, is_there: bool = False) -> bool:
        """Whether a session is here that was begun at that broker; and, if asked for, whether its client is there."""
        return any(
            session.place == broker and not (is_there and session.is_away) for session in self._sessions.values()
        )

    def hold_still(self, broker: str) -> bool:
        """Let the sessions that belong to that broker stand still; tell whether all of them could leave now."""
        waiting = False
        for session in self._sessions.values():
            if session.place == broker and not session.is_away:
                session.turn(Turn.STANDS_STILL)
                waiting = waiting or not session.can_go_home
        return not waiting

    def go_on_here(self) -> None:
        """This broker has dropped the hand-over: the sessions that were about to go home go on here.

        Other members may have completed it. So a session that stayed here has to count as newer than what this broker
        told of it, and than what an heir made of that. Its smallest story: b0 tells a session that is to go back to b3,
        and drops the hand-over. b4 completes it. b3 dies. The session at b0 has changed since, but b4 brings the one
        that was told, as if it were newer.
        Clients that were ignored meanwhile say everything again when they attach.
        """
        for session in [session for session in self._sessions.values() if session.is_still]:
            session.turn(Turn.GOES_ON)
            session.epoch = kept(session.epoch)
            self._secure(session)
            if session.is_deaf:
                self._send(session.client, Gone(session.attempt))
            else:
                self._go_on(session)
