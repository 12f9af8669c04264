"""A broker of the specification: admission, waves and final positions, fences for clients that move, history."""

from collections import deque
from collections.abc import Sequence, Set
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any

from model.handover import Handovers, Rows
from model.membership import Register, State, World
from model.routing import LOCAL, Advertisement, LinkName, Local, LocalState
from model.rules import Rule
from model.simulator import Simulator
from model.tree import Event, Incarnation, Tree, is_joined


class SessionState(Enum):
    """The states of a client's session."""

    OPEN = auto()
    RESUMING = auto()  # resumed subscriptions read history; nothing else is delivered to this client
    CLOSING = auto()  # the client has moved; the last admissions are not confirmed yet


@dataclass
class Session:
    """The state of an attached client. Its operations run in order."""

    number: int
    state: SessionState = SessionState.OPEN
    operations: deque[tuple[Any, ...]] = field(default_factory=deque)
    unconfirmed: int = 0
    closer: Incarnation | None = None
    closing_number: int = 0
    waiting: list[tuple[Local, Event]] = field(default_factory=list)


@dataclass
class Fence:
    """A client that has attached, and its previous incarnation."""

    session: int
    old: Incarnation | None
    seen: int
    closed: int | None = None


@dataclass
class Wave:
    """One wave over the tree: a position travels down, and rows of tables travel up."""

    position: int
    source: LinkName | None
    waiting: set[LinkName]
    need: int
    lowest: int
    rows: Rows = field(default_factory=dict)
    sealed: set[Incarnation] = field(default_factory=set)


@dataclass
class Reading:
    """One history read for all resumed subscriptions of a session. It waits for their cuts, then for a final position
    not below `target`, and then for the rows in `need`."""

    client: str
    session: int
    locals: list[Local]
    target: int = 0
    end: int = 0
    need: dict[tuple[str, int], Incarnation] | None = None
    got: dict[tuple[str, int], Event] = field(default_factory=dict)


class Broker(Handovers):
    """One incarnation of a broker."""

    def __init__(
        self,
        world: World,
        simulator: Simulator,
        tree: Tree,
        me: Incarnation,
        off: Set[Rule] = frozenset(),
        register: Register | None = None,
        skew: int = 0,
    ) -> None:
        super().__init__(world, simulator, tree, me, off, register)
        self.skew = skew
        self.inbox: deque[tuple[Any, str, tuple[Any, ...]]] = deque()
        self.sessions: dict[str, Session] = {}
        self.fences: dict[str, Fence] = {}
        self.final, self.lowest = 0, 0
        self.table: Rows = {}
        self.sealed: set[Incarnation] = set()
        self.wave: Wave | None = None
        self.wave_age = 0
        self.readings: dict[int, Reading] = {}
        self.reads = 0
        self.replicate()
        if me.number == 0:
            for n in sorted(tree.neighbours[me.name]):
                self.add_link(("initial", min(n, me.name), max(n, me.name)), Incarnation(n, 0), frozenset())
        else:
            self.join()
            self.look()

    # ---- time and input
    def timestamp(self) -> int:
        """Return the next value of the hybrid logical clock."""
        self.clock = max(self.clock + 1, int(self.simulator.now) + self.skew)
        return self.clock

    def tick(self) -> None:
        """Repeat messages that have had no effect yet."""
        if self.state is not State.MEMBER:
            self.join()
        self.tell_all()
        self.press(tick=True)
        for x, suspects in self.suspicions.items():
            if self.me.name in suspects:
                for other in self.current(self.tree.others[x.name]):
                    self.send(other, "suspect", x, True)
        self.wave_age += 1
        if self.is_root() and (self.wave is None or self.wave_age > 20):
            self.begin_wave()
        for number in list(self.readings):
            self.read(number)

    def enqueue(self, source: Any, kind: str, arguments: tuple[Any, ...]) -> None:
        self.inbox.append((source, kind, arguments))
        self.work()

    def work(self) -> None:
        while self.state is State.MEMBER and self.inbox and (self.handover is None or Rule.FREEZE in self.off):
            source, kind, arguments = self.inbox.popleft()
            getattr(self, "on_" + kind)(source, *arguments)

    def resume(self) -> None:
        self.release()
        for client in list(self.sessions):
            self.run_operations(client)
        self.work()

    def view_changed(self) -> None:
        self.replicate()
        self.look()
        self.release()
        self.check_fences()

    def after_handover(self) -> None:
        joined = [n for n in self.tree.names if is_joined(self.view[n])]
        if joined:
            self.send(self.current(joined[:1])[0], "again")

    # ---- admission
    def session(self, client: str, number: int) -> Session | None:
        s = self.sessions.get(client)
        return s if s and s.number == number and s.state is not SessionState.CLOSING else None

    def on_operation(self, client: str, number: int, operation: tuple[Any, ...]) -> None:
        session = self.session(client, number)
        if session is None:
            return
        kind, *arguments = operation
        if kind == "subscribe":
            name, wanted = arguments
            self.locals[name] = local = Local(client, name, wanted, (number, 0))
            self.begin(local)
        elif kind == "resume":
            self.resume_subscriptions(client, session, arguments[0])
        elif kind == "unsubscribe":
            if self.locals.pop(arguments[0], None):
                self.remove_subscription(arguments[0])
                self.check_readings()
        else:
            session.operations.append(operation)
            self.run_operations(client)

    def run_operations(self, client: str) -> None:
        """Process advertise, unadvertise and publish in the client's order."""
        session = self.sessions.get(client)
        while session and session.operations and (self.handover is None or Rule.FREEZE in self.off):
            kind, *arguments = session.operations[0]
            if kind == "advertise":
                name, filter_ = arguments
                a = Advertisement(name, filter_, client, (session.number, 0), LOCAL, set(self.links))
                self.advertisements[name] = a
                session.operations.popleft()
                self.flood(a)
            elif kind == "unadvertise":
                if session.unconfirmed:
                    return
                session.operations.popleft()
                found = self.advertisements.get(arguments[0])
                if found and found.source == LOCAL:
                    self.remove_advertisement(found)
                self.send(client, "unadvertised", session.number, arguments[0])
            elif not any(a.publisher == client and a.stable and arguments[1] in a.filter for a in self.own()):
                return
            else:
                session.operations.popleft()
                session.unconfirmed += 1
                number, topic = arguments
                self.append(Event(client, number, topic, self.timestamp(), self.me))
                self.release()
        if session and session.state is SessionState.CLOSING and not session.unconfirmed:
            del self.sessions[client]
            for a in [a for a in self.own() if a.publisher == client]:
                self.remove_advertisement(a)
            assert session.closer
            self.send(session.closer, "closed", client, session.closing_number, self.timestamp())

    def own(self) -> list[Advertisement]:
        return [a for a in self.advertisements.values() if a.source == LOCAL]

    def may_release(self) -> bool:
        return self.handover is None or Rule.FREEZE in self.off

    def entry_released(self, event: Event) -> None:
        """Process a confirmed entry, and notify the client."""
        self.process(event, None)
        session = self.sessions.get(event.publisher)
        if session:
            self.send(event.publisher, "confirm", session.number, event.number)
            session.unconfirmed -= 1
            self.run_operations(event.publisher)
        self.check_wave()

    def became_stable(self, advertisement: Advertisement) -> None:
        session = self.sessions[advertisement.publisher]
        self.send(advertisement.publisher, "stable", session.number, advertisement.name)
        self.run_operations(advertisement.publisher)

    # ---- waves and final positions
    def is_root(self) -> bool:
        """Return whether this broker has the lowest joined name."""
        lowest = min((n for n in self.tree.names if is_joined(self.view[n])), default=None)
        return lowest == self.me.name and self.handover is None

    def begin_wave(self) -> None:
        self.wave_age = 0
        self.link_wave(None, self.timestamp(), self.lowest)

    def on_again(self, source: Incarnation) -> None:
        """End waves that used links lost in a completed handover."""
        if self.is_root():
            self.begin_wave()

    def wave_lost(self, links: set[LinkName]) -> None:
        if self.wave and (self.wave.source in links or self.wave.waiting & links):
            self.wave = None

    def link_wave(self, link: LinkName | None, position: int, stable: int) -> None:
        """Move the clock past the position, and remove entries that all brokers have processed from the log."""
        if self.wave and self.wave.position >= position:
            return
        self.clock = max(self.clock, position)
        if stable > self.stable:
            self.stable = stable
            self.log = {k: e for k, e in self.log.items() if e.timestamp > stable}
        waiting = self.links.keys() - {link}
        self.wave = Wave(position, link, waiting, len(self.journal), self.final)
        for other in [x for x in self.links if x in waiting]:
            self.out(other, "wave", position, stable)
        self.check_wave()

    def link_echo(self, link: LinkName, position: int, rows: Rows, sealed: set[Incarnation], lowest: int) -> None:
        wave = self.wave
        if wave and wave.position == position and link in wave.waiting:
            wave.waiting.discard(link)
            wave.rows.update(rows)
            wave.sealed |= sealed
            wave.lowest = min(wave.lowest, lowest)
            self.check_wave()

    def check_wave(self) -> None:
        """Echo when all others have echoed, and the broker's own admissions from before the wave are confirmed."""
        wave = self.wave
        if wave is None or wave.waiting or self.released < wave.need or self.handover or not self.alive:
            return
        self.wave = None
        rows = {**wave.rows, **self.table}
        for event in self.journal[: wave.need]:
            rows[event.key] = (event.timestamp, event.origin)
        for entries in self.applied.values():
            for key, row in entries.items():
                if row[0] <= wave.position or Rule.SEAL_ROWS not in self.off:
                    rows[key] = row
        sealed = wave.sealed | self.sealed | self.applied.keys()
        if wave.source is not None:
            self.out(wave.source, "echo", wave.position, rows, sealed, wave.lowest)
        else:
            self.lowest = wave.lowest
            self.link_final(None, wave.position, rows, sealed)

    def link_final(self, link: LinkName | None, position: int, table: Rows, sealed: set[Incarnation]) -> None:
        """Record a final position: all events up to it, and of the sealed incarnations, are known and fixed."""
        for other in self.links:
            if other != link:
                self.out(other, "final", position, table, sealed)
        if position <= self.final:
            return
        for key, row in self.table.items():
            assert table.get(key) == row, f"a final position changed {key}: {row} to {table.get(key)} (I4)"
        self.final, self.table, self.sealed = position, table, sealed
        for local in self.locals.values():
            session = self.sessions.get(local.client)
            if local.state is LocalState.LIVE and session and session.state is SessionState.OPEN:
                self.send(local.client, "position", local.attempt[0], local.name, position)
        self.check_readings()
        self.check_fences()

    def position(self) -> int:
        return self.final

    # ---- fences
    def on_attach(self, client: str, session: int, old: Incarnation | None, seen: int) -> None:
        """Wait until the old incarnation is sealed, or has closed the client's session."""
        self.fences[client] = Fence(session, old, seen)
        if old is None or Rule.READY_FIRST in self.off:
            self.ready(client, 0)
        elif old == self.me:
            self.on_close(self.me, client, session)
        elif not self.is_dead(old):
            self.send(old, "close", client, session)
        self.check_fences()

    def on_close(self, source: Incarnation, client: str, number: int) -> None:
        """Admit nothing more from a client that has moved, and report when all its admitted events are confirmed."""
        session = self.sessions.get(client)
        if session is None:
            self.send(source, "closed", client, number, self.timestamp())
            return
        session.state, session.closer, session.closing_number = SessionState.CLOSING, source, number
        session.operations.clear()
        for local in [x for x in self.locals.values() if x.client == client]:
            del self.locals[local.name]
            self.remove_subscription(local.name)
        self.run_operations(client)

    def on_closed(self, source: Incarnation, client: str, session: int, clock: int) -> None:
        fence = self.fences.get(client)
        if fence and fence.session == session:
            fence.closed = clock
            self.check_fences()

    def check_fences(self) -> None:
        """Open sessions whose final position is not below the client's newest timestamp, and includes the seal or
        follows the closing.
        """
        for client, fence in list(self.fences.items()):
            sealed = fence.old in self.sealed
            if Rule.FENCE_FINAL in self.off:
                sealed = fence.old is not None and self.is_dead(fence.old)
            closed = fence.closed is not None and self.final > fence.closed
            if (self.final >= fence.seen or Rule.FENCE_SEEN in self.off) and (sealed or closed):
                self.ready(client, max((n for p, n in self.table if p == client), default=0))

    def ready(self, client: str, last: int) -> None:
        """Open the session; `last` is the last number of the client that was ever admitted."""
        fence = self.fences.pop(client)
        self.sessions[client] = Session(fence.session)
        if Rule.FENCE_TELLS_LAST not in self.off:
            self.seen[client] = max(self.seen.get(client, 0), last)
        self.send(client, "ready", fence.session, last)

    # ---- deliveries, resumed subscriptions, history
    def deliver(self, local: Local, event: Event) -> None:
        session = self.sessions.get(local.client)
        if session and session.state is SessionState.RESUMING and Rule.RESUME_TOGETHER not in self.off:
            session.waiting.append((local, event))
            return
        self.give(local, event)

    def give(self, local: Local, event: Event) -> None:
        """Deliver an event that is at or after the cut, or later than the beginning if its publisher has no cut."""
        cut = local.cuts.get(event.publisher)
        due = event.timestamp > local.begin or Rule.BEGIN in self.off if cut is None else event.number >= cut
        if due and event.number > local.last.get(event.publisher, 0):
            local.last[event.publisher] = event.number
            self.send(local.client, "deliver", local.attempt[0], local.name, event)

    def became_whole(self, local: Local) -> None:
        if local.resumed:
            local.state = LocalState.READING
            self.check_readings()
            return
        local.state = LocalState.LIVE
        arguments = (dict(local.cuts), local.begin, local.position)
        self.send(local.client, "active", local.attempt[0], local.name, *arguments)
        buffer, local.buffer = local.buffer, []
        for event in buffer:
            self.deliver(local, event)

    def resume_subscriptions(self, client: str, session: Session, resumed: list[tuple[Any, ...]]) -> None:
        """Resume all active subscriptions of a client with one read and one end position."""
        session.state = SessionState.RESUMING
        found = []
        for name, wanted, position, cuts, begin, last in resumed:
            local = Local(client, name, wanted, (session.number, 0), True, position, cuts, begin, dict(last))
            self.locals[name] = local
            found.append(local)
        groups = [[x] for x in found] if Rule.RESUME_TOGETHER in self.off else [found]
        for group in groups:
            self.reads += 1
            self.readings[self.reads] = Reading(client, session.number, group)
        for local in found:
            self.begin(local)
        self.check_readings()

    def check_readings(self) -> None:
        """Start reads whose cuts are all complete, up to the next final position that is not below the clock."""
        for number, reading in list(self.readings.items()):
            session = self.session(reading.client, reading.session)
            if session is None:
                del self.readings[number]
                continue
            reading.locals = [x for x in reading.locals if self.locals.get(x.name) is x]
            if reading.need is None and all(x.state is LocalState.READING for x in reading.locals):
                reading.target = reading.target or self.clock
                if self.final >= reading.target:
                    start = min((x.position for x in reading.locals), default=self.final)
                    rows = self.table.items()
                    reading.need = {k: origin for k, (time, origin) in rows if start < time <= self.final}
                    reading.end = self.final
                    self.read(number)

    def read(self, number: int) -> None:
        """Request missing rows from the electorates of the journals."""
        reading = self.readings[number]
        if reading.need is None:
            return
        left = {k: origin for k, origin in reading.need.items() if k not in reading.got}
        self.on_events(self.me, number, self.kept(left))
        if number in self.readings:
            names = {n for origin in left.values() for n in self.tree.electorate[origin.name]}
            for x in self.live():
                if x.name in names:
                    self.send(x, "read", number, left)

    def kept(self, keys: dict[tuple[str, int], Incarnation]) -> list[Event]:
        """Return the entries of these journals that this broker holds."""
        found = []
        for origin in set(keys.values()):
            entries: Sequence[Event] = self.register.seals.get(origin, ())
            if origin == self.me:
                entries = self.journal
            elif not entries and origin in self.register.ledgers:
                entries = self.register.ledgers[origin].copy
            found += [e for e in entries if keys.get(e.key) == origin]
        return found

    def on_read(self, source: Incarnation, number: int, keys: dict[tuple[str, int], Incarnation]) -> None:
        self.send(source, "events", number, self.kept(keys))

    def on_events(self, source: Incarnation, number: int, events: list[Event]) -> None:
        """Store rows; when the read is complete, deliver it by timestamp, then the events that arrived meanwhile."""
        reading = self.readings.get(number)
        if reading is None or reading.need is None:
            return
        reading.got.update((e.key, e) for e in events if reading.need.get(e.key) == e.origin)
        session = self.session(reading.client, reading.session)
        if len(reading.got) < len(reading.need) or self.handover or session is None:
            return
        del self.readings[number]
        waiting, session.waiting = session.waiting, []
        for local in reading.locals:
            found = [e for e in reading.got.values() if e.topic in local.filter and e.timestamp > local.position]
            waiting += [(local, e) for e in found + [e for e in local.buffer if e.timestamp > reading.end]]
            local.state, local.buffer = LocalState.LIVE, []
        for local, event in sorted(waiting, key=lambda w: w[1].order):
            if self.locals.get(local.name) is local:
                self.give(local, event)
        for local in reading.locals:
            self.send(local.client, "position", local.attempt[0], local.name, reading.end)
        session.state = SessionState.OPEN
        self.send(reading.client, "resumed", session.number)
