"""Systematic exploration of small scopes: python -m model.explore [SCOPE ...] [-k N] [--off RULE ...] [--seconds N]

A schedule is a list of choices, replayed from the start. The default step delivers the message that has waited
longest. Before each step, the next operation of any thread of the scope may happen. It is offered again only after a
delivery to a node that it affects, because other deliveries commute with it. A crash loses all or none of the broker's
last messages; losing those of a single channel costs a deviation. A deviation (at most k) delays the channel whose
turn it is for a few steps, or until nothing else can happen. If nothing can happen, the timers fire, `idle` times in
the race. At the end the default order continues until the network is quiet, and the checker verifies the run.
"""

import argparse
import random
import time
import traceback
from collections import deque
from collections.abc import Callable, Set
from dataclasses import dataclass, field
from typing import Any

from model.broker import Broker
from model.checker import ViolationError
from model.client import Client
from model.membership import Register
from model.routing import Filter
from model.rules import Rule
from model.simulator import Address, Simulator
from model.tree import Incarnation
from model.world import Scenario, World

FOREVER = 10**9


@dataclass(frozen=True)
class Scope:
    """A tree, clients, initial operations, and threads of operations that are interleaved in all ways."""

    parents: tuple[int | None, ...]
    homes: tuple[int, ...]
    setup: tuple[str, ...]
    race: tuple[tuple[str, ...], ...]
    f: int = 1
    idle: int = 1
    refuge: dict[str, tuple[str, ...]] = field(default_factory=dict)
    fast: dict[str, int] = field(default_factory=dict)
    """By broker: how far its clock jumps ahead with each timestamp."""


class NotAllowedError(Exception):
    """The schedule breaks the assumptions (more than f), or an operation is impossible."""


class NoRandomness(random.Random):
    """Replaces random choices by those of the explorer."""

    def random(self) -> float:
        return 0.0

    def randint(self, a: int, b: int) -> int:
        return a

    def choice(self, seq: Any) -> Any:
        return seq[0]


class Channels(Simulator):
    """Channels whose order the explorer chooses. Delayed actions have their own channels."""

    def __init__(self) -> None:
        super().__init__(0)
        self.random = NoRandomness()
        self.channels: dict[Any, deque[tuple[int, Callable[..., None], tuple[Any, ...]]]] = {}
        self.held: dict[Any, int] = {}
        self.blocked: set[tuple[str, str]] = set()
        """Cut connections that no failure detector notices."""
        self.step = 0

    def put(self, channel: Any, action: Callable[..., None], *arguments: Any) -> None:
        self._sequence += 1
        self.channels.setdefault(channel, deque()).append((self._sequence, action, arguments))

    def after(self, delay: float, action: Callable[..., None], *arguments: Any) -> None:
        name = getattr(action, "__name__", "")
        if name != "tick":
            owner = getattr(action, "__self__", None)
            owner = arguments[0].me if name == "return_warm" else getattr(owner, "name", "")
            self.put((name, owner), action, *arguments)

    def send(self, source: Address, to: Address, clock: int, kind: str, arguments: tuple[Any, ...]) -> None:
        node = self.nodes.get(to)
        if node is not None and node.alive:
            self.put((source, to), self._arrive, source, to, clock, kind, arguments)

    def _arrive(self, source: Address, to: Address, clock: int, kind: str, arguments: tuple[Any, ...]) -> None:
        node = self.nodes[to]
        if node.alive:
            if self.trace:
                self.trace(f"{self.step:4d}  {source} -> {to}  {kind} {arguments}")
            node.receive(source, clock, kind, arguments)

    def advance(self, channel: Any) -> None:
        queue = self.channels[channel]
        _, action, arguments = queue.popleft()
        if not queue:
            del self.channels[channel]
            self.held.pop(channel, None)
        self.step += 1
        action(*arguments)

    def is_cut(self, channel: Any) -> bool:
        if not (self.cuts or self.blocked) or not isinstance(channel[0], Incarnation):
            return False
        to = channel[1]
        pair = (channel[0].name, to.name if isinstance(to, Incarnation) else to)
        return pair in self.cuts or pair in self.blocked

    def head(self) -> Any:
        """Return the channel whose first message has waited longest."""
        best, first = None, 0
        for channel, queue in self.channels.items():
            if (best is None or queue[0][0] < first) and channel not in self.held and not self.is_cut(channel):
                best, first = channel, queue[0][0]
        return best


class Exploration(World):
    """One schedule of a scope."""

    def __init__(self, scope: Scope, off: Set[Rule], choose: Callable[[int], int]) -> None:
        self.scope, self.choose = scope, choose
        super().__init__(Scenario(0, scope.parents, scope.f, scope.homes, ()), off)
        self.by_name = {c.name: c for c in self.clients}

    def make_simulator(self, scenario: Scenario) -> Simulator:
        self.channels = Channels()
        return self.channels

    def start(self, me: Incarnation, register: Register | None = None) -> None:
        super().start(me, register)
        jump = self.scope.fast.get(me.name, 0)
        if jump:
            broker = self.running[me.name]

            def timestamp() -> int:
                broker.clock += 1 + jump
                return broker.clock

            broker.timestamp = timestamp  # type: ignore[method-assign]

    def refuge(self, client: str) -> Incarnation | None:
        living = {b.me.name: b.me for b in self.running.values() if b.alive}
        for name in self.scope.refuge.get(client, ()):
            if name in living:
                return living[name]
        return living[min(living)]

    # ---- default order
    def drain(self) -> None:
        for _ in range(20000):
            channel = self.channels.head()
            if channel is None:
                return
            self.channels.advance(channel)
        raise ViolationError("liveness: does not come to rest")

    def timers(self) -> None:
        for broker in list(self.running.values()):
            broker.wave_age = 21
            self.tick(broker)

    # ---- operations
    def touched_by(self, operation: str) -> set[Any] | None:
        """Return the nodes whose deliveries do not commute with an operation; None means all."""
        word = operation.split()
        client = self.by_name.get(word[0])
        if client:
            return {client.name, client.home or client.trying}
        return {self.running[word[1]].me} if word[0] == "crash" else None

    def is_possible(self, operation: str) -> bool:
        word = operation.split()
        client = self.by_name.get(word[0])
        if client:
            if word[1] == "move":
                return client.home is not None and self.running[word[2]].alive
            return word[1] != "unsub" or any(s.active for s in client.subscriptions.values())
        if word[0] == "inside":
            return any(b.handover is not None for b in self.running.values() if b.alive)
        if word[0] == "back":
            return not self.running[word[1]].alive
        return word[0] not in ("crash", "suspect") or self.running[word[1]].alive

    def operate(self, operation: str, k: int) -> int:
        """Perform an operation; return the number of deviations that it costs."""
        if self.channels.trace:
            self.channels.trace(f"*** {operation}")
        word = operation.split()
        client = self.by_name.get(word[0])
        if client:
            self.client_operation(client, word)
        elif word[0] == "wave":
            self.timers()
        elif word[0] == "jump":
            self.running[word[1]].clock += int(word[2])
        elif word[0] in ("crash", "inside"):  # inside a handover
            return self.crash_now(word[1], k)
        elif word[0] == "back":
            self.restart(word[1])
        elif word[0] == "suspect":
            self.suspect(word[1], word[2].split(",") if len(word) > 2 else self.tree.others[word[1]])
        elif word[0] == "trust":
            self.false.clear()
        elif word[0] in ("cut", "oneway"):
            self.cut(set(word[1].split(",")), word[0] == "cut")
        elif word[0] == "heal":
            self.channels.cuts.clear()
            self.channels.blocked.clear()
        elif word[0] in ("block", "unblock"):  # block b0,b1 b2: no message from b0 or b1 reaches b2, undetected
            for pair in ((p, q) for p in word[1].split(",") for q in word[2].split(",")):
                (self.channels.blocked.add if word[0] == "block" else self.channels.blocked.discard)(pair)
        else:
            raise ValueError(operation)
        return 0

    def client_operation(self, client: Client, word: list[str]) -> None:
        argument = word[2] if len(word) > 2 else "0"
        home = client.home
        if word[1] in ("adv", "sub"):
            wanted: Filter = frozenset(map(int, argument.split(",")))
            (client.advertise if word[1] == "adv" else client.subscribe)(wanted)
        elif word[1] == "unadv":
            client.unadvertise(int(argument))
        elif word[1] == "unsub":
            client.unsubscribe(int(argument))
        elif word[1] == "pub":
            client.publish(int(argument))
        elif word[1] == "reply":
            client.replies += int(argument)
        elif word[1] == "attach":
            client.attach(self.running[argument].me)
        else:
            client.move(self.running[argument].me)
            home = client.trying
        while (client.name, home) in self.channels.channels:  # the first hop is not a choice
            self.channels.advance((client.name, home))

    def crash_now(self, name: str, k: int) -> int:
        broker = self.running[name]
        if not broker.alive or not self.may_crash(name):
            raise NotAllowedError
        broker.alive = False
        self.crash_bookkeeping(broker)
        channels = self.channels.channels
        for channel in [c for c in channels if c[1] in (broker.me, name) and isinstance(c[0], Incarnation | str)]:
            if channel[0] not in ("lost", "retry", "suspect", "return_warm"):
                del channels[channel]
        out = sorted((c for c in channels if c[0] == broker.me), key=str)
        masks: list[set[int]] = [set(range(len(out)))]
        if out:
            masks.append(set())
        if k and len(out) > 1:
            masks += [s for i in range(len(out)) for s in ({i}, set(range(len(out))) - {i})]
        chosen = self.choose(len(masks))
        for i in masks[chosen]:
            del channels[out[i]]
        for other in self.tree.others[name]:
            peer = self.running[other]
            if peer.alive:
                self.channels.put(("suspect", other), self.notice, other, broker.me)
        return int(chosen > 1)

    def crash_bookkeeping(self, broker: Broker) -> None:
        self.cold.add(broker.me.name)
        broker.state = type(broker.state).STOPPED
        self.lose_clients(broker.me)

    def notice(self, observer: str, suspect: Incarnation) -> None:
        """Report a failure to `observer`."""
        broker = self.running[observer]
        if broker.alive:
            self.unreachable[observer, suspect] = 2
            broker.suspect(suspect, True)

    def suspect(self, name: str, observers: list[str]) -> None:
        for observer in observers:
            self.false[observer, self.running[name].me] = FOREVER
            self.channels.put(("suspect", observer), self.notice, observer, self.running[name].me)

    def cut(self, side: set[str], both: bool) -> None:
        """Cut the connections from one side to the rest, in one direction or both."""
        for p in self.names:
            for q in self.names:
                if (p in side) != (q in side) and (both or p in side):
                    self.channels.cuts[p, q] = FOREVER
                    if q in self.tree.others[p]:
                        self.channels.put(("suspect", q), self.notice, q, self.running[p].me)

    # ---- one schedule
    def explore(self, k: int) -> None:
        self.drain()
        for operation in self.scope.setup:
            self.operate(operation, 0)
            self.drain()
        if self.channels.trace:
            self.channels.trace("=== race")
        self.race(k)
        if self.channels.trace:
            self.channels.trace("=== end")
        self.finish()

    def race(self, k: int) -> None:
        simulator = self.channels
        threads = [list(thread) for thread in self.scope.race]
        touched, idle, begun = [True] * len(threads), self.scope.idle, simulator.step
        while True:
            head = simulator.head()
            offered = [
                i for i, t in enumerate(threads) if t and (touched[i] or head is None) and self.is_possible(t[0])
            ]
            for i in offered:
                touched[i] = False
            options: list[tuple[str, int]] = [("operation", i) for i in offered]
            if head is not None:
                options.insert(0, ("step", 0))
                if k > 0 and simulator.step - begun < 400:
                    options += [("hold", FOREVER), ("hold", 5)]
            elif simulator.held:
                options.insert(0, ("release", 0))
            elif idle and (offered or any(threads) or self.scope.idle):
                options.append(("timers", 0))
            if not options:
                break
            what, value = options[self.choose(len(options))] if len(options) > 1 else options[0]
            if what == "step":
                simulator.advance(head)
                if simulator.step - begun > 20000:
                    raise ViolationError("liveness: does not come to rest")
                for i, thread in enumerate(threads):
                    if thread and not touched[i]:
                        nodes = self.touched_by(thread[0])
                        touched[i] = (
                            nodes is None or head[1] in nodes or (head[0] in nodes and thread[0][:5] == "crash")
                        )
                for channel in [c for c, until in simulator.held.items() if until <= simulator.step]:
                    del simulator.held[channel]
            elif what == "operation":
                k -= self.operate(threads[value].pop(0), k)
                touched = [True] * len(threads)
            elif what == "hold":
                if simulator.trace:
                    simulator.trace(f"--- hold {head} {value if value < FOREVER else ''}")
                simulator.held[head] = min(FOREVER, simulator.step + value)
                k -= 1
            elif what == "release":
                simulator.held.clear()
            else:
                idle -= 1
                self.timers()
        for thread in threads:
            for operation in thread:
                if not self.is_possible(operation):
                    raise NotAllowedError
                self.operate(operation, 0)

    def finish(self) -> None:
        """Continue in the default order until the network is quiet and a new position is final everywhere."""
        self.channels.cuts.clear()
        self.channels.blocked.clear()
        self.false.clear()
        for _ in range(40):
            self.drain()
            if self.quiet():
                break
            self.timers()
        else:
            raise ViolationError("liveness: " + self.why())
        top = max(b.clock for b in self.running.values() if b.alive)
        for _ in range(12):
            self.timers()
            self.drain()
            living = [b for b in self.running.values() if b.alive]
            if self.quiet() and min(b.final for b in living) >= top and not any(b.log for b in living):
                self.judge()
                return
        raise ViolationError("liveness: no new final position: " + self.why())


class Chooser:
    """Replays a prefix, then chooses the first option, or sometimes a random one."""

    def __init__(self, prefix: list[int], chance: float = 0.0, seed: float = 0.0) -> None:
        self.prefix, self.chance, self.random = prefix, chance, random.Random(seed)
        self.taken: list[tuple[int, int]] = []

    def __call__(self, count: int) -> int:
        i = len(self.taken)
        choice = 0
        if i < len(self.prefix):
            choice = self.prefix[i]
        elif self.chance and count > 1 and self.random.random() < self.chance:
            choice = self.random.randrange(1, count)
        self.taken.append((choice, count))
        return choice


def once(
    scope: Scope, off: Set[Rule], k: int, chooser: Chooser, trace: Callable[[str], None] | None = None
) -> str | None:
    """Run one schedule; return the violation, if any. Raise NotAllowedError outside the assumptions."""
    exploration = Exploration(scope, off, chooser)
    exploration.channels.trace = trace
    try:
        exploration.explore(k)
    except ViolationError as violation:
        return str(violation)
    except NotAllowedError:
        raise
    except Exception as error:
        return f"exception: {error!r} {traceback.format_exc().strip().splitlines()[-3].strip()}"
    return None


@dataclass
class Result:
    """The result of exploring a scope."""

    schedules: int = 0
    skipped: int = 0
    complete: bool = False
    violation: str = ""
    choices: list[int] = field(default_factory=list)


def search(
    scope: Scope, off: Set[Rule], k: int, seconds: float, sample: int | None = None, limit: int = 10**9
) -> Result:
    """Explore all schedules with at most k deviations depth first, or samples; stop at the first violation."""
    begun, result, prefix = time.monotonic(), Result(), list[int]()
    seeds = random.Random(sample)
    while result.schedules < limit and time.monotonic() - begun < seconds:
        chooser = Chooser(prefix)
        if sample is not None:
            chooser = Chooser([], seeds.choice((0.02, 0.05, 0.1, 0.2)), seeds.random())
        result.schedules += 1
        try:
            violation = once(scope, off, k, chooser)
        except NotAllowedError:
            violation = None
            result.skipped += 1
        if violation:
            result.violation, result.choices = violation, [c for c, _ in chooser.taken]
            while result.choices and result.choices[-1] == 0:
                result.choices.pop()
            return result
        if sample is None:
            taken = chooser.taken
            while taken and taken[-1][0] + 1 >= taken[-1][1]:
                taken.pop()
            if not taken:
                result.complete = True
                return result
            prefix = [c for c, _ in taken]
            prefix[-1] += 1
    return result


def main() -> None:
    from model.scopes import SCOPES, SCRIPTS

    parser = argparse.ArgumentParser(prog="python -m model.explore", description=__doc__)
    parser.add_argument("scopes", nargs="*", default=list(SCOPES))
    parser.add_argument("-k", type=int, default=0)
    parser.add_argument("--off", nargs="*", default=[], choices=[r.name for r in Rule])
    parser.add_argument("--seconds", type=float, default=20, help="per scope")
    parser.add_argument("--sample", type=int)
    parser.add_argument("--show", help="choices, separated by commas")
    arguments = parser.parse_args()
    off = {Rule[name] for name in arguments.off}
    for name in arguments.scopes or SCOPES:
        scope = (SCOPES | SCRIPTS)[name]
        if arguments.show is not None:
            chooser = Chooser([int(c) for c in arguments.show.split(",") if c])
            print(once(scope, off, arguments.k, chooser, print))
            continue
        begun = time.monotonic()
        r = search(scope, off, arguments.k, arguments.seconds, arguments.sample)
        done = "complete" if r.complete else "VIOLATION" if r.violation else "partial"
        print(f"{name:14} k={arguments.k} {r.schedules} schedules ({r.skipped} not allowed) {done}", end=" ")
        print(f"{time.monotonic() - begun:.1f} s", flush=True)
        if r.violation:
            print(f"     {r.violation[:300]}\n     --show {','.join(map(str, r.choices))}", flush=True)


if __name__ == "__main__":
    main()
