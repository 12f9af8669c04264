"""Views, suspicions, seals by majority (single-decree Paxos per incarnation), and incarnations that return."""

from collections.abc import Iterable, Set
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any, Protocol

from model.rules import Rule
from model.simulator import Address, Simulator
from model.tree import EXCLUDED, Event, Incarnation, Status, Tree, View, is_excluded

Ballot = tuple[int, str]
Entries = tuple[Event, ...]
Accepted = tuple[Ballot, Entries]
TICK = 15.0


class World(Protocol):
    """The environment of a broker."""

    def stopped(self, broker: Incarnation) -> None: ...


class State(Enum):
    """The states of an incarnation."""

    RECOVERING = auto()  # without memory: reads the registers, and neither holds entries nor votes
    JOINING = auto()  # holds and votes; waits for its first handover
    MEMBER = auto()  # has completed a handover, or has been a member from the start
    STOPPED = auto()  # excluded, or crashed


class Stage(Enum):
    """The stages of a proposal to seal an incarnation."""

    PREPARE = auto()
    ACCEPT = auto()


@dataclass
class Ledger:
    """An acceptor's state for a foreign incarnation that is not sealed: a prefix of its journal, and Paxos state."""

    copy: Entries = ()
    promised: Ballot = (0, "")
    accepted: Accepted | None = None


@dataclass
class Register:
    """The part of a broker that survives its exclusion, in memory or on disk."""

    ledgers: dict[Incarnation, Ledger] = field(default_factory=dict)
    seals: dict[Incarnation, Entries] = field(default_factory=dict)
    clock: int = 0
    """The clock, not below any position that this broker has echoed."""
    view: View = field(default_factory=dict)
    """The view that others rely on: a member without it could confirm a predecessor."""


@dataclass
class Proposal:
    """One ballot to seal an incarnation."""

    ballot: Ballot
    stage: Stage = Stage.PREPARE
    promises: dict[Incarnation, tuple[Entries, Accepted | None]] = field(default_factory=dict)
    accepted: set[Incarnation] = field(default_factory=set)
    value: Entries = ()


class Membership:
    """Decides which incarnations are members, and the journals of excluded incarnations."""

    URGENT = frozenset(
        {"status", "suspect", "prepare", "promise", "accept", "accepted", "refuse", "decided", "join", "register"}
        | {"hold", "held", "contribute", "done", "again", "read", "events"}
    )
    """Messages that are processed even during a handover. All others wait in order."""
    UNTIL_RECOVERED = frozenset(("prepare", "accept", "join", "hold"))

    def __init__(
        self, world: World, simulator: Simulator, tree: Tree, me: Incarnation, off: Set[Rule], register: Register | None
    ) -> None:
        self.world, self.simulator, self.tree, self.f, self.me, self.off = world, simulator, tree, tree.f, me, off
        self.alive = True
        self.view: View = dict.fromkeys(tree.names, (0, 1))
        self.register = register or Register()
        self.clock = self.register.clock
        self.view |= self.register.view
        self.suspicions: dict[Incarnation, set[str]] = {}
        self.proposals: dict[Incarnation, Proposal] = {}
        self.rounds: dict[Incarnation, int] = {}
        self.unsealed: tuple[View | None, int, list[Incarnation]] = (None, 0, [])
        self.told_all: tuple[View | None, int] = (None, 0)
        self.patience: dict[Incarnation, int] = {}
        self.attempts: dict[Incarnation, int] = {}
        self.answers: dict[str, tuple[Incarnation, frozenset[Incarnation], Status]] = {}
        self.told: dict[Incarnation, tuple[View, int]] = {}
        self.deferred: list[tuple[Incarnation, str, tuple[Any, ...]]] = []
        self.state = State.MEMBER if me.number == 0 else State.JOINING if register else State.RECOVERING
        if me.number and Rule.RECOVER_FIRST in off:
            self.state = State.JOINING
        if me.number:
            self.view = self.view | {me.name: (me.number, 0 if self.state is State.RECOVERING else 2)}
        simulator.nodes[me] = simulator.nodes[me.name] = self

    # ---- messages
    def send(self, to: Address, kind: str, *arguments: Any) -> None:
        if to == self.me:
            self.handle(self.me, kind, arguments)
        else:
            self.simulator.send(self.me, to, self.clock, kind, arguments)

    def receive(self, source: Any, clock: int, kind: str, arguments: tuple[Any, ...]) -> None:
        """Process a message, unless its sender is a dead incarnation."""
        if isinstance(source, tuple) and self.is_dead(Incarnation(*source)):
            return
        self.clock = max(self.clock, clock)
        if kind in self.URGENT:
            self.handle(source, kind, arguments)
        else:
            self.enqueue(source, kind, arguments)

    def handle(self, source: Any, kind: str, arguments: tuple[Any, ...]) -> None:
        if self.state is State.RECOVERING and kind in self.UNTIL_RECOVERED:
            self.deferred.append((source, kind, arguments))
        else:
            getattr(self, "on_" + kind)(source, *arguments)

    def current(self, names: Iterable[str]) -> list[Incarnation]:
        """Return the newest known incarnations."""
        return [Incarnation(n, self.view[n][0]) for n in names]

    def live(self) -> list[Incarnation]:
        return [Incarnation(n, s[0]) for n, s in self.view.items() if not is_excluded(s) and n != self.me.name]

    def is_dead(self, x: Incarnation) -> bool:
        return (x.number, EXCLUDED) <= self.view[x.name]

    def is_superseded(self, x: Incarnation) -> bool:
        return x.number < self.view[x.name][0] and Rule.COUNT_CURRENT not in self.off

    # ---- views
    def learn(self, view: View, seals: dict[Incarnation, Entries] | None = None) -> None:
        """Merge a view by maximum. A view is always sent completely, and is merged before the data that it accompanies
        is used."""
        news = False
        for incarnation, entries in (seals or {}).items():
            if incarnation not in self.register.seals and self.me.name in self.tree.electorate[incarnation.name]:
                news = True
                self.store_seal(incarnation, entries)
        if view is not self.view and any(status > self.view[n] for n, status in view.items()):
            news = True
            self.view = self.adjusted({n: max(status, view[n]) for n, status in self.view.items()})
            if self.view[self.me.name] >= (self.me.number, EXCLUDED):
                self.stop()
                return
            self.view_changed()
        if news and self.alive:
            self.check_recovered()
            self.press()

    def adjusted(self, view: View) -> View:
        raise NotImplementedError

    def enqueue(self, source: Any, kind: str, arguments: tuple[Any, ...]) -> None:
        raise NotImplementedError

    def view_changed(self) -> None:
        """Update the handover, the replication of the journal and the fences, which depend on the view."""
        raise NotImplementedError

    def seal_stored(self, incarnation: Incarnation) -> None:
        """Continue a handover that may have waited for the seal."""
        raise NotImplementedError

    def own_ledger(self) -> Ledger:
        raise NotImplementedError

    def stop(self) -> None:
        """Stop after an exclusion; the register keeps the journal, the clock and the view."""
        if Rule.KEEP_CLOCK not in self.off:
            self.register.clock = self.clock
        if Rule.KEEP_VIEW not in self.off:
            self.register.view = self.view
        if self.me not in self.register.seals:
            self.register.ledgers[self.me] = self.own_ledger()
        self.alive, self.state = False, State.STOPPED
        self.world.stopped(self.me)

    def tell(self, x: Incarnation) -> None:
        """Send a broker the view and, once, the seals of its electorates."""
        view, count = self.told.get(x, (None, 0))
        seals = self.register.seals
        if view is self.view and count == len(seals):
            return
        new = {i: e for i, e in list(seals.items())[count:] if x.name in self.tree.electorate[i.name]}
        self.told[x] = (self.view, len(seals))
        self.send(x, "status", self.view, new)

    def tell_all(self) -> None:
        if self.told_all[0] is self.view and self.told_all[1] == len(self.register.seals):
            return
        self.told_all = (self.view, len(self.register.seals))
        for x in self.current(n for n in self.tree.names if n != self.me.name):
            self.tell(x)

    def on_status(self, source: Incarnation, view: View, seals: dict[Incarnation, Entries]) -> None:
        self.learn(view, seals)

    # ---- suspicions
    def suspect(self, x: Incarnation, suspected: bool) -> None:
        """Record a suspicion, which can be withdrawn, and has no effect below f + 1."""
        if self.me.name in self.tree.others[x.name] and (self.me.name in self.suspicions.get(x, ())) != suspected:
            for other in self.current(self.tree.others[x.name]):
                self.send(other, "suspect", x, suspected)

    def on_suspect(self, source: Incarnation, x: Incarnation, suspected: bool) -> None:
        suspects = self.suspicions.setdefault(x, set())
        if suspected:
            suspects.add(source.name)
        else:
            suspects.discard(source.name)
        self.press()

    # ---- seals
    def wanted(self) -> list[Incarnation]:
        """Return the incarnations that this acceptor wants to seal: dead ones, those that f + 1 suspect, and those
        whose sealing has begun.
        """
        enough = self.f + 1 if Rule.SUSPECT_FIRST not in self.off else 1
        found = self.dead_unsealed() + [x for x, names in self.suspicions.items() if len(names) >= enough]
        if Rule.PUSH_ON not in self.off:
            found += [x for x, ledger in self.register.ledgers.items() if ledger.promised > (0, "")]
        mine = self.tree.memberships[self.me.name]
        return [x for x in dict.fromkeys(found) if x not in self.register.seals and x.name in mine and x != self.me]

    def dead_unsealed(self) -> list[Incarnation]:
        """Return the dead incarnations of its electorates whose seal this broker does not know."""
        if self.unsealed[0] is not self.view or self.unsealed[1] != len(self.register.seals):
            numbers = ((b, range(self.view[b][0] + 1)) for b in self.tree.memberships[self.me.name])
            known = (Incarnation(b, i) for b, run in numbers for i in run)
            found = [x for x in known if x not in self.register.seals and self.is_dead(x)]
            self.unsealed = (self.view, len(self.register.seals), found)
        return self.unsealed[2]

    def press(self, tick: bool = False) -> None:
        """Propose seals. The lowest unsuspected acceptor proposes at once; others, and repetitions, wait for a time
        that grows with rank and with the number of attempts. An attempt of another acceptor restarts the wait.
        """
        if self.state not in (State.JOINING, State.MEMBER):
            return
        for x in self.wanted():
            trusted = [
                o.name
                for o in self.current(self.tree.electorate[x.name])
                if o == self.me or not (self.is_dead(o) or self.suspicions.get(o))
            ]
            rank = trusted.index(self.me.name)
            self.patience[x] = self.patience.get(x, 0) + tick
            if self.patience[x] > rank + 2 * self.attempts.get(x, 0) or (rank == 0 and x not in self.attempts):
                self.propose(x)

    def propose(self, x: Incarnation) -> None:
        self.rounds[x] = self.rounds.get(x, 0) + 1
        self.attempts[x] = self.attempts.get(x, 0) + 1
        self.patience[x] = 0
        ballot = (self.rounds[x], self.me.name)
        self.proposals[x] = Proposal(ballot)
        for acceptor in self.current(self.tree.electorate[x.name]):
            self.send(acceptor, "prepare", x, ballot)

    def ledger(self, x: Incarnation) -> Ledger:
        return self.register.ledgers.setdefault(x, Ledger())

    def on_prepare(self, source: Incarnation, x: Incarnation, ballot: Ballot) -> None:
        """Answer with a promise that carries the copy of the journal, which does not grow after that. A live broker
        that is asked about itself stops, and its next incarnation, which has the whole journal, promises."""
        if x == self.me:
            self.stop()
            return
        if x in self.register.seals:
            self.send(source, "decided", x, self.register.seals[x], self.view)
            return
        ledger = self.ledger(x)
        if ballot < ledger.promised:
            self.send(source, "refuse", x, ledger.promised, self.view)
            return
        ledger.promised = ballot
        self.patience[x] = 0
        self.rounds[x] = max(self.rounds.get(x, 0), ballot[0])
        self.send(source, "promise", x, ballot, ledger.copy, ledger.accepted, self.view)

    def on_promise(
        self, source: Incarnation, x: Incarnation, ballot: Ballot, copy: Entries, accepted: Accepted | None, view: View
    ) -> None:
        """After f + 1 promises of current incarnations, propose the value of the highest ballot, or else the longest
        copy."""
        self.learn(view)
        p = self.proposals.get(x)
        if p is None or p.ballot != ballot or p.stage is not Stage.PREPARE:
            return
        p.promises[source] = (copy, accepted)
        voters = [v for v in p.promises if not self.is_superseded(v)]
        if len(voters) <= self.f:
            return
        earlier = [a for v in voters if (a := p.promises[v][1])]
        p.value = max(earlier)[1] if earlier else max((p.promises[v][0] for v in voters), key=len)
        p.stage = Stage.ACCEPT
        if Rule.STORE_SEAL in self.off:
            self.decide(x, p.value)
            return
        for acceptor in self.current(self.tree.electorate[x.name]):
            self.send(acceptor, "accept", x, ballot, p.value, self.view)

    def on_accept(self, source: Incarnation, x: Incarnation, ballot: Ballot, value: Entries, view: View) -> None:
        """Accept, and store the sealed journal."""
        self.learn(view)
        if x in self.register.seals:
            self.send(source, "decided", x, self.register.seals[x], self.view)
            return
        ledger = self.ledger(x)
        if ballot < ledger.promised:
            self.send(source, "refuse", x, ledger.promised, self.view)
            return
        ledger.promised, ledger.accepted, ledger.copy = ballot, (ballot, value), value
        self.send(source, "accepted", x, ballot, self.view)

    def on_accepted(self, source: Incarnation, x: Incarnation, ballot: Ballot, view: View) -> None:
        """Decide when f + 1 current incarnations have stored the value."""
        self.learn(view)
        p = self.proposals.get(x)
        if p is None or p.ballot != ballot or p.stage is not Stage.ACCEPT:
            return
        p.accepted.add(source)
        if sum(not self.is_superseded(a) for a in p.accepted) > self.f:
            self.decide(x, p.value)

    def on_refuse(self, source: Incarnation, x: Incarnation, promised: Ballot, view: View) -> None:
        """Use a larger ballot for the next attempt."""
        self.learn(view)
        self.rounds[x] = max(self.rounds.get(x, 0), promised[0])

    def on_decided(self, source: Incarnation, x: Incarnation, value: Entries, view: View) -> None:
        self.learn(view)
        if x not in self.register.seals:
            self.decide(x, value)

    def decide(self, x: Incarnation, value: Entries) -> None:
        """Apply the exclusion."""
        self.store_seal(x, value)
        self.learn({**self.view, x.name: max(self.view[x.name], (x.number, EXCLUDED))})
        if self.alive:
            self.tell_all()

    def store_seal(self, x: Incarnation, value: Entries) -> None:
        self.register.seals[x] = value
        self.register.ledgers.pop(x, None)
        self.proposals.pop(x, None)
        self.suspicions.pop(x, None)
        self.seal_stored(x)

    # ---- incarnations that return
    def join(self) -> None:
        """Query all brokers until enough current incarnations have answered."""
        for name in self.tree.names:
            answer = self.answers.get(name)
            new = answer is None or answer[0].number < self.view[name][0] or answer[2] < self.view[self.me.name]
            if name != self.me.name and new:
                self.send(name, "join", self.view)

    def on_join(self, source: Incarnation, view: View) -> None:
        """Record the new incarnation, which replaces its predecessor, and answer with the entries that it needs."""
        self.learn(view)
        if not self.alive:
            return
        common = [b for b in self.tree.memberships[source.name] if self.me.name in self.tree.electorate[b]]
        seals = {x: e for x, e in self.register.seals.items() if x.name in common}
        ledgers = {x: led for x, led in self.register.ledgers.items() if x.name in common}
        if self.me.name in common:
            ledgers[self.me] = self.own_ledger()
        answer = {x: (led.copy, led.promised, led.accepted) for x, led in ledgers.items()}
        self.told[source] = (self.view, len(self.register.seals))
        self.send(source, "register", self.view, self.promised(), seals, answer)

    def on_register(
        self,
        source: Incarnation,
        view: View,
        promised: frozenset[Incarnation],
        seals: dict[Incarnation, Entries],
        ledgers: dict[Incarnation, tuple[Entries, Ballot, Accepted | None]],
    ) -> None:
        """Adopt the longest copies, the highest promises and the highest accepted values."""
        self.answers[source.name] = (source, promised, view[self.me.name])
        if self.state is State.RECOVERING:
            for x, (copy, ballot, accepted) in ledgers.items():
                if x not in self.register.seals and x not in seals:
                    mine = self.ledger(x)
                    mine.promised = max(mine.promised, ballot)
                    if accepted and (mine.accepted is None or accepted > mine.accepted):
                        mine.accepted = accepted
                    mine.copy = mine.accepted[1] if mine.accepted else max(mine.copy, copy, key=len)
        self.learn(view, seals)
        self.check_recovered()

    def answered(self, b: str) -> bool:
        """Return whether f + 1 of the electorate of b, without this broker, have answered as the newest known
        incarnations.
        """
        names = [n for n in self.tree.electorate[b] if n != self.me.name and n in self.answers]
        return sum(not self.is_superseded(self.answers[n][0]) for n in names) > self.f

    def known_around(self, y: Incarnation) -> bool:
        """Return whether f + 1 of the electorate of y know this incarnation and had not promised to exclude y
        before. A member counts itself.
        """
        joining = (self.me.number, 2)
        self.answers[self.me.name] = (self.me, self.promised(), joining)
        names = [n for n in self.tree.electorate[y.name] if n in self.answers and self.answers[n][2] >= joining]
        counted = [n for n in names if not self.is_superseded(self.answers[n][0]) and y not in self.answers[n][1]]
        return len(counted) > self.f

    def promised(self) -> frozenset[Incarnation]:
        return frozenset(x for x, ledger in self.register.ledgers.items() if ledger.promised > (0, ""))

    def check_recovered(self) -> None:
        """Complete the recovery of an incarnation without memory when f + 1 of each electorate have answered and the
        journals of its predecessors are sealed. Until then, another failure could exceed f.
        """
        sealed = all(Incarnation(self.me.name, i) in self.register.seals for i in range(self.me.number))
        recovering = self.state is State.RECOVERING and sealed
        if recovering and all(self.answered(b) for b in self.tree.memberships[self.me.name]):
            self.state = State.JOINING
            self.learn({**self.view, self.me.name: (self.me.number, 2)})
            self.join()
            deferred, self.deferred = self.deferred, []
            for source, kind, arguments in deferred:
                if self.alive and not self.is_dead(source):
                    self.handle(source, kind, arguments)
            self.press()
        self.joined_enough()

    def joined_enough(self) -> None:
        """Continue a handover that may have waited for the answers."""
        raise NotImplementedError

    def may_contribute(self, group: frozenset[str]) -> bool:
        """Return whether this incarnation may take part in its first handover: every member's electorate knows it
        and has not promised to exclude the member. A broker that learns a later exclusion of the member then also
        knows this incarnation.
        """
        if self.state is not State.JOINING or Rule.ANNOUNCE_FIRST in self.off:
            return self.state is not State.RECOVERING
        return all(self.known_around(x) for x in self.current(group) if x != self.me)
