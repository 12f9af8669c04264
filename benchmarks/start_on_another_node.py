"""Measures, for several systems, when a subscription on one node begins to receive events published on another.

    python benchmarks/start_on_another_node.py            # about two minutes
    python benchmarks/start_on_another_node.py --quick    # three trials of each system
    python benchmarks/start_on_another_node.py --json     # figures for a machine

Each system runs three nodes on this machine; a message takes 25 ms from any node to another. In each trial a client of
the first node subscribes to a new topic. As soon as the call has returned, a client of the second node publishes an
event every 2 ms for a quarter of a second. Events that never arrive are *missed*: they were published after the
subscription was confirmed. The protocols of the papers run the same trial once in the simulator, because their results
do not vary. A system whose program or library is not installed is named and skipped.

The benchmark fails if Gapless misses an event.
"""

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from benchmarks.peers.three_nodes import (
    DELAY_MS,
    NODES,
    GaplessNodes,
    JetStreamNodes,
    NatsNodes,
    Nodes,
    ZenohNodes,
)

from gapless.simulator import run_scenario
from gapless.simulator.scenario import (
    AdvertiseAction,
    Client,
    LatencySpec,
    Network,
    ProtocolChoice,
    PublishAction,
    Run,
    Scenario,
    SubscribeAction,
)
from gapless.trace import Trace

SIMULATED = ("gapless", "locaps", "delta", "gryphon")
EVERY_MS = 2.0
EVENTS = 125
GRACE_S = 1.0
"""The time for which a trial waits for events in transit."""
SUBSCRIBED_MS = 1_000.0
"""The time of the simulated subscription, when the advertisement is known everywhere."""


async def trial(nodes: Nodes, topic: str) -> dict[str, float]:
    """Subscribe, then publish at the other node at once; return the outcome."""
    arrived: dict[int, float] = {}
    begin = time.perf_counter()

    def note(number: int) -> None:
        arrived.setdefault(number, time.perf_counter())

    close = await nodes.subscribe(topic, note)
    returned = time.perf_counter()
    publications = []
    for number in range(EVENTS):
        publications.append(asyncio.create_task(nodes.publish(topic, number)))
        await asyncio.sleep(max(0.0, returned + (number + 1) * EVERY_MS / 1000 - time.perf_counter()))
    await asyncio.gather(*publications)
    deadline = time.perf_counter() + GRACE_S
    while len(arrived) < EVENTS and time.perf_counter() < deadline:
        await asyncio.sleep(0.01)
    await close()
    first = min(arrived.values(), default=deadline)
    return {
        "call_ms": (returned - begin) * 1000,
        "missed": EVENTS - len(arrived),
        "first_event_ms": (first - returned) * 1000,
    }


async def measure(nodes: Nodes, trials: int) -> dict[str, Any]:
    """Return the medians over the trials, and the total number of missed events."""
    with tempfile.TemporaryDirectory() as folder:
        async with nodes.run(Path(folder)):
            await trial(nodes, "t-warm")
            rows = [await trial(nodes, f"t{number}") for number in range(trials)]
    missed = [row["missed"] for row in rows]
    return {
        "system": nodes.name,
        "trials": trials,
        "published": trials * EVENTS,
        "call_ms": statistics.median(row["call_ms"] for row in rows),
        "first_event_ms": statistics.median(row["first_event_ms"] for row in rows),
        "missed": sum(missed),
        "missed_ms": statistics.median(missed) * EVERY_MS,
        "trials_with_a_gap": sum(count > 0 for count in missed),
    }


def simulate(protocol: str) -> dict[str, Any]:
    """Return the same figures for a protocol in the simulator."""
    active = _trace(protocol, None).subscriptions[0].active_ms
    assert active is not None, f"{protocol} never makes the subscription active"
    trace = _trace(protocol, active)
    deliveries = [row.time_ms for row in trace.history if row.kind == "deliver"]
    return {
        "system": f"{protocol}, simulated",
        "trials": 1,
        "published": EVENTS,
        "call_ms": active - SUBSCRIBED_MS,
        "first_event_ms": min(deliveries, default=active) - active,
        "missed": EVENTS - len(deliveries),
        "missed_ms": (EVENTS - len(deliveries)) * EVERY_MS,
        "trials_with_a_gap": int(len(deliveries) < EVENTS),
    }


def _trace(protocol: str, publish_from_ms: float | None) -> Trace:
    """Run the trial in virtual time, with publications from a given time on."""
    begin = 0.0 if publish_from_ms is None else publish_from_ms
    count = 0 if publish_from_ms is None else EVENTS
    publications = [PublishAction(begin, "far", {"topic": "t"}, count, EVERY_MS)] if count else []
    scenario = Scenario(
        network=Network("chain", brokers=NODES, f=1, latency=LatencySpec(ms=DELAY_MS)),
        protocol=ProtocolChoice(protocol),
        run=Run(settle_ms=2_000),
        clients=(Client("near", "b0"), Client("far", "b1")),
        actions=(
            AdvertiseAction(0.0, "far", "a", "topic = 't'"),
            SubscribeAction(SUBSCRIBED_MS, "near", "s", "topic = 't'"),
            *publications,
        ),
    )
    trace = run_scenario(scenario).trace
    assert trace is not None
    return trace


def show(rows: list[dict[str, Any]]) -> None:
    """Print one line for each system."""
    print(f"{'system':<28} {'subscribe()':>12} {'first event':>12} {'missed':>14} {'trials with a gap':>18}")
    for row in rows:
        missed = f"{row['missed']:,} of {row['published']:,}"
        gaps = f"{row['trials_with_a_gap']} of {row['trials']}"
        print(f"{row['system']:<28} {row['call_ms']:>9.1f} ms {row['first_event_ms']:>9.1f} ms {missed:>14} {gaps:>18}")


def main() -> int:
    """Measure all systems that are installed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="three trials of each system")
    parser.add_argument("--json", action="store_true", help="print JSON only")
    parser.add_argument("--out", type=Path, help="write the figures as JSON, too")
    arguments = parser.parse_args()
    systems: list[Nodes] = [GaplessNodes(), NatsNodes(), JetStreamNodes(), ZenohNodes()]
    absent = {nodes.name: nodes.missing() for nodes in systems if nodes.missing()}
    rows = [asyncio.run(measure(nodes, 3 if arguments.quick else 20)) for nodes in systems if nodes.name not in absent]
    rows += [simulate(protocol) for protocol in SIMULATED]
    figures = {"delay_ms": DELAY_MS, "every_ms": EVERY_MS, "rows": rows, "left_out": absent}
    if arguments.out:
        arguments.out.write_text(json.dumps(figures))
    if arguments.json:
        print(json.dumps(figures))
    else:
        show(rows)
        for name, why in absent.items():
            print(f"left out: {name}: {why}")
    return 1 if rows[0]["missed"] else 0


if __name__ == "__main__":
    sys.exit(main())
