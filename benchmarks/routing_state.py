"""Measures the savings by coverage: entries in the brokers' tables, and subscription messages between brokers.

    python benchmarks/routing_state.py            # about ten seconds
    python benchmarks/routing_state.py --quick    # only the required result
    python benchmarks/routing_state.py --json     # figures for a machine

The network is a binary tree of 63 brokers, with 6 publishers at random leaves and 500 subscriptions at random brokers.
Of these, 50 are wide (10 topics, 5 nested ranges each); the other 450 are narrow ranges, each covered by every wide one
of its topic.

The figures of the protocol are measured. They are compared with the cost of the same subscriptions without coverage,
which follows from the tree: each subscription has an entry at every broker on its paths to the publishers ("paths"),
and is sent once over every link of these paths; if subscriptions were flooded, each would have an entry at every
broker. A run in which no subscription covers another checks that calculation: measured entries and messages must be
exactly those of the paths, or the program fails. If the wide subscriptions arrive first, coverage must reduce both
figures by a factor of `RATIO_LEAST`, or the program fails, too. Three harder cases are shown without a required result:

- mixed arrival: entries of a narrow subscription remain when a wide one arrives after it;
- 50 topics: each narrow subscription has a single cover, somewhere in the tree, and is sent until it meets the path of
  that cover;
- a burst: a subscription arrives every millisecond, and can represent others only once it is active.
"""

import argparse
import json
import random
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from gapless.overlay import Overlay, binary
from gapless.protocol import Advertise, BrokerNode, BrokerPlace, Effect, Input, Send, Subscribe
from gapless.protocols.gapless.link_messages import AddSubscription, LinkMessage, RemoveSubscription
from gapless.protocols.gapless.messages import Frame
from gapless.registry import find_protocol
from gapless.simulator import Latency, Settings, Simulation

DEPTH = 5
WIDE = 50
NARROW = 450
PUBLISHERS = 6
RATIO_LEAST = 5.0
LATENCY_US = 5_000
APART_US, BURST_US = 20_000, 1_000
"""The time between two subscriptions. One takes up to 100 ms to become active, so several overlap in a burst."""
CASES = (
    ("covering first", 10, APART_US),
    ("mixed", 10, APART_US),
    ("covering first", 50, APART_US),
    ("burst", 10, BURST_US),
)
"""The order of arrival, number of topics, and time between subscriptions; the first case has a required result."""
APART = "none covers another"


class Cost(msgspec.Struct, frozen=True):
    """The cost of the subscriptions in one run."""

    entries: int
    """The number of entries in all brokers' tables at the end."""
    messages: int
    """The number of messages between brokers that add or remove a subscription, without notices of activation."""


class Counter(BrokerNode):
    """A broker that counts its subscription messages."""

    sent = 0

    def __init__(self, node: BrokerNode) -> None:
        self._node = node

    def step(self, item: Input, now: int) -> Sequence[Effect]:
        """Forward the input and count messages."""
        effects = self._node.step(item, now)
        for effect in effects:
            message = effect.message if isinstance(effect, Send) else None
            if isinstance(message, Frame) and isinstance(message.body, LinkMessage):
                body = message.body.body
                Counter.sent += isinstance(body, AddSubscription | RemoveSubscription)
        return effects

    def state_size(self) -> Mapping[str, int]:
        """Return the size of the broker's state."""
        return self._node.state_size()


def draw_filters(topics: int, dice: random.Random) -> list[str]:
    """Return the wide filters, then the narrow ones."""
    levels = [number // topics * 20 for number in range(WIDE)]
    filters = [_range(number % topics, level, 1000 - level) for number, level in enumerate(levels)]
    for number in range(NARROW):
        low = dice.randint(100, 850)
        filters.append(_range(number % topics, low, low + dice.randint(1, 50)))
    return filters


def draw_apart() -> list[str]:
    """Return as many filters, of which none covers another."""
    return [_range(number, 0, 1000) for number in range(WIDE + NARROW)]


def _range(topic: int, low: int, high: int) -> str:
    return f"topic = {topic} AND x BETWEEN {low} AND {high}"


def run(order: str, topics: int, apart_us: int, seed: int) -> tuple[Cost, Cost]:
    """Make all subscriptions; return their cost, and their cost without coverage."""
    dice = random.Random(seed)
    overlay = binary(DEPTH)
    gapless = find_protocol("gapless")

    def make_broker(place: BrokerPlace, options: Any) -> BrokerNode:
        return Counter(gapless.broker(place, options))

    simulation = Simulation(
        overlay,
        msgspec.structs.replace(gapless, broker=make_broker),
        options={"wave_ms": 60_000},
        settings=Settings(latency=Latency(LATENCY_US, LATENCY_US)),
    )
    leaves = overlay.brokers[len(overlay.brokers) // 2 :]
    publishers = dice.sample(leaves, PUBLISHERS)
    for number, broker in enumerate(publishers):
        simulation.add_client(f"p{number}", broker)
        simulation.call(f"p{number}", Advertise(f"a{number}", "TRUE"), at=0)
    texts = draw_apart() if order == APART else draw_filters(topics, dice)
    wanted = [(text, dice.choice(overlay.brokers)) for text in texts]
    if order == "mixed":
        dice.shuffle(wanted)
    for number, (text, broker) in enumerate(wanted):
        simulation.add_client(f"c{number}", broker)
        simulation.call(f"c{number}", Subscribe(f"s{number}", text), at=1_000_000 + number * apart_us)
    Counter.sent = 0
    result = simulation.run(settle=4 * LATENCY_US * overlay.diameter)
    entries = sum(sizes["subscriptions"] for sizes in result.state_sizes_by_broker.values())
    return Cost(entries, Counter.sent), without_coverage(overlay, publishers, [broker for _, broker in wanted])


def without_coverage(overlay: Overlay, publishers: Sequence[str], subscribers: Sequence[str]) -> Cost:
    """Return the cost of subscriptions that travel to all publishers."""
    ways = [{name for other in publishers for name in overlay.path(broker, other)} for broker in subscribers]
    return Cost(sum(map(len, ways)), sum(len(way) - 1 for way in ways))


def measure(order: str, topics: int, apart_us: int, seed: int = 0) -> dict[str, Any]:
    """Return both costs of one case, and their ratios."""
    cost, paths = run(order, topics, apart_us, seed)
    return {
        "order": order,
        "topics": topics,
        "entries": cost.entries,
        "entries_paths": paths.entries,
        "entries_flooded": (WIDE + NARROW) * (2 ** (DEPTH + 1) - 1),
        "entries_ratio": round(paths.entries / cost.entries, 2),
        "messages": cost.messages,
        "messages_paths": paths.messages,
        "messages_ratio": round(paths.messages / cost.messages, 2),
    }


def main() -> int:
    """Measure and print; fail if coverage saves less than required."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="only the case that must hold")
    parser.add_argument("--json", action="store_true", help="print JSON only")
    parser.add_argument("--out", type=Path, help="write the figures as JSON, too")
    parser.add_argument("--seed", type=int, default=0, help="where everybody sits")
    arguments = parser.parse_args()
    checked = measure(APART, WIDE + NARROW, APART_US, arguments.seed)
    rows = [measure(*case, arguments.seed) for case in (CASES[:1] if arguments.quick else CASES)]
    figures = json.dumps({"rows": rows, "without_coverage": checked, "least_ratio": RATIO_LEAST})
    if arguments.out:
        arguments.out.write_text(figures)
    if arguments.json:
        print(figures)
    else:
        print(f"{2 ** (DEPTH + 1) - 1} brokers, {PUBLISHERS} publishers, {WIDE + NARROW} subscriptions")
        for row in (checked, *rows):
            for kind in ("entries", "messages"):
                flooded = f"  flooded {row['entries_flooded']:>7,}" if kind == "entries" else ""
                print(
                    f"{row['order']:<20} {row['topics']:>3} topics  {kind:<9} {row[kind]:>6,}  "
                    f"paths {row[f'{kind}_paths']:>7,}  {row[f'{kind}_ratio']:5.1f} times{flooded}"
                )
    is_exact = (checked["entries"], checked["messages"]) == (checked["entries_paths"], checked["messages_paths"])
    return 0 if is_exact and min(rows[0]["entries_ratio"], rows[0]["messages_ratio"]) >= RATIO_LEAST else 1


if __name__ == "__main__":
    sys.exit(main())
