"""The broker's dealings with its clients: attaching, their calls, admission, deliveries.

See `sessions` for what a session promises. This is the desk that carries it out: it turns clients' calls into
changes of the routing table and the journal, and what they cause into messages to clients.
"""

from collections.abc import Callable
from typing import Any

import msgspec

from gapless.events import Event, Events
from gapless.protocol import SetTimer
from gapless.protocols.gapless.client_messages import (
    Attach,
    Attached,
    ClientAdvertise,
    ClientGot,
    ClientPublish,
    ClientSubscribe,
    ClientUnadvertise,
    ClientUnsubscribe,
    Cut,
    Gone,
    NotYet,
    Parted,
    Redirect,
    Stable,
    Unsubscribed,
)
from gapless.protocols.gapless.clients.arrivals import Arrivals, Homes
from gapless.protocols.gapless.clients.brought import Brought
from gapless.protocols.gapless.clients.claims import Claims
from gapless.protocols.gapless.clients.going_home import GoingHome
from gapless.protocols.gapless.clients.lagging import Lagging
from gapless.protocols.gapless.clients.outbox import Outgoing
from gapless.protocols.gapless.clients.owing import Owing
from gapless.protocols.gapless.clients.publications import Publications
from gapless.protocols.gapless.clients.readiness import Readiness
from gapless.protocols.gapless.clients.readings import Readings, Sources
from gapless.protocols.gapless.clients.session_state import Turn
from gapless.protocols.gapless.clients.sessions import Session
from gapless.protocols.gapless.clients.unaccounted import Unaccounted
from gapless.protocols.gapless.epochs import epoch_of, inherited, times_inherited
from gapless.protocols.gapless.lives import Home, broker_of, is_life
from gapless.protocols.gapless.messages import Cuts, PutOff, SessionRecord
from gapless.protocols.gapless.options import GaplessOptions
from gapless.protocols.gapless.parting import TOGETHER
from gapless.protocols.gapless.pieces import Pieces
from gapless.protocols.gapless.retention.journal import Journal
from gapless.protocols.gapless.routing.records import Advertisement, Subscription
from gapless.protocols.gapless.routing.routing_table import RoutingTable
from gapless.protocols.gapless.tombstones import tombstone
from gapless.protocols.parts.latencies import Latencies

__all__ = ["Desk"]

NEVER = 1 << 62


class Desk:
    """All sessions of one broker."""

    def __init__(
        self,
        home: Home,
        options: GaplessOptions,
        table: RoutingTable,
        journal: Journal,
        homes: Homes,
        sources: Sources,
        contacts: tuple[str, ...],
        *,
        send: Callable[[str, Any], None],
        set_timer: Callable[[SetTimer], None],
        process: Callable[[Events, int], None],
        done: Callable[[str], int] = lambda client: 0,
    ) -> None:
        """`done` tells up to which number what a client published has reached everyone, as far as is known here."""
        self.sessions: dict[str, Session] = {}
        self.owing = Owing(self.sessions)
        self.is_serving = True
        """Whether this broker can do anything for clients."""
        self.now = 0
        """The clock, in microseconds; for measures only."""
        self.delivered = 0
        self.taking = Latencies()
        """From when deliveries are due until the application has taken them."""
        self._home = home
        self._broker = broker_of(home)
        self._options = options
        self._table = table
        self._journal = journal
        self._send = send
        self._set_timer = set_timer
        self._homes = homes
        self._contacts = list(contacts)
        self.done = done
        self._claims = Claims(table, options.client_window)
        self._unaccounted = Unaccounted(home, options, self.sessions, table, done, homes.gone, homes.tell_put_off)
        self._arrivals = Arrivals(home, options, self.sessions, table, homes, self._unaccounted, journal.clock)
        self.readings = Readings(sources, journal.clock, options.delivery_window, self, table.match, set_timer)
        self.readiness = Readiness(options, self.sessions, table, journal, self.readings, send, self.secure)
        self.home = GoingHome(self.sessions, send, self.secure, self._go_on)
        self.lagging = Lagging(options, self.owing, self.readings, self.secure, set_timer)
        self.publications = Publications(
            options, self.sessions, table, journal, send, process, self._withdraw, lambda: self.held(), homes.lose
        )
        self.errand: Pieces[None] | None = None
        """What is still to be done of the last input, and may take long: before any other is taken."""
        self._insecure: dict[str, None] = {}
        self._gathered: dict[str, None] | None = None

    # ---- attaching ----------------------------------------------------------------------------------------

    def attach(self, client: str, message: Attach) -> None:
        """A client wants to begin or resume its session here."""
        if not self.is_serving:
            self._send(client, NotYet(message.attempt))
            return
        self._claims.check_attach(client, message)
        session = self.sessions.get(client)
        if session is not None and message.attempt <= session.attempt:
            return
        answer = self._arrivals.answer(client, message, self.now)
        if answer is not None:
            self._send(client, answer)
            return
        self._claims.check_filters(client, message)
        session = session or self._begin(client, message)
        self._claims.check_resume(session, message)
        self.errand = self._resume(session, message)

    def is_sent_on(self, client: str, message: Attach) -> bool:
        """Whether a client is answered without a look at what it brings: invited, sent elsewhere, or asked to wait."""
        if client in self.sessions or not message.home:
            return client not in self.sessions
        return is_life(message.home) and self._homes.find_home(client, message.home) != self._home

    def put_off(self) -> dict[str, str]:
        """For operators: clients that want their session, and have to come again, and why."""
        return self._arrivals.put_off(self.now)

    def hear_put_off(self, message: PutOff) -> None:
        """A client waits at another broker."""
        if self._unaccounted.note(message, self.now):
            self._homes.tell_put_off(message)

    def _begin(self, client: str, message: Attach) -> Session:
        session = self.sessions[client] = Session(client, epoch_of(0), self.owing.noted)
        session.place = self._broker
        known = self._table.passed.get(client, 0)
        if message.home == self._home and client not in self._homes.gone:
            known = max(known, message.first - 1)
        else:
            # Also one that begins anew: p:1 was safe, and is lost with p's session. If p comes so late that it is told
            # that its session has expired, whoever reads history still has to hear that p:1 is lost.
            self._table.moved[client] = None
            known = max(known, min(self.done(client), message.first - 1))
        self._table.passed[client] = known
        return session

    def _resume(self, session: Session, message: Attach) -> Pieces[None]:
        known_late = self.readings.late(session.client)
        self.readings.drop(session.client)
        may_read = self.readings.may_read(session.client)
        if not may_read:
            bounded = [session.bound_cuts(progress) for progress in message.brought]
            message = msgspec.structs.replace(message, brought=bounded)
        brought = Brought(session, message)
        fresh, revived, voided = brought.fresh, brought.revived, brought.voided
        for name in [name for name in session.subscriptions if name not in brought.live and name not in brought.read]:
            self._end_subscription(session, name)
            yield 1
        for name, progress in brought.live.items() if session.is_orphan else ():
            if name in session.subscriptions and name not in voided:
                session.reconcile(progress)
                self._table.restore_cuts(session.subscriptions[name], progress.cuts)
        late, position = brought.find_late(self.readings, self._homes, known_late, self.now)
        session.revived.update(revived)
        passed = self._table.passed.get(session.client, 0)
        accounted = self._unaccounted.accounted(session.client, session.held, message)
        passed_on = self._unaccounted.passed_on(session.client, session.held, message)
        advertised = 0  # of a session that was not lost with its broker, others know what it advertised
        if self._unaccounted.may_be_gone(session.client):
            advertised = min((first for _, first in message.advertisements.values()), default=NEVER)
        tombstones = [
            tombstone(session.client, seq, is_anybodys=seq < advertised) for seq in range(passed_on + 1, message.first)
        ]
        session.unburied = self._unaccounted.lost(session.client, message)
        session.lose(passed_on + 1, message.first - 1, message.heard)
        last = message.publications[-1].seq if message.publications else message.first - 1
        session.lost = self._homes.tell_lost(session.client, last) + session.lost
        session.claim(message, voided, frozenset(late))
        session.begin_anew([*fresh, *voided], message.heard)
        session.told_lost = session.attempt
        self._send(
            session.client, Attached(message.attempt, self._home, [*fresh, *voided], self._contacts, session.lost)
        )
        if self._homes.parted != TOGETHER:
            self._send(session.client, Parted(message.attempt, *self._homes.parted))
        for name in brought.broken:
            self._send(session.client, Unsubscribed(message.attempt, name, {}))
        for name, progress in brought.live.items():
            if name not in fresh and name not in session.revived:
                held = {} if name in voided else progress.cuts
                cuts = session.cuts_missing(name, held)
                if cuts:
                    self._send(session.client, Cut(session.attempt, name, cuts))
                if not progress.is_whole:
                    self.readiness.wait_for(session, name)
                yield 1
        for name in session.advertisements:
            if name not in message.advertisements:
                session.inbox.take_back(ClientUnadvertise(message.attempt, name))
        for name, (text, first) in message.advertisements.items():
            if name in session.stable:
                self._send(session.client, Stable(message.attempt, name))
            elif name not in session.advertisements:
                # It may have been taken back here, when the client did not know yet that all under it is safe. Whoever
                # has subscribed since does not start with what was published before.
                yield from self._advertise(session, name, text, max(first, min(passed, accounted) + 1))
        self.gather()  # each cut would write the whole record, and they are fixed at once where publishers are here
        for name in (*fresh, *revived):
            self._subscribe(session, name, brought.live[name].filter)
            if name in revived and may_read:
                self._table.keep_former(session.subscriptions[name], brought.live[name].cuts)
            yield 1
        for other in self.gathered():
            self.secure(other)
        if late:
            self.lagging.resume(session, late, brought.bound(self.readings, position), position)
        session.brought = {name: progress.cuts for name, progress in brought.read.items()}
        for name, progress in brought.read.items():
            if name in session.subscriptions:
                self.readiness.wait_for(session, name)
            since = self._homes.agreed(Home(message.home), progress.since)
            self._read(session, name, progress.filter, since, progress.until)
        if tombstones:
            session.admitted, session.queued = max(session.admitted, passed_on), passed_on
            self.publications.queue(session, tombstones, self.now)
        else:
            session.admitted = max(session.admitted, message.first - 1, 0 if session.in_flight else passed)
        session.queued = max(session.queued, session.admitted, passed)
        self.publications.queue(session, message.publications, self.now)
        self.secure(session)
        self.publications.confirm(session)
        self.publications.advance(session)

    def inherit(self, record: SessionRecord) -> Session:
        """Take over the session of a client whose broker is excluded; its subscriptions are entered already."""
        replaced = self.sessions.get(record.client)
        if replaced is not None and not replaced.is_orphan:
            self._send(record.client, Gone(replaced.attempt))
        self.readings.drop(record.client)
        session = self.sessions[record.client] = Session(record.client, inherited(record.epoch), self.owing.noted)
        self.readiness.forget(record.client)
        session.admitted = session.queued = record.admitted
        session.place = record.place
        if record.behind >= 0:
            session.lag(Turn.LACKS, record.behind)
            session.revived = dict.fromkeys(record.revived)
        session.anew = dict(record.anew)
        session.lost = list(record.lost)
        if self._journal.is_on_disk:
            session.began = dict(record.began)
        self._table.moved[record.client] = None
        self._await(session.client)
        return session

    def hold_back(self, event: Event, number: int) -> None:
        """An event that an excluded broker had not quite admitted was processed with the merged log.

        Its publisher's client keeps it, and clients here do not see it, until the backups hold it.
        """
        session = self.sessions.get(event.publisher)
        if session is not None:
            self.publications.hold_back(session, event, number)
        for other in self.sessions.values():
            other.secure_at = max(other.secure_at, number)
            self._insecure[other.client] = None

    def lost_sight(self, client: str) -> None:
        """The client seems to be gone: its session waits for a while."""
        if client in self.sessions:
            self._await(client)

    def caught_sight(self, client: str) -> None:
        """The client was there all the time."""
        if client in self.sessions:
            self.sessions[client].sight(Turn.CAUGHT_SIGHT)

    def _await(self, client: str) -> None:
        session = self.sessions[client]
        session.sight(Turn.LOST_SIGHT)
        times = times_inherited(session.epoch) if session.is_orphan else 0
        seconds = self._options.session_s / 2 ** max(0, times - 1)  # no more than twice as long in all
        self._set_timer(SetTimer(f"session/{client}", int(seconds * 1e6)))

    def expire(self, client: str) -> None:
        """The time of a session without a client is over."""
        session = self.sessions.get(client)
        if session is not None and session.is_away:
            self.end(client)

    def end(self, client: str) -> None:
        """Nobody waits for this client any more; should it come back, it is told."""
        session = self.sessions.get(client)
        if session is not None:
            self._drop(session)
            self._arrivals.expire(session)

    def give_up(self, client: str) -> None:
        """Another broker has a session of this client. If the client has never come to this one's, it is there."""
        session = self.sessions.get(client)
        if session is not None and session.is_orphan:
            self._drop(session)

    def _drop(self, session: Session) -> None:
        client = session.client
        for name in list(session.subscriptions):
            self._end_subscription(session, name)
        for name in list(session.advertisements):
            self._end_advertisement(session, name)
        session.inbox.clear()
        self.readings.drop(client)
        del self.sessions[client]
        self.readiness.forget(client)
        self._table.moved.pop(client, None)
        self._journal.write([], client)

    def _go_on(self, session: Session) -> None:
        """The session does not stand still any more."""
        self.publications.advance(session)
        self.flush(session)

    def yield_session(self, client: str, owner: str) -> Session | None:
        """Let go of a session that another broker holds in a newer state, if it is still here."""
        session = self.sessions.pop(client, None)
        self.readings.drop(client)
        self.readiness.forget(client)
        self._table.moved.pop(client, None)
        if session is not None:
            self._journal.write([], client)
            if not session.is_orphan:
                self._send(client, Redirect(session.attempt, owner))
        return session

    def lose_all(self, session: Session, published: int) -> None:
        """Its subscriptions are lost, and what it published after that number. The client is to come again, which it
        does with all that it subscribes to, and is told."""
        if not session.subscriptions and session.queued <= published:
            return
        for name in list(session.subscriptions):
            self._end_subscription(session, name)
        if session.queued > published:
            self.publications.drop(session)
            session.admitted = session.queued = published
            session.dismissed = session.attempt
        self.secure(session)
        if not session.is_orphan:
            self._send(session.client, Gone(session.attempt))

    def serve(self, is_possible: bool) -> None:
        """Whether clients can be served. Those of a broker that is cut off from the others get nothing here any more,
        so they are sent to look for one that is not; they may come back, for their sessions stay."""
        if self.is_serving and not is_possible:
            self.dismiss_all()
        self.is_serving = is_possible

    def dismiss_all(self) -> None:
        """This life is over: send the clients away."""
        self._tell_all(Gone)

    def tell_parted(self) -> None:
        """Tell all clients between which positions something may be missing; those who come are told then."""
        self._tell_all(lambda attempt: Parted(attempt, *self._homes.parted))

    def _tell_all(self, word: Callable[[int], Gone | Parted]) -> None:
        for session in self.sessions.values():
            if not session.is_orphan:
                self._send(session.client, word(session.attempt))

    # ---- calls --------------------------------------------------------------------------------------------

    def receive(self, client: str, message: Any) -> None:
        """A message of a client that is attached."""
        session = self.sessions.get(client)
        if session is None or message.attempt != session.attempt or message.attempt == session.dismissed:
            return
        kind = type(message)
        if kind is not ClientGot and not session.is_heard:
            session.turn(Turn.IGNORED)
            return
        self._claims.check_call(session, message)
        if kind is ClientGot:
            session.got(message.number)
            timed = session.timed_delivery
            if timed is not None and session.taken >= timed[0]:
                session.timed_delivery = None
                self.taking.note(self.now - timed[1])
            self.readings.go_on(client)
            self.lagging.release(session)
            if session.revived and session.is_live:
                self._end_revival(session)
            self.flush(session)
        elif kind is ClientPublish:
            self.publications.queue(session, message.events, self.now)
            self.publications.advance(session)
        elif kind is ClientSubscribe:
            if message.since < 0:
                self._subscribe(session, message.subscription, message.filter)
                self.secure(session)
            elif message.subscription not in session.subscriptions:
                self._read(session, message.subscription, message.filter, message.since, message.until)
        elif kind is ClientUnsubscribe:
            self._unsubscribe(session, message.subscription)
            self.lagging.release(session)
        elif kind is ClientAdvertise:
            self.errand = self._begin_advertising(session, message)
        elif kind is ClientUnadvertise:
            session.inbox.take_back(message)
            self.publications.advance(session)
        else:
            raise AssertionError(f"no such message of a client: {kind.__name__}")

    def _subscribe(self, session: Session, name: str, text: str) -> None:
        if name in session.subscriptions:
            return
        subscription = self._table.enter_subscription(name, text, None, {}, session.client)
        session.subscriptions[name] = subscription
        session.began[name] = self._journal.clock.last
        self._table.note_arrival(subscription)
        self.readiness.wait_for(session, name)
        self._table.spread(subscription)
        self._table.answer(subscription)

    def _end_revival(self, session: Session) -> None:
        """The client has taken all that came out of history. Of publishers that it knows no cut of, ours count now."""
        revived, session.revived = session.revived, {}
        for name in revived:
            if name in session.subscriptions and session.subscriptions[name].cuts:
                self._send(session.client, Cut(session.attempt, name, dict(session.subscriptions[name].cuts)))

    def _read(self, session: Session, name: str, text: str, since: int, until: int) -> None:
        """The client wants what came after a position, which lies before now: so it misses nothing from now on."""
        if name not in self.readings.of(session.client):
            self._send(session.client, Cut(session.attempt, name, {}, is_whole=True))
            self.readings.begin(session, name, text, since, until)

    def enter(self, session: Session, name: str, text: str) -> bool:
        """Make a reading a subscription as any other, if it is not; tell whether its cut is whole already."""
        if name not in session.subscriptions:
            self._subscribe(session, name, text)
            self._table.keep_former(session.subscriptions[name], session.brought.pop(name, {}))
            self.secure(session)
        return name not in session.unready

    def _unsubscribe(self, session: Session, name: str) -> None:
        subscription = session.subscriptions.get(name)
        if name in self.readings.of(session.client):
            self.readings.end(session.client, name)
            if subscription is not None:
                self._end_subscription(session, name)
                self.secure(session)
            session.note(Unsubscribed(session.attempt, name, {}))
            self.flush(session)
            return
        if subscription is None:
            return
        if name in self.readings.late(session.client):
            self._end_subscription(session, name)
            self.secure(session)
            session.note(Unsubscribed(session.attempt, name, {}))
            self.flush(session)
            return
        last = {p: max(self._table.passed.get(p, 0), cut - 1) for p, cut in subscription.cuts.items()}
        self._end_subscription(session, name)
        self.secure(session)
        session.take_leave(Unsubscribed(session.attempt, name, last))
        self.flush(session)

    def _end_subscription(self, session: Session, name: str) -> None:
        del session.subscriptions[name]
        session.unready.pop(name, None)
        session.began.pop(name, None)
        session.anew.pop(name, None)
        session.revived.pop(name, None)
        self.readings.leave(session.client, name)
        self._table.remove_subscription(name)

    def _begin_advertising(self, session: Session, message: ClientAdvertise) -> Pieces[None]:
        if message.advertisement not in session.advertisements:
            yield from self._advertise(session, message.advertisement, message.filter, message.first)
        self.secure(session)

    def _advertise(self, session: Session, name: str, text: str, first: int) -> Pieces[None]:
        advertisement = self._table.enter_advertisement(name, session.client, text, None, first)
        session.advertisements[name] = advertisement
        yield from self._table.spread_advertisement(advertisement)

    def _withdraw(self, session: Session, name: str) -> None:
        """The client took an advertisement back, and all that it published before is out."""
        if name in session.advertisements:
            self._end_advertisement(session, name)
            self.secure(session)
            self.readiness.check()

    def _end_advertisement(self, session: Session, name: str) -> None:
        del session.advertisements[name]
        session.stable.pop(name, None)
        self._table.remove_advertisement(name)

    # ---- what the table tells -----------------------------------------------------------------------------

    def tell_cuts(self, subscription: Subscription, cuts: Cuts) -> None:
        """Cuts of a client's subscription were fixed."""
        session = self.sessions.get(subscription.client)
        if session is None:
            return
        if not session.is_orphan and subscription.name not in session.revived:
            self._send(session.client, Cut(session.attempt, subscription.name, cuts))
        if subscription.name in session.subscriptions:
            self.secure(session)

    def tell_stable(self, advertisement: Advertisement) -> None:
        """A client's advertisement became stable."""
        session = self.sessions[advertisement.publisher]
        session.stable[advertisement.name] = None
        if not session.is_orphan:
            self._send(session.client, Stable(session.attempt, advertisement.name))
        self.secure(session)
        self.publications.advance(session)

    # ---- journal --------------------------------------------------------------------------------------------

    def secure(self, session: Session) -> None:
        """Write the session to the journal; deliveries wait until the backups hold it."""
        if self._gathered is not None:
            self._gathered[session.client] = None
            self._insecure[session.client] = None
            session.secure_at = NEVER
            return
        session.secure_at = self._journal.write([session.record()])
        self._insecure[session.client] = None
        for name, number in session.unready.items():
            session.unready[name] = number or session.secure_at
        self.held()

    def gather(self) -> None:
        """Many cuts of the same sessions will be fixed: write none of them before `gathered` asks for it."""
        self._gathered = {}

    def gathered(self) -> list[Session]:
        """The sessions that changed since, for `secure`."""
        clients, self._gathered = self._gathered or {}, None
        return [self.sessions[client] for client in clients if client in self.sessions]

    def held(self) -> None:
        """The backups hold more: admit what waited for it, and deliver."""
        self.publications.admit(self.now)
        for client in [c for c in self._insecure if c in self.sessions]:
            if self.sessions[client].secure_at <= self._journal.held:
                del self._insecure[client]
                if self.sessions[client].is_falling:
                    self.lagging.secured(self.sessions[client])
                self.flush(self.sessions[client])
        self.readiness.check()

    # ---- deliveries ---------------------------------------------------------------------------------------

    def deliver(self, client: str, deliveries: list[Outgoing]) -> None:
        """Events for some of a client's subscriptions."""
        session = self.sessions[client]
        if not session.collects:
            return
        if self.readings.of(client):
            deliveries = self.readings.divert(session, deliveries)
            if not deliveries:
                return
        before = session.total
        session.put(deliveries)
        self.delivered += session.total - before
        if session.timed_delivery is None:
            session.timed_delivery = (session.total, self.now)
        self.flush(session)

    def flush(self, session: Session) -> None:
        """Send what can go out now."""
        if session.is_orphan or session.is_still or session.client in self._insecure:
            return
        for message in session.unsent(self._options.delivery_window):
            self._send(session.client, message)

    def released(self, client: str) -> int:
        """How many of a client's deliveries nobody waits for any more: all, if the client is gone."""
        session = self.sessions.get(client)
        return NEVER if session is None else session.released
