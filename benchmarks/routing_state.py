"""What coverage saves: entries in the brokers' tables, and subscription messages between brokers.

    python benchmarks/routing_state.py            # about ten seconds
    python benchmarks/routing_state.py --quick    # only what must hold
    python benchmarks/routing_state.py --json     # figures for a machine

A binary tree of 63 brokers, 6 publishers at random leaves, 500 subscriptions at random brokers. Of these, 50 are wide
(10 topics, 5 nested ranges each); the other 450 are narrow ranges, and every wide one of their topic covers them. The
same script runs with coverage and without. With the wide ones there first, coverage must save a factor of
`RATIO_LEAST` in both figures, or the program fails. Two harder cases are shown as they are:

- mixed arrival: what a narrow one has spread already stays when a wide one comes after it;
- 50 topics: each narrow one has a single cover, somewhere in the tree, and travels until it meets its way.
"""

import argparse
import json
import random
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from gapless.overlay import binary
from gapless.protocol import Advertise, BrokerNode, BrokerPlace, Effect, Input, Send, Subscribe
from gapless.protocols.gapless.messages import AddSubscription, Frame, RemoveSubscription, Tree
from gapless.registry import find_protocol
from gapless.simulator import Latency, Settings, Simulation

DEPTH = 5
WIDE = 50
NARROW = 450
PUBLISHERS = 6
RATIO_LEAST = 5.0
LATENCY_US = 5_000
APART_US = 1_000
"""Between two subscriptions: others are on their way meanwhile."""
CASES = (("covering first", 10), ("mixed", 10), ("covering first", 50))
"""Order of arrival, and number of topics; the first is the one that must hold."""


class Cost(msgspec.Struct, frozen=True):
    """What the subscriptions of one run cost."""

    entries: int
    """In all brokers' tables, once all is quiet."""
    messages: int
    """That add or remove a subscription, from broker to broker."""


class Counter(BrokerNode):
    """A broker of which the subscription messages are counted."""

    sent = 0

    def __init__(self, node: BrokerNode) -> None:
        self._node = node

    def step(self, item: Input, now: int) -> Sequence[Effect]:
        """Pass the input on, and count."""
        effects = self._node.step(item, now)
        for effect in effects:
            if isinstance(effect, Send) and isinstance(effect.message, Frame) and isinstance(effect.message.body, Tree):
                Counter.sent += isinstance(effect.message.body.body, AddSubscription | RemoveSubscription)
        return effects

    def state_size(self) -> Mapping[str, int]:
        """Of the broker."""
        return self._node.state_size()


def draw_filters(topics: int, dice: random.Random) -> list[str]:
    """The wide filters, then the narrow ones."""
    levels = [number // topics * 20 for number in range(WIDE)]
    filters = [_range(number % topics, level, 1000 - level) for number, level in enumerate(levels)]
    for number in range(NARROW):
        low = dice.randint(100, 850)
        filters.append(_range(number % topics, low, low + dice.randint(1, 50)))
    return filters


def _range(topic: int, low: int, high: int) -> str:
    return f"topic = {topic} AND x BETWEEN {low} AND {high}"


def run(order: str, topics: int, coverage: bool, seed: int) -> Cost:
    """Let everybody subscribe, and look at what it came to."""
    dice = random.Random(seed)
    overlay = binary(DEPTH)
    gapless = find_protocol("gapless")

    def make_broker(place: BrokerPlace, options: Any) -> BrokerNode:
        return Counter(gapless.broker(place, options))

    simulation = Simulation(
        overlay,
        msgspec.structs.replace(gapless, broker=make_broker),
        options={"coverage": coverage, "wave_ms": 60_000},
        settings=Settings(latency=Latency(LATENCY_US, LATENCY_US)),
    )
    leaves = overlay.brokers[len(overlay.brokers) // 2 :]
    for number, broker in enumerate(dice.sample(leaves, PUBLISHERS)):
        simulation.add_client(f"p{number}", broker)
        simulation.call(f"p{number}", Advertise(f"a{number}", "TRUE"), at=0)
    wanted = [(text, dice.choice(overlay.brokers)) for text in draw_filters(topics, dice)]
    if order == "mixed":
        dice.shuffle(wanted)
    for number, (text, broker) in enumerate(wanted):
        simulation.add_client(f"c{number}", broker)
        simulation.call(f"c{number}", Subscribe(f"s{number}", text), at=1_000_000 + number * APART_US)
    Counter.sent = 0
    result = simulation.run(settle=4 * LATENCY_US * overlay.diameter)
    return Cost(sum(sizes["subscriptions"] for sizes in result.state_sizes_by_broker.values()), Counter.sent)


def measure(order: str, topics: int, seed: int = 0) -> dict[str, Any]:
    """Both costs of one case, and their ratios."""
    without, with_coverage = run(order, topics, False, seed), run(order, topics, True, seed)
    return {
        "order": order,
        "topics": topics,
        "entries": with_coverage.entries,
        "entries_without": without.entries,
        "entries_ratio": round(without.entries / with_coverage.entries, 2),
        "messages": with_coverage.messages,
        "messages_without": without.messages,
        "messages_ratio": round(without.messages / with_coverage.messages, 2),
    }


def main() -> int:
    """Measure, print, and fail if coverage saves less than we ask of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="only the case that must hold")
    parser.add_argument("--json", action="store_true", help="print JSON only")
    parser.add_argument("--out", type=Path, help="write the figures as JSON, too")
    parser.add_argument("--seed", type=int, default=0, help="where everybody sits")
    arguments = parser.parse_args()
    rows = [measure(*case, arguments.seed) for case in (CASES[:1] if arguments.quick else CASES)]
    figures = json.dumps({"rows": rows, "least_ratio": RATIO_LEAST})
    if arguments.out:
        arguments.out.write_text(figures)
    if arguments.json:
        print(figures)
    else:
        print(
            f"{2 ** (DEPTH + 1) - 1} brokers, {PUBLISHERS} publishers, {WIDE + NARROW} subscriptions, {NARROW} covered"
        )
        for row in rows:
            for kind in ("entries", "messages"):
                ratio = row[f"{kind}_ratio"]
                note = "" if ratio >= RATIO_LEAST else f"   below {RATIO_LEAST:g}"
                print(
                    f"{row['order']:<14} {row['topics']:>3} topics  {kind:<9} {row[kind]:>6,} with coverage  "
                    f"{row[f'{kind}_without']:>7,} without  {ratio:5.1f} times{note}"
                )
    return 0 if min(rows[0]["entries_ratio"], rows[0]["messages_ratio"]) >= RATIO_LEAST else 1


if __name__ == "__main__":
    sys.exit(main())
