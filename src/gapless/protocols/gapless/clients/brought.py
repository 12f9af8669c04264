"""What a client subscribes to that resumes its session, sorted out by what is known of it here.

Those that read history go on with that. Of the others, one that is not known here begins afresh, is *revived* (its
session was lost when its cut was whole), or is *broken*: see below.
"""

from collections.abc import Container

from gapless.protocols.gapless.client_messages import Attach, SubscriptionProgress
from gapless.protocols.gapless.clients.arrivals import Homes
from gapless.protocols.gapless.clients.readings import Readings
from gapless.protocols.gapless.clients.sessions import Session
from gapless.protocols.gapless.lives import Home
from gapless.protocols.gapless.retention.milestones import TRANSIT_US

__all__ = ["Brought"]


class Brought:
    """By name, with how far each has come as its client says."""

    def __init__(self, session: Session, message: Attach) -> None:
        self._session = session
        self._message = message
        known = session.subscriptions
        self.read = {item.subscription: item for item in message.brought if not item.is_live}
        self.live = {item.subscription: item for item in message.brought if item.is_live}
        self.broken = [name for name, progress in self.live.items() if name not in known and _is_broken(progress)]
        for name in self.broken:
            del self.live[name]
        self.revived = {name: None for name, progress in self.live.items() if name not in known and progress.is_whole}
        self.fresh = {name: None for name in self.live if name not in known and name not in self.revived}
        self.voided = dict.fromkeys(session.find_void(self.live, message.heard))

    def find_late(
        self, readings: Readings, homes: Homes, known_late: Container[str], now: int
    ) -> tuple[list[str], int]:
        """Those that have to be read again out of history, and from which position on."""
        session, home = self._session, Home(self._message.home)
        untold = {name for name in session.untold if name in self.live and not self.live[name].is_whole}
        begins = self.fresh.keys() | self.revived.keys() | untold
        late, position = session.find_late(self.live.values(), known_late, begins, readings.reached)
        if late and not session.is_live:
            position = max(homes.agreed(home, position), min(position, session.behind))
        if not self.revived:
            return late, position
        # Waves do not wait for a lost session: its client may lack what came after the last position before that.
        # If the session was found without them, it may have fallen behind later.
        behind = [self.live[name].since for name in self.revived if self.live[name].is_behind]
        heard = readings.reached_before(now - self._message.silent_us - TRANSIT_US)
        if heard is not None:
            behind.append(heard)
        if not session.is_live:
            behind.append(session.behind)
        return [*late, *self.revived], min([homes.lost_at(home), *behind])

    def bound(self, readings: Readings, position: int) -> int:
        """The position from which on the client may read again, if it may not read history.

        A session that is known here has got everything up to the position in its record. Of a subscription that is not
        known here, only the client says when it began, so it goes on from now.
        """
        session = self._session
        if readings.may_read(session.client):
            return position
        return max(position, readings.reached if session.is_live or self.revived else session.behind)


def _is_broken(progress: SubscriptionProgress) -> bool:
    """Whether a subscription was lost with more than f brokers when it had delivered something, and its cut was not
    whole: it ends where it is, for nobody can tell any more where it begins.

    The smallest story: s has got p:1, and waits for its cut of q. All who know of it die. Its client comes to a
    broker where q has answered p:2. If s were entered there, it would read p:2 out of history, and not the answer.
    """
    return bool(progress.got) and not progress.is_whole
