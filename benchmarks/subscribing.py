"""Measures the cost of one more subscription: the first thousands compared with the last, in a network of 7 brokers.

    python benchmarks/subscribing.py            # 10,000 and 100,000 subscriptions of each kind: minutes
    python benchmarks/subscribing.py --quick    # 4,000 of each kind
    python benchmarks/subscribing.py --json     # figures for a machine

The network is a binary tree of 7 brokers in the simulator, with a publisher at each that advertises everything, and
clients with 10 subscriptions each. All subscriptions differ and are made one after the other. Measured are the
processor time of all brokers' steps, and the longest single step. The cost depends on how filters overlap, so there are
four kinds:

    conditions   3 to 5 conditions on some of 20 attributes, as in `benchmarks/filters.py`: hardly any covers another
    topics       ranges of prices under 1,000 topics: some of them cover others
    nested       `price > N`, each wider than those before it: all are sent everywhere, and each covers all before
    covered      `price > N`, each narrower than those before it: one is sent, the others are represented by it

The last thousands must cost at most `GROWTH_MOST` times the first, or the program fails.
"""

import argparse
import gc
import json
import random
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

sys.path.insert(0, str(Path(__file__).parent.parent))

from benchmarks.filters import filter_text

from gapless.overlay import binary
from gapless.protocol import Advertise, BrokerNode, BrokerPlace, Effect, Input, Subscribe
from gapless.registry import find_protocol
from gapless.simulator import Latency, Settings, Simulation

DEPTH = 2
PER_CLIENT = 10
"""The number of subscriptions per client."""
LATENCY_US = 100
APART_US = 1_000
"""The time between two subscriptions, long enough for each to reach all brokers."""
BEGIN_US = 1_000_000
PARTS = 10
"""The number of parts of the run; the first and the last are compared."""
GROWTH_MOST = 2.0

Draw = Callable[[random.Random, int, int], str]


def conditions(dice: random.Random, number: int, count: int) -> str:
    return filter_text(dice, 0.0001)


def topics(dice: random.Random, number: int, count: int) -> str:
    low = dice.randint(0, 900_000)
    return f"topic = 't{dice.randrange(1_000)}' AND price BETWEEN {low} AND {low + dice.randint(1, 100_000)}"


def nested(dice: random.Random, number: int, count: int) -> str:
    return f"price > {count - number}"


def covered(dice: random.Random, number: int, count: int) -> str:
    return f"price > {number}"


KINDS: dict[str, Draw] = {"conditions": conditions, "topics": topics, "nested": nested, "covered": covered}


class Clock(BrokerNode):
    """A broker whose steps are timed, by part of the run."""

    spent: list[float]
    longest: float

    def __init__(self, node: BrokerNode, part_us: int) -> None:
        self._node = node
        self._part_us = part_us

    def step(self, item: Input, now: int) -> Sequence[Effect]:
        """Forward the input and measure the step."""
        begin = time.process_time()
        effects = self._node.step(item, now)
        seconds = time.process_time() - begin
        if now >= BEGIN_US:
            Clock.spent[min((now - BEGIN_US) // self._part_us, PARTS - 1)] += seconds
            Clock.longest = max(Clock.longest, seconds)
        return effects

    def state_size(self) -> Mapping[str, int]:
        """Return the size of the broker's state."""
        return self._node.state_size()


def measure(kind: str, count: int, per_client: int, seed: int) -> dict[str, Any]:
    """Return one row: the cost of a subscription in the first and in the last part of the run."""
    dice = random.Random(seed)
    overlay = binary(DEPTH)
    gapless = find_protocol("gapless")
    part_us = count * APART_US // PARTS

    def make_broker(place: BrokerPlace, options: Any) -> BrokerNode:
        return Clock(gapless.broker(place, options), part_us)

    simulation = Simulation(
        overlay,
        msgspec.structs.replace(gapless, broker=make_broker),
        options={"wave_ms": 3_600_000},
        settings=Settings(latency=Latency(LATENCY_US, LATENCY_US)),
    )
    for broker in overlay.brokers:
        simulation.add_client(f"p-{broker}", broker)
        simulation.call(f"p-{broker}", Advertise(f"a-{broker}", "TRUE"), at=0)
    clients = max(1, count // per_client)
    for number in range(clients):
        simulation.add_client(f"c{number}", dice.choice(overlay.brokers))
    for number, text in enumerate(_different(KINDS[kind], dice, count)):
        at = BEGIN_US + number * APART_US
        simulation.call(f"c{number % clients}", Subscribe(f"s{number}", text), at=at)
    Clock.spent, Clock.longest = [0.0] * PARTS, 0.0
    gc.collect()
    result = simulation.run(settle=APART_US)
    known = sum(sizes["subscriptions"] for sizes in result.state_sizes_by_broker.values())
    first, last = (Clock.spent[part] * PARTS / count for part in (0, PARTS - 1))
    return {
        "kind": kind,
        "subscriptions": count,
        "per_client": per_client,
        "entries": known,
        "first_us": first * 1e6,
        "last_us": last * 1e6,
        "growth": last / first,
        "per_s": count / sum(Clock.spent),
        "longest_step_ms": Clock.longest * 1e3,
    }


def _different(draw: Draw, dice: random.Random, count: int) -> list[str]:
    texts: dict[str, None] = {}
    while len(texts) < count:
        texts[draw(dice, len(texts), count)] = None
    return list(texts)


def show(row: dict[str, Any]) -> None:
    note = "" if row["growth"] <= GROWTH_MOST else f"   above {GROWTH_MOST:g}"
    print(
        f"{row['kind']:<11} {row['subscriptions']:>8,} subscriptions, {row['entries']:>8,} entries: first"
        f" {row['first_us']:>6,.0f} µs, last {row['last_us']:>6,.0f} µs, {row['growth']:4.1f} times;"
        f" {row['per_s']:>6,.0f}/s, longest step {row['longest_step_ms']:,.1f} ms{note}",
        flush=True,
    )


def main() -> int:
    """Measure and print; fail if the last part costs more than allowed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="4,000 subscriptions of each kind")
    parser.add_argument("--count", type=int, action="append", help="so many instead; may be said several times")
    parser.add_argument(
        "--kind", choices=list(KINDS), action="append", help="only this kind; may be said several times"
    )
    parser.add_argument("--per-client", type=int, default=PER_CLIENT, help="subscriptions of one client")
    parser.add_argument("--json", action="store_true", help="print JSON only")
    parser.add_argument("--out", type=Path, help="write the figures as JSON, too")
    parser.add_argument("--seed", type=int, default=0, help="of filters, and of where everybody sits")
    arguments = parser.parse_args()
    rows = []
    for count in arguments.count or ((4_000,) if arguments.quick else (10_000, 100_000)):
        for kind in arguments.kind or KINDS:
            rows.append(measure(kind, count, arguments.per_client, arguments.seed))
            if not arguments.json:
                show(rows[-1])
    figures = json.dumps({"rows": rows, "most_growth": GROWTH_MOST})
    if arguments.out:
        arguments.out.write_text(figures)
    if arguments.json:
        print(figures)
    return 0 if max(row["growth"] for row in rows) <= GROWTH_MOST else 1


if __name__ == "__main__":
    sys.exit(main())
