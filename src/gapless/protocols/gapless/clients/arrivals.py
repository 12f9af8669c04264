"""What a client is told that wants to begin or resume its session here: to come in, to go elsewhere, or to wait.

A session is where its client was answered last, or with the heir of that broker. A client that has none is invited. One
whose session nobody holds any more learns that it has expired; if it was lost with more than f brokers, it may bring
its subscriptions and go on.
"""

from collections.abc import Mapping
from typing import Protocol

from gapless.protocols.gapless.client_messages import Attach, Expired, Invite, NotYet, Redirect
from gapless.protocols.gapless.clients.sessions import Session
from gapless.protocols.gapless.clients.unaccounted import Unaccounted
from gapless.protocols.gapless.epochs import attempt_of
from gapless.protocols.gapless.lives import Home, broker_of
from gapless.protocols.gapless.messages import PutOff
from gapless.protocols.gapless.options import GaplessOptions
from gapless.protocols.gapless.parting import Parting
from gapless.protocols.gapless.routing.routing_table import RoutingTable
from gapless.protocols.parts.clock import Clock
from gapless.protocols.parts.forgetting import forget_oldest

__all__ = ["Arrivals", "Homes"]

EXPIRED_MAX = 10_000
PUT_OFF_MAX = 1_000
PUT_OFF_US = 10_000_000
"""Who was told to come again, and did not for so long, is elsewhere."""
REVIVED = 2
"""A session that nobody knows was lost, and did not expire, if its client was served within the time that expiring
takes, divided by this. (A session that is inherited again and again expires sooner.)"""


class Homes(Protocol):
    """Who knows which life holds whose session."""

    def find_home(self, client: str, home: Home) -> Home | None:
        """The life that holds the client's session, or may begin one, if that is known."""
        ...

    def find_elsewhere(self, client: str) -> Home | None:
        """The life that was seen to hold the client's session, though this one should."""
        ...

    def was_divided(self, home: Home) -> bool:
        """Whether this broker took part when the clients of that life were divided."""
        ...

    def lost_at(self, home: Home) -> int:
        """The position that everything had reached while that life was there, as far as is known."""
        ...

    def agreed(self, home: Home, position: int) -> int:
        """Of a position that a life told its clients: what it means the same by as this one."""
        ...

    @property
    def parted(self) -> Parting:
        """Between which positions halves of the network had last gone on without each other."""
        ...

    @property
    def gone(self) -> Mapping[str, None]:
        """The publishers whose sessions hand-overs found to be lost, or on disks that may be old."""
        ...

    def lose(self, client: str, first: int, last: int) -> None:
        """These numbers of what a client published are lost. It is told when it comes."""
        ...

    def tell_put_off(self, message: PutOff) -> None:
        """Tell those around that a client waits."""

    def tell_lost(self, client: str, last: int) -> list[tuple[int, int]]:
        """What the client had published and is known to be lost. It is told once."""
        ...


class Arrivals:
    """At one broker."""

    def __init__(
        self,
        home: Home,
        options: GaplessOptions,
        sessions: Mapping[str, Session],
        table: RoutingTable,
        homes: Homes,
        unaccounted: Unaccounted,
        clock: Clock,
    ) -> None:
        self._home = home
        self._session_us = options.session_s * 1e6
        self._sessions = sessions
        self._table = table
        self._homes = homes
        self._unaccounted = unaccounted
        self._clock = clock
        self._expired: dict[str, int] = {}
        """By client: the attempt in which it had the session that has expired. It is told until it has heard it."""
        self._put_off: dict[str, tuple[int, str]] = {}
        """By client that was told to come again: when, and why."""

    def answer(self, client: str, message: Attach, now: int) -> Invite | Redirect | NotYet | Expired | None:
        """What the client is told; None if it can come in."""
        self._put_off.pop(client, None)
        session = self._sessions.get(client)
        held, why = 0, ""
        if session is not None:
            held = session.held
            if session.is_still or self._is_outdated(session, message):
                why = "its session is about to move"
        elif not message.home:
            self._expired.pop(client, None)
            return Invite(message.attempt, self._home)
        else:
            where = self._homes.find_home(client, Home(message.home))
            if self._expired.get(client, -1) >= message.heard:
                return Expired(message.attempt)
            if where == self._home != message.home:
                where = self._homes.find_elsewhere(client) or where
            if where not in (None, self._home):
                return Redirect(message.attempt, broker_of(where))
            if where is None:
                why = f"nobody has taken over yet from {broker_of(Home(message.home))}, where it was last"
            elif self._may_be_inherited(message):
                why = "a hand-over may bring its session"
        if not why and self._is_elsewhere(session, message):
            why = "another broker has a session of it"
        is_over = session is None and self._has_expired(message)
        if not why and not is_over and self._clock.is_behind(message.clock):
            why = "it tells of a timestamp that no broker has given, as far as is known here"
        if not why and self._unaccounted.may_be_found(client, held, message, now):
            why = "it knows of something that nobody here does, and that may still come"
        if why:
            self._put_off[client] = now, why
            forget_oldest(self._put_off, PUT_OFF_MAX)
            return NotYet(message.attempt)
        return Expired(message.attempt) if is_over else None

    def put_off(self, now: int) -> dict[str, str]:
        """The clients that were told to come again a moment ago, and why."""
        return {client: why for client, (then, why) in self._put_off.items() if now - then < PUT_OFF_US}

    def _may_be_inherited(self, message: Attach) -> bool:
        """Whether a hand-over that is under way may bring the session, which was lost: then two would hold it.

        The smallest story: b13 dies with p's session and all who know of it. The others go round it, and p may begin
        anew at b3. b13 comes back with its disk, and b3 has told what it holds, when p comes. b3 and b13 would both
        take p's advertisement for their own, and each wait for the others to answer it.
        """
        return message.home != self._home and not self._table.is_intact

    def _is_outdated(self, session: Session, message: Attach) -> bool:
        """Whether another broker has answered the client since this one did.

        Then this broker was out, and does not know it yet. Its smallest story: b1 is taken for dead, p goes to b0 and
        publishes 1, which is confirmed there. b1 wakes up, p finds it before its neighbours do, and b1 would tell that
        1 is lost: it never had it.

        If that other one is out, and this one has taken over from it, there is no newer session. The smallest story: b0
        and b1 go on without each other, c goes from b0 to b1, and b1 gives in when they meet. Nor if its clients were
        divided, and this broker took part, and still has this one. Its smallest story: b3 stands still, b1 takes it for
        dead, and dies as soon as it has answered c, without memory. b3 goes on, and nobody else has noticed anything.
        """
        if session.is_orphan or message.home == self._home or message.heard <= session.attempt:
            return False
        if self._homes.was_divided(Home(message.home)):
            return False
        return self._homes.find_home(session.client, Home(message.home)) != self._home

    def _is_elsewhere(self, session: Session | None, message: Attach) -> bool:
        """Whether what the client subscribed to is known from another broker: that one has to give up its session."""
        ours = () if session is None else session.subscriptions
        brought = [progress.subscription for progress in message.brought if progress.subscription not in ours]
        known = self._table.subscriptions
        return any(name in known and known[name].origin is not None for name in brought)

    def _has_expired(self, message: Attach) -> bool:
        has_lost = any(item.is_live and (item.got or item.is_whole) for item in message.brought)
        return has_lost and not self._may_revive(message)

    def _may_revive(self, message: Attach) -> bool:
        """Whether a session that nobody knows can go on. It can if it was lost with more than f brokers, and did not
        expire: then its client would have been away for long.

        It goes on even if a subscription of it has to end (`desk`). The smallest story: p's events were told to be
        safe, and are lost with its session. If p were sent away to begin anew, nobody would be told of them.
        """
        return REVIVED * message.silent_us < self._session_us and message.home != self._home

    def expire(self, session: Session) -> None:
        """The session is over; should its client come back, it is told."""
        self._expired[session.client] = attempt_of(session.epoch)
        forget_oldest(self._expired, EXPIRED_MAX)
