"""A network with clients, faults within f, a failure detector, and a check at the end of a run."""

from collections.abc import Set
from dataclasses import dataclass
from typing import Any

from model.broker import Broker
from model.checker import Checker, ViolationError
from model.client import Client
from model.membership import TICK, Register, State
from model.rules import Rule
from model.simulator import Simulator
from model.tree import Incarnation, Tree, is_excluded, is_joined

Operation = tuple[float, str, int, Any]


@dataclass(frozen=True)
class Scenario:
    """Determines a run: the tree by parents, f, the clients' brokers, and operations with times."""

    seed: int
    parents: tuple[int | None, ...]
    f: int
    homes: tuple[int, ...]
    operations: tuple[Operation, ...]


class World:
    """The brokers and clients of a run."""

    def __init__(self, scenario: Scenario, off: Set[Rule] = frozenset()) -> None:
        self.scenario, self.off, self.f = scenario, off, scenario.f
        self.names = [f"b{i}" for i in range(len(scenario.parents))]
        edges = [(self.names[i], self.names[p]) for i, p in enumerate(scenario.parents) if p is not None]
        self.tree = Tree(edges, scenario.f)
        self.simulator = self.make_simulator(scenario)
        self.checker = Checker()
        self.running: dict[str, Broker] = {}
        self.cold: set[str] = set()
        """Names without memory: crashed, or recovering."""
        self.stats = dict.fromkeys(("crash", "inside", "suspect", "restart", "excluded", "cut"), 0)
        self.unreachable: dict[tuple[str, Incarnation], int] = {}
        self.false: dict[tuple[str, Incarnation], float] = {}
        self.worst_wait = 0.0
        for name in self.names:
            self.start(Incarnation(name, 0))
        self.clients = [Client(self.simulator, f"c{i}", self.checker, self.refuge) for i in range(len(scenario.homes))]
        for client, home in zip(self.clients, scenario.homes, strict=True):
            client.ready_first = Rule.READY_FIRST not in off
            if home >= 0:
                client.attach(Incarnation(self.names[home], 0))

    def make_simulator(self, scenario: Scenario) -> Simulator:
        return Simulator(scenario.seed)

    # ---- brokers
    def start(self, me: Incarnation, register: Register | None = None) -> None:
        skew = self.simulator.random.randint(0, self.simulator.random.choice((0, 60, 600)))
        broker = Broker(self, self.simulator, self.tree, me, self.off, register, skew)
        self.running[me.name] = broker
        self.simulator.after(self.simulator.random.random() * TICK, self.tick, broker)

    def tick(self, broker: Broker) -> None:
        if broker.alive:
            self.detect(broker)
            broker.tick()
            self.simulator.after(TICK, self.tick, broker)

    def detect(self, broker: Broker) -> None:
        """Run the failure detector of one broker: it counts ticks without a message, in one direction."""
        me, now = broker.me.name, self.simulator.now
        troubled = self.unreachable or self.simulator.cuts or self.false
        if not troubled and all(b.alive and b.me.number == 0 for b in self.running.values()):
            return
        for name in self.names:
            if me not in self.tree.others[name]:
                continue
            peer = Incarnation(name, broker.view[name][0])
            running = self.running[name]
            silent = running.me != peer or not running.alive
            if silent or self.simulator.cuts.get((name, me), 0) > now or self.false.get((me, peer), 0) > now:
                count = self.unreachable[me, peer] = self.unreachable.get((me, peer), 0) + 1
                if count > 1 and self.simulator.random.random() < 0.7:
                    broker.suspect(peer, True)
            elif self.unreachable.pop((me, peer), 0):
                broker.suspect(peer, False)

    def stopped(self, broker: Incarnation) -> None:
        """Handle an exclusion of a live broker: the next incarnation keeps the register."""
        self.stats["excluded"] += 1
        self.lose_clients(broker)
        self.simulator.after(1 + self.simulator.random.random() * 40, self.return_warm, self.running[broker.name])

    def return_warm(self, broker: Broker) -> None:
        if self.running[broker.me.name] is broker and broker.state is State.STOPPED and broker.me.name not in self.cold:
            self.start(Incarnation(broker.me.name, broker.me.number + 1), broker.register)

    def lose_clients(self, broker: Incarnation) -> None:
        for client in self.clients:
            self.simulator.after(1 + self.simulator.random.random() * 40, client.lost, broker)

    def refuge(self, client: str) -> Incarnation | None:
        living = [b.me for b in self.running.values() if b.alive]
        return self.simulator.random.choice(living) if living else None

    def failed(self) -> set[str]:
        """Return the names without state: crashed or recovering."""
        for name in list(self.cold):
            broker = self.running[name]
            if broker.alive and broker.state is not State.RECOVERING:
                self.cold.discard(name)
        return self.cold

    def may_crash(self, name: str) -> bool:
        """Return whether at most f of every electorate would be without memory."""
        failed = self.failed() | {name}
        return all(len(failed & set(members)) <= self.f for members in self.tree.electorate.values())

    def crash(self, name: str) -> None:
        broker = self.running[name]
        if (name in self.failed() and not broker.alive) or not self.may_crash(name):
            return
        self.stats["crash"] += 1
        self.stats["inside"] += any(b.handover is not None for b in self.running.values() if b.alive)
        self.cold.add(name)
        self.simulator.crash(broker.me)
        broker.state = State.STOPPED
        self.lose_clients(broker.me)

    def restart(self, name: str) -> None:
        broker = self.running[name]
        if not broker.alive and name in self.cold:
            self.stats["restart"] += 1
            self.start(Incarnation(name, broker.me.number + 1))

    # ---- operations
    def perform(self, operation: Operation) -> None:
        _, kind, a, x = operation
        client = self.clients[a % len(self.clients)]
        name = self.names[a % len(self.names)]
        now, rng = self.simulator.now, self.simulator.random
        if kind in ("adv", "sub"):
            (client.advertise if kind == "adv" else client.subscribe)(x)
        elif kind in ("unadv", "unsub", "pub"):
            {"unadv": client.unadvertise, "unsub": client.unsubscribe, "pub": client.publish}[kind](x)
        elif kind == "replies":
            client.replies += x % 4
        elif kind == "move":
            to = self.running[self.names[x % len(self.names)]]
            if to.alive:
                client.move(to.me)
        elif kind == "crash":
            self.crash(name)
        elif kind == "restart":
            self.restart(name)
        elif kind == "suspect":
            self.stats["suspect"] += 1
            for other in self.tree.others[name]:
                if rng.random() < 0.9:
                    self.false[other, self.running[name].me] = now + 30 + rng.random() * 120
        elif kind in ("partition", "oneway"):
            self.stats["cut"] += 1
            sides = {n: rng.randrange(a % 2 + 2) for n in self.names}
            until = now + 20 + rng.random() * x
            for p in self.names:
                for q in self.names:
                    if sides[p] != sides[q] and (kind == "partition" or sides[p] < sides[q] or rng.random() < 0.2):
                        self.simulator.cuts[p, q] = max(until, self.simulator.cuts.get((p, q), 0.0))

    # ---- the end
    def quiet(self) -> bool:
        living = [b for b in self.running.values() if b.alive]
        return (
            all(c.quiet() for c in self.clients)
            and all(b.state is State.MEMBER and is_joined(b.view[b.me.name]) for b in living)
            and not any(b.handover or b.readings or b.inbox or b.proposals for b in living)
            and all(b.view == living[0].view for b in living)
            and all(is_excluded(living[0].view[n]) or b.alive for n, b in self.running.items())
            and all(b.alive or n in self.cold for n, b in self.running.items())
        )

    def settle(self, limit: float = 6000) -> None:
        """Run until nothing is pending, a new position is final everywhere, and the logs are empty."""
        simulator, end = self.simulator, self.simulator.now + limit
        top = None
        while True:
            simulator.run(simulator.now + 60)
            living = [b for b in self.running.values() if b.alive]
            if not self.quiet():
                top = None
            elif top is None:
                top = max(b.clock for b in living)
            elif min(b.final for b in living) >= top and not any(b.log for b in living):
                break
            if simulator.now > end:
                raise ViolationError("liveness: " + self.why())
        simulator.run(simulator.now + 150)  # the last deliveries arrive
        self.judge()

    def judge(self) -> None:
        """Check the guarantees for applications, and J1: any f + 1 of an electorate include a holder of each entry."""
        living = [b for b in self.running.values() if b.alive]
        table = max(living, key=lambda b: b.final).table
        self.checker.end(table)
        for key, (_, origin) in table.items():
            members = [b for b in living if b.me.name in self.tree.electorate[origin.name]]
            holders = [b for b in members if b.kept({key: origin})]
            if not holders or len(members) - len(holders) > self.f:
                raise ViolationError(f"lost-entry: {key} of {origin} is held by {[b.me.name for b in holders]}")

    def run(self) -> None:
        operations = self.scenario.operations
        for operation in operations:
            self.simulator.after(operation[0], self.perform, operation)
        self.simulator.run(operations[-1][0] if operations else 0)
        self.settle()

    def why(self) -> str:
        """Return a description of the pending work."""
        parts = [f"{c.name} at {c.home} trying {c.trying}: {c.unconfirmed}" for c in self.clients if not c.quiet()]
        for b in self.running.values():
            h = b.handover
            waits = f" region {sorted(h.region)} sent {h.sent} lacks {sorted(h.group - h.got.keys())}" if h else ""
            parts.append(f"{b.me} {b.state.name} alive {b.alive} final {b.final} log {len(b.log)} {b.view}{waits}")
        return "; ".join(parts)
