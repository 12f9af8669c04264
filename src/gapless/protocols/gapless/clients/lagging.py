"""A client that lies behind is served out of history, and holds back nobody.

A wave waits until clients have taken what they were delivered before it came by, and all publishers wait with it.
A client that has kept waves waiting for `lag_ms`, because it is slow or away, *falls behind*:

1. Its record says so, with a position up to which the client has taken everything. That is the last position that has
   reached everyone: waves have waited for this client, too.
2. Once the backups hold the record, what was not sent to the client is dropped, and nobody waits for what was.
3. Its subscriptions are read again from that position on, all in one stream (`readings`), and become live again when
   they have caught up. What the client has got already comes again, and the client leaves it out.

The record says so until the client has taken all that came out of history. An heir that finds such a record reads from
its position on, unless the client itself knows a later one. The record comes first, because the client may not have
heard that it fell behind. The smallest story: the broker forgets what was not sent, tells the client, and dies. The
client has not heard it. The heir finds nothing in the logs, and believes that nothing was published.
"""

from collections.abc import Callable

from gapless.protocol import SetTimer
from gapless.protocols.gapless.client_messages import Behind, Reached
from gapless.protocols.gapless.clients.owing import Owing
from gapless.protocols.gapless.clients.readings import Readings
from gapless.protocols.gapless.clients.session_state import Turn
from gapless.protocols.gapless.clients.sessions import Session
from gapless.protocols.gapless.options import GaplessOptions

__all__ = ["LAG", "Lagging"]

LAG = "lag"
"""The key of the timer."""
AT_ONCE = 100
"""So many fall behind in a turn."""


class Lagging:
    """Watches over the sessions of one broker."""

    def __init__(
        self,
        options: GaplessOptions,
        owing: Owing,
        readings: Readings,
        secure: Callable[[Session], None],
        set_timer: Callable[[SetTimer], None],
    ) -> None:
        self.lag_ms = options.lag_ms
        """For how long everyone waits for a client; for operators."""
        self._lag_us = int(options.lag_ms * 1000)
        self._owing = owing
        self._readings = readings
        self._secure = secure
        self._set_timer = set_timer
        self._is_watching = False

    def watch(self, now: int) -> None:
        """A wave has come by: note who has not taken what it waits for."""
        owing = [session for session in self._owing.find().values() if self._owes(session, now)]
        if owing and not self._is_watching:
            self._is_watching = True
            self._set_timer(SetTimer(LAG, self._lag_us))

    def _owes(self, session: Session, now: int) -> bool:
        if session.released >= session.owed:
            session.owes_since = -1
            return False
        if session.owes_since < 0:
            session.owes_since = now
            session.owes_until = session.owed
        elif session.released >= session.owes_until:
            session.owes_since, session.owes_until = now, session.owed
        return True

    def check(self, now: int, reached: int) -> None:
        """Let those fall behind who have owed something for too long; everything up to `reached` they have."""
        self._is_watching = False
        fallen = 0
        for session in self._owing.find().values():
            if self._owes(session, now) and now - session.owes_since >= self._lag_us and session.can_fall_behind:
                fallen += 1
                if fallen > AT_ONCE:
                    self._is_watching = True
                    self._set_timer(SetTimer(LAG, 0))
                    return
                session.owes_since = -1
                session.lag(Turn.OVERDUE, reached)
                if session.is_falling:
                    self._secure(session)
                else:
                    self._fall(session, reached)
        self.watch(now)

    def secured(self, session: Session) -> None:
        """The backups know: the client is served out of history."""
        session.lag(Turn.SECURED)
        self._fall(session, session.behind)

    def _fall(self, session: Session, position: int) -> None:
        """Keep nothing for the client that is in the history, and go on there from a position."""
        session.fall_behind()
        if not session.is_orphan:
            names = [name for name in session.subscriptions if name not in self._readings.of(session.client)]
            if names or self._readings.late(session.client):
                self.catch_up(session, names, session.come_to(names, position))

    def catch_up(self, session: Session, names: list[str], position: int, lacks: int | None = None) -> None:
        """Read these subscriptions again from a position on, together with those that are read so already.

        If the client `lacks` something from an earlier position on that it may not read, it is told so.
        """
        names, position = self._readings.widen(session.client, names, position)
        session.note(Behind(session.attempt, position, names))
        if lacks is not None and lacks < position:
            session.note(Reached(session.attempt, "", position, False, [], (lacks, position)))
        self._readings.catch_up(session, names, position)

    def resume(self, session: Session, names: list[str], position: int, lacks: int) -> None:
        """The client has come back. It lacks what came after one position, and may read again from another one on."""
        if position >= 0:
            session.lag(Turn.LACKS, position)
        self.catch_up(session, names, position, lacks)

    def release(self, session: Session) -> None:
        """The client has taken something, perhaps all that came out of history; or has ended what it read there.

        The smallest story of the second: c falls behind with s, ends s, and begins t. Before t has its cut of p, c
        comes again. If it still lay behind, t would be read out of history, with all that p ever published.
        """
        if session.is_live or session.is_falling or session.has_history or self._readings.of(session.client):
            return
        session.lag(Turn.CAUGHT_UP)
        self._secure(session)
