"""Measures the processor time of each node for an event, without a network: steps, encoding, decoding.

    python benchmarks/steps.py            # some seconds
    python benchmarks/steps.py --quick    # a short run
    python benchmarks/steps.py --protocol gapless

A publisher, a chain of brokers and a subscriber run in one process; their messages go through the codec. Payloads of
100 bytes, in calls of 256 events. So the figures show the cost of our own code, even on a busy machine; `network.py`
shows the cost of sockets and the event loop.
"""

import argparse
import gc
import heapq
import json
import sys
import time
from collections import defaultdict, deque
from itertools import islice
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.peers.system import TOPIC, distinct_attributes

from gapless.client.publications import check_all
from gapless.overlay import chain
from gapless.protocol import (
    Advertise,
    BrokerPlace,
    ClientPlace,
    Consumed,
    Deliver,
    DeliverMany,
    Received,
    Send,
    SetTimer,
    Start,
    Subscribe,
    TimerFired,
)
from gapless.registry import find_protocol
from gapless.runtime.codec import Codec

RUN = 256
PACE_US = 2_000
"""The time between two calls."""
PAYLOAD = bytes(100)
FILTER = f"topic = '{TOPIC}'"
FRAME_MAX = 64 * 1024 * 1024
ROLES = ("publisher", "broker", "subscriber")


class Nodes:
    """A chain of brokers with a publisher at the last and a subscriber at the first."""

    def __init__(self, brokers: int, f: int, protocol: str) -> None:
        spec = find_protocol(protocol)
        options = spec.options()
        names = [f"b{number}" for number in range(brokers)]
        overlay = chain(brokers)
        self.codec = Codec(spec, FRAME_MAX)
        self.nodes: dict[str, Any] = {name: spec.broker(BrokerPlace(name, overlay, f), options) for name in names}
        self.nodes["publisher"] = spec.client(ClientPlace("publisher", names[-1], (names[-1],)), options)
        self.nodes["subscriber"] = spec.client(ClientPlace("subscriber", names[0], (names[0],)), options)
        self.now = 1_000_000
        self.spent: dict[tuple[str, str], float] = defaultdict(float)
        """Seconds by role and kind of work."""
        self.delivered = 0
        self.timers: list[tuple[int, str, str]] = []
        self.queue: deque[tuple[str, str, bytes]] = deque()
        for name in self.nodes:
            self.give(name, Start())
        self.settle()

    def role(self, name: str) -> str:
        """Return the role of a node."""
        return name if name in ROLES else "broker"

    def give(self, name: str, item: Any) -> None:
        """Pass one input to a node, and process its effects."""
        self.carry_out(name, [item])

    def carry_out(self, name: str, items: list[Any]) -> None:
        """Process the inputs of one turn; messages to the same peer leave together."""
        node, role = self.nodes[name], self.role(name)
        outboxes: dict[str, list[Any]] = {}
        before = self.delivered
        for item in items:
            start = time.process_time()
            effects = node.step(item, self.now)
            self.spent[role, "step"] += time.process_time() - start
            for effect in effects:
                if isinstance(effect, Send):
                    outboxes.setdefault(effect.peer, []).append(effect.message)
                elif isinstance(effect, SetTimer):
                    heapq.heappush(self.timers, (self.now + effect.delay_us, name, effect.key))
                elif isinstance(effect, DeliverMany):
                    start = time.process_time()
                    self.delivered += len(list(effect.events))
                    self.spent[role, "make events"] += time.process_time() - start
                elif isinstance(effect, Deliver):
                    self.delivered += 1
        for peer, messages in outboxes.items():
            start = time.process_time()
            pieces = self.codec.frames(messages)
            self.spent[role, "encode"] += time.process_time() - start
            self.queue.append((name, peer, pieces[1]))
        if self.delivered > before:
            self.give(name, Consumed(self.delivered))

    def settle(self) -> None:
        """Run until no node has messages to send."""
        while self.queue:
            sender, name, body = self.queue.popleft()
            role = self.role(name)
            start = time.process_time()
            messages = self.codec.decode(memoryview(body), is_client=sender in ROLES)
            self.spent[role, "decode"] += time.process_time() - start
            self.carry_out(name, [Received(sender, message) for message in messages])

    def wait(self, us: int) -> None:
        """Advance the time."""
        self.now += us
        while self.timers and self.timers[0][0] <= self.now:
            _, name, key = heapq.heappop(self.timers)
            self.give(name, TimerFired(key))
            self.settle()

    def publish(self, runs: int, size: int, *, is_distinct: bool) -> None:
        """Make this many calls."""
        publisher = self.nodes["publisher"]
        attributes = distinct_attributes()
        for _ in range(runs):
            while publisher.state_size()["unsafe"] + size > publisher.window:
                self.wait(PACE_US)
            rows = list(islice(attributes, size)) if is_distinct else [{"topic": TOPIC}] * size
            start = time.process_time()
            batch, error = check_all([(row, PAYLOAD) for row in rows], FRAME_MAX)
            call = batch.call(0, size)
            self.spent["publisher", "check"] += time.process_time() - start
            assert error is None
            self.give("publisher", call)
            self.settle()
            self.wait(PACE_US)

    def finish(self) -> None:
        """Run until all publications are confirmed."""
        while self.nodes["publisher"].state_size()["unsafe"]:
            self.wait(PACE_US)


def measure(brokers: int, f: int, runs: int, size: int, protocol: str, *, is_distinct: bool) -> dict[str, float]:
    """Return the microseconds of processor time per event and node, by role and kind of work."""
    nodes = Nodes(brokers, f, protocol)
    nodes.give("publisher", Advertise("publisher/a", FILTER))
    nodes.give("subscriber", Subscribe("subscriber/s", FILTER))
    nodes.settle()
    nodes.publish(runs // 4, size, is_distinct=is_distinct)
    nodes.finish()
    nodes.spent.clear()
    before = nodes.delivered
    gc.collect()
    gc.freeze()
    nodes.publish(runs, size, is_distinct=is_distinct)
    nodes.finish()
    assert nodes.delivered - before == runs * size
    return {
        f"{role} {kind}": 1e6 * seconds / (runs * size) / (brokers if role == "broker" else 1)
        for (role, kind), seconds in sorted(nodes.spent.items())
    }


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--protocol", default="gapless")
    parser.add_argument("--out", type=Path, help="write the figures as JSON, too")
    arguments = parser.parse_args()
    gc.set_threshold(50_000, 20, 50)  # as brokers do
    runs = 100 if arguments.quick else 400
    found = {
        f"{brokers} brokers, f = {f}, calls of {size}, {'distinct' if is_distinct else 'equal'}": measure(
            brokers, f, runs if size > 1 else 5 * runs, size, arguments.protocol, is_distinct=is_distinct
        )
        for size, is_distinct in ((RUN, True), (RUN, False), (1, True))
        for brokers, f in ((1, 0), (3, 1))
    }
    table = Table(title="microseconds of the processor an event and node")
    table.add_column("")
    for name in found:
        table.add_column(name, justify="right")
    for row in next(iter(found.values())):
        table.add_row(row, *(f"{figures.get(row, 0):.2f}" for figures in found.values()))
    Console().print(table)
    if arguments.out:
        arguments.out.write_text(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
