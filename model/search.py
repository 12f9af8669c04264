"""Random runs: python -m model.search CLASS FIRST LAST [--off RULE ...] [--seconds N] [--trace] [--shrink]"""

import argparse
import random
import time
import traceback
from collections import Counter
from collections.abc import Set
from dataclasses import replace

from model.checker import ViolationError
from model.routing import Filter
from model.rules import Rule
from model.world import Operation, Scenario, World

CLASSES: dict[str, tuple[str, ...]] = {
    "none": (),
    "move": ("move",),
    "crash": ("crash",),
    "perm": ("crash", "move"),
    "suspect": ("suspect", "move"),
    "all": ("crash", "suspect", "move", "partition", "oneway"),
    "quick": ("crash", "suspect", "move"),
    "double": ("crash", "crash", "suspect", "move"),
    "partition": ("partition", "partition", "move"),
    "oneway": ("oneway", "oneway", "crash"),
}
"""The faults of each class. `quick`: a broker returns and soon crashes again; `double`: f = 2, with neighbours."""


def generate(seed: int, kind: str) -> Scenario:
    """Return a scenario. Half of them are small: 3 to 5 brokers, 2 or 3 clients, about 6 operations, 1 or 2 faults."""
    r = random.Random(f"{kind} {seed}")
    small = r.random() < 0.5
    f = 2 if kind == "double" else r.choice((1, 1, 2))
    count = r.randint(2 * f + 1, 5 if small else 9)
    shape = r.choice(("chain", "random", "random", "star"))
    parents = [
        None if i == 0 else i - 1 if shape == "chain" else 0 if shape == "star" else r.randrange(i)
        for i in range(count)
    ]
    clients = r.randint(2, 3) if small else r.randint(2, 6)
    span = r.choice((60, 100, 200)) if small else r.choice((100, 200, 400))
    operations: list[Operation] = []

    def wanted() -> Filter:
        topics = 3 if small else 5
        return frozenset(r.sample(range(topics), min(topics, r.choice((1, 1, 2, 2, 3, 5)))))

    for c in range(clients):
        operations.append((r.random() * span / 4, "adv", c, wanted()))
    for _ in range(r.randint(4, 8) if small else r.randint(10, 40)):
        what = r.choice(("pub",) * 6 + ("sub",) * 4 + ("adv", "unadv", "unsub", "unsub", "replies"))
        x = wanted() if what in ("adv", "sub") else r.randint(1, 9)
        operations.append((r.random() * span, what, r.randrange(clients), x))
    faults = CLASSES[kind]
    for _ in range(r.randint(1, 2 if small else 6) if faults else 0):
        what, at, a = r.choice(faults), r.random() * span, r.randrange(count)
        operations.append((at, what, a, r.randrange(count) if what == "move" else r.choice((60, 200, 500))))
        if what in ("crash", "suspect") and kind in ("quick", "double"):
            if kind == "double":
                near = [i for i in range(count) if parents[i] == a or parents[a] == i] + [r.randrange(count)]
                operations.append((at + r.random() * 60, r.choice(("crash", "crash", "suspect")), r.choice(near), 0))
            for _ in range(3):
                operations.append((at + r.random() * 120, "restart", a, 0))
                operations.append((at + r.random() * 120, "crash", a, 0))
        if what == "crash" and kind != "perm" and r.random() < 0.7:
            operations.append((at + r.random() * 150, "restart", a, 0))
    operations.sort(key=lambda o: o[:2])
    return Scenario(seed, tuple(parents), f, tuple(r.randrange(count) for _ in range(clients)), tuple(operations))


def attempt(scenario: Scenario, off: Set[Rule] = frozenset()) -> tuple[str | None, World | None]:
    """Run a scenario; return the violation, if any. An exception is a violation, too."""
    world = None
    try:
        world = World(scenario, off)
        world.run()
    except ViolationError as violation:
        return str(violation), world
    except Exception as error:
        return f"exception: {error!r} {traceback.format_exc().strip().splitlines()[-3].strip()}", world
    return None, world


def kind_of(violation: str) -> str:
    return violation.split(":")[0]


def shrink(scenario: Scenario, off: Set[Rule], kind: str, seconds: float = 60) -> Scenario:
    """Remove operations while a run of some seed still fails in the same way."""
    begun, seeds = time.monotonic(), [scenario.seed, *range(1, 12)]

    def failing(candidate: Scenario) -> Scenario | None:
        for seed in seeds:
            tried = replace(candidate, seed=seed)
            violation, _ = attempt(tried, off)
            if violation and kind_of(violation) == kind:
                return tried
        return None

    size = max(1, len(scenario.operations) // 2)
    while time.monotonic() - begun < seconds:
        i, progress = 0, False
        while i < len(scenario.operations) and time.monotonic() - begun < seconds:
            operations = scenario.operations[:i] + scenario.operations[i + size :]
            found = failing(replace(scenario, operations=operations)) if operations else None
            if found:
                scenario, progress = found, True
            else:
                i += size
        if size == 1 and not progress:
            break
        size = max(1, size // 2)
    return scenario


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m model.search", description=__doc__)
    parser.add_argument("kind", choices=CLASSES)
    parser.add_argument("first", type=int)
    parser.add_argument("last", type=int)
    parser.add_argument("--off", nargs="*", default=[], choices=[r.name for r in Rule])
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--trace", action="store_true")
    parser.add_argument("--shrink", action="store_true")
    arguments = parser.parse_args()
    off = {Rule[name] for name in arguments.off}
    if arguments.trace or arguments.shrink:
        scenario = generate(arguments.first, arguments.kind)
        violation, _ = attempt(scenario, off)
        if arguments.shrink and violation:
            scenario = shrink(scenario, off, kind_of(violation))
        print(scenario)
        if arguments.trace:
            world = World(scenario, off)
            world.simulator.trace = print
            world.run()
        print(attempt(scenario, off)[0])
        return
    run_all(arguments.kind, range(arguments.first, arguments.last), off, arguments.seconds)


def run_all(kind: str, seeds: range, off: Set[Rule], seconds: float) -> None:
    """Run as many scenarios as the time allows, and print the violations."""
    begun, runs, messages = time.monotonic(), 0, 0
    stats: Counter[str] = Counter()
    bad: dict[str, list[int]] = {}
    for seed in seeds:
        if time.monotonic() - begun > seconds:
            break
        violation, world = attempt(generate(seed, kind), off)
        runs += 1
        if world:
            messages += world.simulator.messages
            stats.update(world.stats)
        if violation:
            bad.setdefault(kind_of(violation), []).append(seed)
            if len(bad[kind_of(violation)]) <= 3:
                print(seed, violation[:900], flush=True)
    total = sum(map(len, bad.values()))
    names = sorted(rule.name for rule in off)
    print(f"{kind} off={names}: {runs} runs from {seeds.start}, {total} bad, {time.monotonic() - begun:.0f} s")
    print(f"   {messages} messages, {dict(stats)}; { ({k: (len(s), s[:8]) for k, s in bad.items()}) }", flush=True)


if __name__ == "__main__":
    main()
