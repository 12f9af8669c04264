"""Measures how long a subscription takes to become active, in hops, compared with the formula of each protocol.

    python benchmarks/subscription_latency.py            # about ten seconds
    python benchmarks/subscription_latency.py --quick    # a few seconds
    python benchmarks/subscription_latency.py --json     # figures for a machine

The network is a binary tree with 50 ms per hop, and clients next to their brokers. The new subscriber is at the
leftmost leaf. The figures are taken from the trace: from the call until the subscription is active. Either a publisher
is d hops up and another one at the top (**uncovered**), or the publisher is at the top and the path meets a covering
subscription k hops up (**covered**). "Active" has two meanings:

- `locaps`, as in its paper, needs the `first` cut: 2·d, and 2·min(k + f, depth), the path to the last of its f + 1
  pivots and back.
- `gapless` needs the `whole` cut, so that no event published from then on is omitted: 2·depth, and 2·k. Both are
  independent of f, because subscriptions are not replicated.

The program fails if any figure differs from its formula.
"""

import argparse
import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from gapless.overlay import binary
from gapless.protocol import Ready
from gapless.simulator import run_scenario
from gapless.simulator.scenario import (
    AdvertiseAction,
    Client,
    LatencySpec,
    Network,
    ProtocolChoice,
    Run,
    Scenario,
    SubscribeAction,
)

HOP_MS = 50.0
APART_MS = 10_000.0
"""The time between operations, long enough for all earlier ones to be stable."""
FAR = 100
"""The first topic with a second publisher, at the root."""
OPTIONS: dict[str, dict[str, Any]] = {"gapless": {"wave_ms": 60_000}, "locaps": {"paths": "one"}}
"""Options that disable traffic unrelated to subscriptions in large trees."""
MEANINGS: tuple[tuple[str, Ready], ...] = (("gapless", "whole"), ("locaps", "first"))
"""The measured protocols, and when a subscription is active in each."""


class Figures(msgspec.Struct, frozen=True):
    """Hops until active on one tree; `uncovered[d]` and `covered[k]` from 0 up to the depth."""

    protocol: str
    ready: Ready
    depth: int
    f: int
    uncovered: list[float]
    covered: list[float]

    def promised(self) -> "Figures":
        """Return the figures according to the formula."""
        hops = range(self.depth + 1)
        if self.ready == "whole":
            uncovered, covered = [self.depth for _ in hops], list(hops)
        else:
            uncovered, covered = list(hops), [min(k + self.f, self.depth) for k in hops]
        return Figures(
            self.protocol, self.ready, self.depth, self.f, [2.0 * d for d in uncovered], [2.0 * k for k in covered]
        )


def leaf(depth: int, up: int) -> str:
    """Return a leaf whose path to the top meets that of the leftmost leaf `up` hops above it."""
    return f"b{2**depth - 1 + (2 ** (up - 1) if up else 0)}"


def measure(protocol: str, ready: Ready, depth: int, f: int) -> Figures:
    """Measure all figures of one tree in one run; each has its own topic, so they do not affect each other."""
    upwards = binary(depth).path(leaf(depth, 0), "b0")
    clients = [Client("new", leaf(depth, 0)), Client("top", "b0")]
    actions: list[AdvertiseAction | SubscribeAction] = [
        AdvertiseAction(0.0, "top", "a", f"kind = 'covered' OR topic >= {FAR}")
    ]
    for number, broker in enumerate(upwards):
        clients += [Client(f"near{number}", broker), Client(f"old{number}", leaf(depth, number))]
        actions += [
            AdvertiseAction(0.0, f"near{number}", f"a{number}", f"kind = 'uncovered' AND topic = {FAR + number}"),
            SubscribeAction(APART_MS, f"old{number}", f"x{number}", f"kind = 'covered' AND topic = {number}"),
            SubscribeAction(
                2 * APART_MS, "new", f"covered-{number}", f"kind = 'covered' AND topic = {number} AND x > 7", ready
            ),
            SubscribeAction(
                2 * APART_MS, "new", f"uncovered-{number}", f"kind = 'uncovered' AND topic = {FAR + number}", ready
            ),
        ]
    scenario = Scenario(
        network=Network("binary", depth=depth, f=f, latency=LatencySpec(ms=HOP_MS)),
        protocol=ProtocolChoice(protocol, OPTIONS[protocol]),
        run=Run(settle_ms=2 * HOP_MS * (depth + 1)),
        clients=tuple(clients),
        actions=tuple(actions),
    )
    trace = run_scenario(scenario).trace
    assert trace is not None
    hops = {
        row.subscription_id: (row.active_ms - row.requested_ms) / HOP_MS
        for row in trace.subscriptions
        if row.active_ms is not None
    }
    return Figures(
        protocol,
        ready,
        depth,
        f,
        *([hops.get(f"{kind}-{n}", -1.0) for n in range(depth + 1)] for kind in ("uncovered", "covered")),
    )


def print_table(figures: Iterable[Figures]) -> None:
    """Print one line per tree and f; mark lines that differ from the formula."""
    print("hops until a subscription is active")
    print(
        f"{'protocol':<9} {'active':<6} {'depth':>5} {'brokers':>7} {'f':>2}  {'uncovered, d = 0, 1, 2…':<32} "
        "covered, k = 0, 1, 2…"
    )
    for row in figures:
        wrong = "" if row == row.promised() else "   NOT AS PROMISED"
        uncovered, covered = (" ".join(f"{value:g}" for value in values) for values in (row.uncovered, row.covered))
        brokers = 2 ** (row.depth + 1) - 1
        head = f"{row.protocol:<9} {row.ready:<6} {row.depth:>5} {brokers:>7} {row.f:>2}"
        print(f"{head}  {uncovered:<32} {covered}{wrong}", flush=True)


def main() -> int:
    """Measure, print, and fail if a figure differs from its formula."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="smaller trees, f = 0, 1 and 4 only")
    parser.add_argument("--json", action="store_true", help="print JSON only")
    parser.add_argument("--out", type=Path, help="write the figures as JSON, too")
    arguments = parser.parse_args()
    depths, tolerances = (range(3, 6), (0, 1, 4)) if arguments.quick else (range(3, 10), range(5))
    figures = [measure(*meaning, depth, f) for meaning in MEANINGS for depth in depths for f in tolerances]
    wrong = [row for row in figures if row != row.promised()]
    rows = [{**msgspec.to_builtins(row), "as_promised": row == row.promised()} for row in figures]
    if arguments.out:
        arguments.out.write_text(json.dumps({"rows": rows, "wrong": len(wrong)}))
    if arguments.json:
        print(json.dumps({"rows": rows, "wrong": len(wrong)}))
    else:
        print_table(figures)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
