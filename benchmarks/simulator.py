"""Measures the speed of the simulator: a flood over binary trees, compared with the same flood in SimPy.

    python benchmarks/simulator.py            # about a minute
    python benchmarks/simulator.py --quick    # a few seconds
    python benchmarks/simulator.py --json     # figures for a machine

In the flood, clients publish at leaves, and every broker forwards every event to all its neighbours except the one that
it came from. Links are FIFO with a constant latency. Our side uses the complete `step` interface, like any other
protocol. SimPy's side is written in its usual style: a process and a store for each broker, and a process that waits
for the latency of each message. The first event is also shown separately, because creating brokers and links takes as
long as many messages, and in a large tree there are few events. Both sides run alternately in the same process with the
same garbage collector settings; each figure is the best of its turns.
"""

import argparse
import gc
import json
import sys
import time
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import simpy

from gapless.events import Event
from gapless.overlay import Overlay, binary
from gapless.protocol import (
    BrokerNode,
    BrokerPlace,
    ClientNode,
    ClientPlace,
    Effect,
    Input,
    ProtocolSpec,
    Publish,
    Published,
    Received,
    Send,
)
from gapless.simulator import Latency, Settings, Simulation
from gapless.simulator.garbage_collection import without_cycle_collection

LATENCY_US = 10_000
RATIO_LEAST = 4.0
"""The required speed, relative to SimPy on the largest tree that both run."""


class Flood(msgspec.Struct, frozen=True, gc=False):
    """An event in transit."""

    event: Event


class NoOptions(msgspec.Struct, frozen=True):
    """A protocol without options."""


class FloodBroker(BrokerNode):
    """Forwards every event."""

    def __init__(self, place: BrokerPlace, options: NoOptions) -> None:
        self._neighbours = place.overlay.neighbours(place.name)

    def step(self, item: Input, now: int) -> Sequence[Effect]:
        """Take one input."""
        if item.__class__ is not Received:
            return ()
        source, message = item.peer, item.message
        return [Send(peer, message) for peer in self._neighbours if peer != source]

    def state_size(self) -> dict[str, int]:
        """Return an empty report."""
        return {}


class FloodClient(ClientNode):
    """Publishes."""

    def __init__(self, place: ClientPlace, options: NoOptions) -> None:
        self._place = place
        self._seq = 0

    def step(self, item: Input, now: int) -> Sequence[Effect]:
        """Take one input."""
        if not isinstance(item, Publish):
            return ()
        self._seq += 1
        event = Event(self._place.name, self._seq, item.attributes)
        return [Published(event), Send(self._place.broker, Flood(event))]

    def state_size(self) -> dict[str, int]:
        """Return an empty report."""
        return {}


FLOOD = ProtocolSpec("flood", "best-effort", "Everything to everyone.", NoOptions, FloodBroker, FloodClient)


def flood_ours(overlay: Overlay, events: int) -> tuple[int, float]:
    """Return the number of messages between brokers, and the seconds."""
    settings = Settings(latency=Latency(LATENCY_US, LATENCY_US))
    simulation = Simulation(overlay, FLOOD, settings=settings)
    simulation.add_client("c0", overlay.brokers[-1])
    for number in range(events):
        simulation.call("c0", Publish({"x": number}), at=number * 1000)
    start = time.perf_counter()
    result = simulation.run(settle=LATENCY_US * (overlay.diameter + 1))
    seconds = time.perf_counter() - start
    return result.messages - events, seconds


def flood_simpy(overlay: Overlay, events: int) -> tuple[int, float]:
    """Return the number of messages between brokers, and the seconds."""
    env = simpy.Environment()
    inboxes = {name: simpy.Store(env) for name in overlay.brokers}
    sent = 0

    def carry(receiver: str, source: str, event: Event) -> Generator[Any, Any, None]:
        yield env.timeout(LATENCY_US)
        yield inboxes[receiver].put((source, event))

    def broker(name: str) -> Generator[Any, Any, None]:
        nonlocal sent
        neighbours = overlay.neighbours(name)
        while True:
            source, event = yield inboxes[name].get()
            for peer in neighbours:
                if peer != source:
                    sent += 1
                    env.process(carry(peer, name, event))

    def publisher() -> Generator[Any, Any, None]:
        for number in range(events):
            yield inboxes[overlay.brokers[-1]].put(("c0", Event("c0", number + 1, {"x": number})))
            yield env.timeout(1000)

    for name in overlay.brokers:
        env.process(broker(name))
    env.process(publisher())
    start = time.perf_counter()
    with without_cycle_collection():
        env.run()
    return sent, time.perf_counter() - start


def best_rate(flood: Callable[[Overlay, int], tuple[int, float]], overlay: Overlay, events: int) -> float:
    """Return the messages per second of one turn; check that every message was sent."""
    gc.collect()
    messages, seconds = flood(overlay, events)
    assert messages == events * (len(overlay.brokers) - 1), f"{messages} messages, not one per link and event"
    return messages / seconds


def measure(depths: Sequence[int], messages: int, turns: int) -> list[dict[str, float]]:
    """Return one row per tree."""
    rows = []
    for depth in depths:
        overlay = binary(depth)
        events = max(1, messages // len(overlay.brokers))
        ours = simpys = 0.0
        start = float("inf")
        for _ in range(turns):
            start = min(start, flood_ours(overlay, 1)[1])
            ours = max(ours, best_rate(flood_ours, overlay, events))
            simpys = max(simpys, best_rate(flood_simpy, overlay, events))
        links = len(overlay.brokers) - 1
        rows.append({
            "brokers": len(overlay.brokers),
            "events": events,
            "ours_messages_per_s": round(ours),
            "ours_start_s": round(start, 3),
            "ours_after_start_per_s": round((events - 1) * links / max(events * links / ours - start, 1e-9)),
            "simpy_messages_per_s": round(simpys),
            "ratio": round(ours / simpys, 2),
        })  # fmt: skip
    return rows


def main() -> int:
    """Measure and print; fail below the required speed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="smaller floods, one turn")
    parser.add_argument("--json", action="store_true", help="print JSON only")
    parser.add_argument("--out", type=Path, help="write the figures as JSON, too")
    arguments = parser.parse_args()
    if arguments.quick:
        rows = measure((6, 10), messages=40_000, turns=1)
    else:
        rows = measure((6, 8, 10, 12, 13), messages=120_000, turns=2)
    worst = min(row["ratio"] for row in rows)
    figures = json.dumps({"rows": rows, "worst_ratio": worst, "least_ratio": RATIO_LEAST})
    if arguments.out:
        arguments.out.write_text(figures)
    if arguments.json:
        print(figures)
    else:
        for row in rows:
            print(
                f"{row['brokers']:>6} brokers  {row['ours_messages_per_s']:>9,} messages/s"
                f" ({row['ours_start_s']:.3f} s until the first event is everywhere,"
                f" {row['ours_after_start_per_s']:>9,}/s from then on)  "
                f"SimPy {row['simpy_messages_per_s']:>8,}  {row['ratio']:.1f} times"
            )
    return 0 if worst >= RATIO_LEAST else 1


if __name__ == "__main__":
    sys.exit(main())
