"""What clients publish, until it is admitted: it waits in order, for room, and for the backups.

What a client took back in between (`ClientUnadvertise`) waits in the same line: it counts after what was published
before it, and before what follows.
"""

from collections import deque
from collections.abc import Callable
from typing import Any

from gapless.events import Event, Events
from gapless.protocols.gapless.client_messages import Safe
from gapless.protocols.gapless.clients.sessions import Session
from gapless.protocols.gapless.options import GaplessOptions
from gapless.protocols.gapless.retention.journal import Journal
from gapless.protocols.gapless.routing.routing_table import RoutingTable
from gapless.protocols.gapless.tombstones import tombstone
from gapless.protocols.parts.latencies import Latencies

__all__ = ["Publications"]

ADMITTED_MAX = 512
"""Publications that are admitted at once. What they weigh is known only afterwards, so they may exceed the window."""
BEHIND = 4
"""How many windows are open to clients that everybody waits for."""


class Publications:
    """Those of all clients of one broker."""

    def __init__(
        self,
        options: GaplessOptions,
        sessions: dict[str, Session],
        table: RoutingTable,
        journal: Journal,
        send: Callable[[str, Any], None],
        process: Callable[[Events, int], None],
        withdraw: Callable[[Session, str], None],
        held: Callable[[], None],
        lose: Callable[[str, int, int], None],
    ) -> None:
        """`lose` is told of events of others that are lost: the publisher, the first and the last number."""
        self.published = 0
        self.confirming = Latencies()
        """From when publications come until they are safe."""
        self._window = options.window
        self._sessions = sessions
        self._table = table
        self._journal = journal
        self._send = send
        self._process = process
        self._withdraw = withdraw
        self._held = held
        self._lose = lose
        self._admissions: deque[tuple[int, Session | None, Events]] = deque()
        self._stuck: dict[str, None] = {}

    def queue(self, session: Session, events: Events, now: int) -> None:
        """The client published these, or says so again."""
        known = session.queued + 1 - events[0].seq if events else 0
        if not 0 <= known < len(events):
            return
        session.inbox.put(events[known:] if known else events)
        self.published += len(events) - known
        session.queued = events[-1].seq
        if session.timed_publication is None:
            session.timed_publication = (session.queued, now)

    def advance(self, session: Session) -> None:
        """Carry out what the client did, in order, as far as nothing holds it back.

        Before all that, there are tombstones for what it was delivered and is lost.
        """
        while (session.inbox or session.unburied) and not session.is_still:
            taken_back = session.inbox.taken_back
            if session.unburied:
                if not self._room(session):
                    self._stuck[session.client] = None
                    return
                self._bury(session)
            elif taken_back is not None:
                if session.in_flight:
                    return
                self._withdraw(session, taken_back.advertisement)
                session.inbox.pop_taken_back()
            else:
                room = self._room(session)
                if not room:
                    self._stuck[session.client] = None
                    return
                events = session.take_publications(room)
                if not events:
                    return
                events = self._journal.stamp(events)
                session.in_flight += len(events)
                self._admissions.append((self._journal.admit(events), session, events))
            self._held()

    def _bury(self, session: Session) -> None:
        """Admit tombstones for what the client was delivered and nobody knows of.

        The smallest story: x has got p:1, which was safe. All who held p:1 die. x and p come here, x publishes x:1, and
        c gets that. If p:1 were told to be lost only when p is let in, c would have an effect without its cause.
        """
        unburied, session.unburied = session.unburied, {}
        for publisher, last in sorted(unburied.items()):
            first = max(self._table.passed.get(publisher, 0), last - self._window) + 1
            if first <= last:
                is_unknown = not self._table.advertises(publisher)
                lost = [tombstone(publisher, seq, is_anybodys=is_unknown) for seq in range(first, last + 1)]
                self._lose(publisher, first, last)
                events = self._journal.stamp(lost)
                self._admissions.append((self._journal.admit(events), None, events))

    def _room(self, session: Session) -> int:
        """How many more of its publications may go out.

        There is none while a part of the tree is handed over, if the client was another broker's before: what it
        published there may be in the logs, and comes first.
        A client that has not taken all its deliveries may go beyond the window. Everybody waits for it, and it may
        itself wait for what it publishes, as one that answers each event before it takes the next.
        """
        if session.client in self._table.moved and not self._table.is_intact:
            return 0
        window = self._window * (BEHIND if session.released < session.owed else 1)
        return min(self._journal.room(window), ADMITTED_MAX)

    def hold_back(self, session: Session, event: Event, number: int) -> None:
        """An event of the client is in the journal already, and was processed: it waits for the backups alone."""
        session.in_flight += 1
        self._admissions.append((number, session, [event]))

    def admit(self, now: int) -> None:
        """The backups hold more: admit what waited for it."""
        held = self._journal.held
        while self._admissions and self._admissions[0][0] <= held:
            number, session, events = self._admissions.popleft()
            if session is None:
                self._process(events, number - len(events) + 1)
                continue
            session.in_flight -= len(events)
            session.admitted = max(session.admitted, events[-1].seq)
            timed = session.timed_publication
            if timed is not None and timed[0] <= session.admitted:
                session.timed_publication = None
                self.confirming.note(now - timed[1])
            self.confirm(session)
            self._process(events, number - len(events) + 1)
            if session.inbox.taken_back is not None:
                self.advance(session)

    def drop(self, session: Session) -> None:
        """What the client published, and is not admitted yet, it will publish again."""
        self._admissions = deque(
            (number, None, []) if owner is session else (number, owner, events)
            for number, owner, events in self._admissions
        )
        session.in_flight = 0
        session.inbox.clear()
        session.timed_publication = None

    def confirm(self, session: Session) -> None:
        """Tell the client up to where its publications are safe."""
        if not session.is_orphan:
            self._send(session.client, Safe(session.attempt, session.admitted))

    def admit_lagging_clients(self) -> None:
        """Go on with those that had no room and lie behind by now."""
        for client in list(self._stuck):
            session = self._sessions.get(client)
            if session is not None and session.released < session.owed:
                del self._stuck[client]
                self.advance(session)

    def go_on(self) -> None:
        """The journal has room again, or nothing is handed over any more: go on with those that had to wait."""
        stuck, self._stuck = self._stuck, {}
        for client in stuck:
            if client in self._sessions:
                self.advance(self._sessions[client])
