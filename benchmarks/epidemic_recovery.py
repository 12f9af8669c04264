"""Measures how many lost events each recovery strategy of `epidemic` restores, and how many messages it sends.

    python benchmarks/epidemic_recovery.py            # minutes
    python benchmarks/epidemic_recovery.py --quick    # only the required result
    python benchmarks/epidemic_recovery.py --json     # figures for a machine

Brokers form a random tree of degree 4 at most. Each pattern matches one attribute, and each event has a few of them.
Publishers publish steadily, and only events in the middle of the run are counted. Before that, every subscriber has
time to receive an event of every source, without which pull cannot notice a loss; after that, there is time to recover.

1. 100 brokers, 20 % loss on every link. Without recovery a large share is lost; push and combined pull must deliver
   99 % (`DELIVERED_LEAST`), or the program fails.
2. The paper says that pull is less effective if subscriptions hardly intersect. The benchmark varies the number of
   subscribers for each pattern.
3. The paper says that push is less effective with many patterns, and that the number of patterns that an event matches
   is decisive. The benchmark varies the number of patterns, the number of matches, and the number of independent
   groups.
4. No loss, but links of the tree are replaced all the time.
"""

import argparse
import json
import os
import random
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import track
from rich.table import Table

from gapless.overlay import random_tree
from gapless.simulator import Scenario, run_scenario
from gapless.simulator.relinking import ChangingTree
from gapless.simulator.scenario import (
    Action,
    Client,
    LatencySpec,
    Network,
    ProtocolChoice,
    PublishAction,
    Relink,
    Run,
    SubscribeAction,
)
from gapless.trace import Trace
from gapless_papers.protocols.epidemic.options import Recovery

RECOVERIES: tuple[Recovery, ...] = ("none", "push", "subscriber-pull", "publisher-pull", "combined-pull")
DELIVERED_LEAST = 0.99
"""The required share of delivered events for push and combined pull, with 20 % loss on each link."""
LOST_LEAST = 0.5
"""The minimum loss without recovery, which shows that the network loses enough."""
START_MS = 2000.0
"""The time at which all subscriptions are known everywhere, although their messages can be lost."""


class Case(msgspec.Struct, frozen=True):
    """The parameters of a run, as varied in the paper's discussion."""

    recovery: Recovery
    brokers: int = 100
    loss: float = 0.2
    publishers: int = 4
    rate: float = 50.0
    """Events per second of each publisher."""
    patterns: int = 10
    patterns_per_event: int = 2
    subscribers: int = 100
    patterns_per_subscriber: int = 1
    groups: int = 1
    """The number of independent groups of patterns, publishers and subscribers."""
    relink_ms: float = 0.0
    """The interval between replacements of a link; 0 means never."""
    gap_ms: float = 0.0
    """The time without either the old or the new link."""
    warm_ms: float = 14_000.0
    measured_ms: float = 3_000.0
    drain_ms: float = 4_000.0
    options: dict[str, Any] = {}
    seed: int = 0

    @property
    def end_ms(self) -> float:
        """Return the time of the last publication."""
        return START_MS + self.warm_ms + self.measured_ms + self.drain_ms


class Figures(msgspec.Struct, frozen=True):
    """The result of a case."""

    case: Case
    due: int
    """The number of pairs of an event in the measured time and a matching subscription."""
    delivered: float
    """The share of these that was delivered."""
    events: int
    gossip: int
    requests: int
    retransmissions: int
    publications: int
    seconds: float


# ---- from a case to a scenario


def scenario_of(case: Case) -> Scenario:
    """Return the case as a scenario."""
    dice = random.Random(f"{case.seed}/workload")
    names = [f"b{number}" for number in range(case.brokers)]
    places = [*dice.sample(names, case.brokers), *(dice.choice(names) for _ in range(case.subscribers))]
    subscribers = [Client(f"c{number}", places[number]) for number in range(case.subscribers)]
    publishers = [Client(f"p{number}", dice.choice(names)) for number in range(case.publishers)]
    actions = [*_subscriptions(case), *_publications(case, dice)]
    return Scenario(
        name=f"epidemic-{case.recovery}",
        network=Network(
            shape="random", brokers=case.brokers, tree_seed=case.seed, max_degree=4, loss=case.loss,
            latency=LatencySpec(ms=5.0),
        ),
        protocol=ProtocolChoice("epidemic", {"recovery": case.recovery, **case.options}),
        run=Run(seed=case.seed, settle_ms=500.0, max_steps=500_000_000),
        clients=(*subscribers, *publishers),
        actions=tuple(sorted(actions, key=lambda action: action.at_ms)),
        faults=tuple(_relinks(case, dice)),
    )  # fmt: skip


def _subscriptions(case: Case) -> Iterator[Action]:
    """Return the patterns of each subscriber, so that all patterns have equally many."""
    size = case.patterns // case.groups
    for number in range(case.subscribers):
        group, place = number % case.groups, number // case.groups
        for turn in range(case.patterns_per_subscriber):
            pattern = group * size + (place * case.patterns_per_subscriber + turn) % size
            yield SubscribeAction(0.0, f"c{number}", f"s{number}.{turn}", f"p{pattern} = 1")


def _publications(case: Case, dice: random.Random) -> Iterator[Action]:
    size = case.patterns // case.groups
    for number in range(case.publishers):
        group = range(number % case.groups * size, (number % case.groups + 1) * size)
        at_ms = START_MS + dice.uniform(0, 1000 / case.rate)
        while at_ms < case.end_ms:
            patterns = dice.sample(group, case.patterns_per_event)
            yield PublishAction(round(at_ms, 3), f"p{number}", {f"p{pattern}": 1 for pattern in patterns})
            at_ms += 1000 / case.rate


def _relinks(case: Case, dice: random.Random) -> Iterator[Relink]:
    tree = ChangingTree(random_tree(case.brokers, case.seed, 4))
    at_ms = START_MS
    while case.relink_ms and at_ms < case.end_ms:
        overlay = tree.overlay
        old = dice.choice(overlay.edges)
        near = [name for name in overlay.brokers if overlay.distance(name, old[0]) < overlay.distance(name, old[1])]
        far = sorted(set(overlay.brokers).difference(near))
        new = (dice.choice(near), dice.choice(far))
        if set(new) != set(old):
            tree.take_away(old, new)
            tree.bring(new)
            yield Relink(at_ms, old, new, case.gap_ms)
            at_ms += case.relink_ms


# ---- from a run to figures


def measure(case: Case) -> Figures:
    """Run the case and return its result."""
    scenario = scenario_of(case)
    start = time.perf_counter()
    result = run_scenario(scenario)
    seconds = time.perf_counter() - start
    assert result.trace is not None
    due, came = _deliveries(result.trace, START_MS + case.warm_ms, START_MS + case.warm_ms + case.measured_ms)
    counts = result.message_counts
    return Figures(
        case=case,
        due=due,
        delivered=came / due,
        events=len(result.trace.events),
        gossip=sum(counts.get(kind, 0) for kind in ("PushDigest", "SubscriberPull", "PublisherPull")),
        requests=counts.get("Request", 0),
        retransmissions=counts.get("Retransmission", 0),
        publications=counts.get("Publication", 0),
        seconds=seconds,
    )


def _deliveries(trace: Trace, since_ms: float, until_ms: float) -> tuple[int, int]:
    """Return how many deliveries of events in the measured time were due, and how many arrived."""
    wanted: dict[str, list[str]] = {}
    for subscription in trace.subscriptions:
        wanted.setdefault(subscription.filter.split()[0], []).append(subscription.subscription_id)
    due = {
        (event.event_id, subscription)
        for event in trace.events
        if since_ms <= event.published_ms < until_ms
        for pattern in json.loads(event.attributes)
        for subscription in wanted.get(pattern, ())
    }
    came = {(row.event_id, row.subscription_id) for row in trace.history if row.kind == "deliver"}
    return len(due), len(due & came)


# ---- comparisons from the paper

SMALL: dict[str, Any] = {
    "brokers": 50, "rate": 40.0, "warm_ms": 5_000.0, "measured_ms": 3_000.0, "drain_ms": 3_000.0,
}  # fmt: skip
"""A smaller network for the comparisons."""

INTERSECTION = tuple(
    (f"{count} for each", {**SMALL, "patterns": 5, "patterns_per_event": 1, "subscribers": 5 * count})
    for count in (10, 4, 2, 1)
)
PATTERNS = tuple(
    (label, {**SMALL, "patterns": patterns, "subscribers": 3 * patterns, "options": {"buffer": 300}, **more})
    for label, patterns, more in (
        ("10", 10, {"patterns_per_event": 1}),
        ("40", 40, {"patterns_per_event": 1}),
        ("160", 160, {"patterns_per_event": 1}),
        ("40, 5 an event", 40, {"patterns_per_event": 5}),
        ("40, 10 an event", 40, {"patterns_per_event": 10}),
        ("160 in 4 groups", 160, {"patterns_per_event": 1, "groups": 4, "options": {"buffer": 300, "cached": "own"}}),
    )
)
"""The numbers of patterns, each with 3 subscribers."""
RELINKS = tuple(
    (f"every {every:g} ms", {**SMALL, "loss": 0.0, "relink_ms": every, "gap_ms": 50.0, "subscribers": 50})
    for every in (1000.0, 300.0, 100.0)
)
QUESTIONS: tuple[tuple[str, str, Sequence[tuple[str, dict[str, Any]]]], ...] = (
    ("Few subscribers for each pattern", "subscribers", INTERSECTION),
    ("Many patterns, caches of 300 events", "patterns", PATTERNS),
    ("No loss, but links that are replaced", "a relink", RELINKS),
)


def run_all(cases: Sequence[Case], quiet: bool) -> list[Figures]:
    """Run the cases on all cores."""
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        done = pool.map(measure, cases)
        console = Console(stderr=True)
        hidden = quiet or not console.is_terminal
        return list(track(done, "running", len(cases), console=console, transient=True, disable=hidden))


def _main_table(rows: Sequence[Figures]) -> Table:
    case = rows[0].case
    title = f"{case.brokers} brokers, {case.loss:.0%} loss on each link, {rows[0].events:,} events"
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("recovery", no_wrap=True)
    for heading in ("delivered", "× none", "gossip", "requests", "resent", "× messages", "s"):
        table.add_column(heading, justify="right")
    for row in rows:
        total = row.gossip + row.requests + row.retransmissions + row.publications
        table.add_row(
            row.case.recovery, f"{row.delivered:.2%}", f"{row.delivered / rows[0].delivered:.1f}",
            *(f"{count / row.events:.1f}" for count in (row.gossip, row.requests, row.retransmissions)),
            f"{total / rows[0].publications:.1f}", f"{row.seconds:.1f}",
        )  # fmt: skip
    table.caption = "gossip, requests, resent: per event; × messages: all of them; s: to simulate"
    return table


def _question_table(title: str, heading: str, labels: Sequence[str], rows: Sequence[Figures]) -> Table:
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column(heading, no_wrap=True)
    for recovery in RECOVERIES:
        table.add_column(recovery.replace("-", " "), justify="right")
    for number, label in enumerate(labels):
        part = rows[number * len(RECOVERIES) : (number + 1) * len(RECOVERIES)]
        lost = 1 - part[0].delivered
        shares = [f"{row.delivered:.1%} {(row.delivered - part[0].delivered) / lost:4.0%}" for row in part[1:]]
        table.add_row(label, f"{part[0].delivered:.1%}", *shares)
    table.caption = "delivered, and how much of what none loses was recovered"
    return table


def main() -> int:
    """Measure and print; fail if too few events are recovered."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="only what must hold")
    parser.add_argument("--json", action="store_true", help="print JSON only")
    parser.add_argument("--out", type=Path, help="write the figures as JSON, too")
    parser.add_argument("--seed", type=int, default=0, help="of the tree, the workload and all losses")
    arguments = parser.parse_args()
    cases = [Case(recovery, seed=arguments.seed) for recovery in RECOVERIES]
    questions = () if arguments.quick else QUESTIONS
    for _, _, variants in questions:
        cases += [Case(recovery, seed=arguments.seed, **more) for _, more in variants for recovery in RECOVERIES]
    rows = run_all(cases, arguments.json)
    by_recovery = {row.case.recovery: row.delivered for row in rows[: len(RECOVERIES)]}
    held = min(by_recovery["push"], by_recovery["combined-pull"]) >= DELIVERED_LEAST
    held = held and 1 - by_recovery["none"] >= LOST_LEAST
    figures = json.dumps({"rows": msgspec.to_builtins(rows), "delivered_least": DELIVERED_LEAST, "held": held})
    if arguments.out:
        arguments.out.write_text(figures)
    if arguments.json:
        print(figures)
        return 0 if held else 1
    console = Console()
    console.print(_main_table(rows[: len(RECOVERIES)]))
    start = len(RECOVERIES)
    for title, heading, variants in questions:
        end = start + len(variants) * len(RECOVERIES)
        console.print()
        console.print(_question_table(title, heading, [label for label, _ in variants], rows[start:end]))
        start = end
    if not held:
        console.print(f"push and combined-pull must deliver {DELIVERED_LEAST:.0%}", style="bold red")
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
