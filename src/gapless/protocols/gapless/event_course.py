"""The way of events through a broker.

An event is processed once (numbers of a publisher only grow), logged, sent over every link behind which someone wants
it, and delivered here. On a tree with FIFO links that alone keeps effects behind their causes; everything else is
there to make it true while subscriptions, publishers and brokers come and go.
"""

from bisect import bisect_right
from collections.abc import Callable

from gapless.events import Event, Events
from gapless.protocols.gapless.clients.dispatch import dispatch
from gapless.protocols.gapless.clients.outbox import Outgoing
from gapless.protocols.gapless.clients.sessions import Session
from gapless.protocols.gapless.messages import Cuts, Publication, TreeBody
from gapless.protocols.gapless.recovery.handovers import Handovers
from gapless.protocols.gapless.recovery.state import BrokerState
from gapless.protocols.gapless.retention.event_log import Logged
from gapless.protocols.gapless.routing.records import Link

__all__ = ["LOCAL", "EventCourse"]

LOCAL = ""
"""Where events come from that this broker admits."""


class EventCourse:
    """One life's part in it."""

    def __init__(self, state: BrokerState, handovers: Handovers, send_tree: Callable[[Link, TreeBody], None]) -> None:
        self._table = state.table
        self._log = state.log
        self._journal = state.journal
        self._clients = state.clients
        self._estates = state.estates
        self._handovers = handovers
        self._send_tree = send_tree
        self._inheriting: dict[str, Session] = {}

    def process(
        self, events: Events, via: str, origin: Link | None, number: int = 0, after: Cuts | None = None
    ) -> None:
        """A run comes from a side of the broker: events of one publisher, in order.

        Those that it admits have numbers from `number` on.
        """
        fresh = self._log_fresh(events, via, number, after) if events else events
        if not fresh:
            return
        dispatched = dispatch(fresh, self._table, self._clients.sessions, origin)
        if dispatched.has_lost and via != LOCAL:
            self._estates.bury(fresh)
        for link, passing in dispatched.onward.items():
            if self._table.links.get(link.peer) is link:
                self._send_tree(link, Publication(passing))
        self._handovers.note(fresh, via)
        for client, deliveries in dispatched.local.items():
            if deliveries and client not in self._inheriting:
                self._clients.deliver(client, deliveries)

    def _log_fresh(self, events: Events, via: str, number: int, after: Cuts | None) -> Events:
        """Log those that this broker has not processed yet: the last of them, for numbers of a publisher only grow."""
        passed = self._table.passed
        first = events[0]
        publisher = first.publisher
        before = passed.get(publisher, 0)
        known = 0 if first.seq > before else bisect_right(events, before, key=lambda event: event.seq)
        if known and number:
            lost = [own for own in range(number, number + known) if not self._log.has_number(own)]
            self._journal.forget([(own, own) for own in lost])
        fresh = events[known:] if known else events
        if fresh:
            passed[publisher] = last = fresh[-1].seq
            self._log.append(Logged(fresh, via, number and number + known, after))
            self._journal.processed(publisher, last)
        return fresh

    def process_merged(
        self, event: Event, via: str, after: Cuts | None, inherited: dict[str, Session], number: int
    ) -> None:
        """An event of a merged log; sessions inherited here collect it even if this broker knew it already."""
        if event.seq > self._table.passed.get(event.publisher, 0):
            self._inheriting = inherited
            self.process([event], via, None, number, after)
            self._inheriting = {}
        if not inherited:
            return
        found: dict[str, list[str]] = {}
        for subscription in self._table.match(event):
            session = inherited.get(subscription.client)
            if session is not None and subscription.name in session.subscriptions:
                found.setdefault(subscription.client, []).append(subscription.name)
        for client, names in found.items():
            if inherited[client].inferred:
                inherited[client].pasts[event.publisher, event.seq] = after or {}
            self._clients.deliver(client, [Outgoing([event], names)])

    def forget(self, done: int) -> None:
        """What was processed before that place in the log has reached everyone."""
        self._journal.forget(self._log.forget(done))
        self._journal.prune(self._log.publishers)
        self._table.forget_silent(lambda: self._log.publishers() | self._clients.sessions.keys())
        if not self._log and self._table.has_former:
            for session in self._clients.sessions.values():
                session.keep_former_cuts()
            self._table.forget_former()
        self._clients.publications.go_on()
