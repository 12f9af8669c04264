"""Subscription latency in hops, taken from the trace: 2·d, whatever the coverage and f.

The second half is the paper's Figure 5(c) and (d): a publisher at the root, subscribers at the leaves, f = 1, and new
subscriptions that are covered with some probability. Here the latency must be flat where that of LoCaPS falls.
"""

import random

import pytest

from gapless.overlay import binary
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
"""An interval after which everything before is stable."""


def hops(scenario: Scenario) -> dict[str, float]:
    """Return, by subscription, the number of hops until it was active."""
    trace = run_scenario(scenario).trace
    assert trace is not None
    assert all(row.active_ms is not None for row in trace.subscriptions)
    return {row.subscription_id: ((row.active_ms or 0) - row.requested_ms) / HOP_MS for row in trace.subscriptions}


def scenario_of(
    depth: int,
    f: int,
    clients: list[Client],
    actions: list[AdvertiseAction | SubscribeAction],
    protocol: str = "gryphon",
) -> Scenario:
    return Scenario(
        network=Network("binary", depth=depth, f=f, latency=LatencySpec(ms=HOP_MS)),
        protocol=ProtocolChoice(protocol),
        run=Run(settle_ms=APART_MS),
        clients=tuple(clients),
        actions=tuple(actions),
    )


def newcomer(depth: int, f: int, publishers: list[str], cover: str | None) -> float:
    """Return the hops that a subscription at the leftmost leaf takes; a covering one is at the neighbouring leaf."""
    leaves = binary(depth).brokers[2**depth - 1 :]
    clients = [Client(f"p{broker}", broker) for broker in publishers]
    clients += [Client("old", leaves[1]), Client("new", leaves[0])]
    actions: list[AdvertiseAction | SubscribeAction] = [
        AdvertiseAction(0.0, f"p{broker}", f"a{broker}", "TRUE") for broker in publishers
    ]
    if cover is not None:
        actions.append(SubscribeAction(APART_MS, "old", "x", cover))
    actions.append(SubscribeAction(2 * APART_MS, "new", "s", "topic = 1"))
    return hops(scenario_of(depth, f, clients, actions))["s"]


@pytest.mark.parametrize("depth", [1, 2, 3, 7])
@pytest.mark.parametrize("cover", [None, "topic = 1", "TRUE"])
def test_a_subscription_takes_a_round_trip_to_the_nearest_publisher(depth: int, cover: str | None) -> None:
    for f in (0, 1, 3):
        assert newcomer(depth, f, ["b0"], cover) == 2 * depth
    far = f"b{2 ** (depth + 1) - 2}"
    assert newcomer(depth, 1, [far], cover) == 4 * depth
    assert newcomer(depth, 1, [far, "b0"], cover) == 2 * depth


def mean_hops(protocol: str, depth: int, covered: float) -> float:
    """Return the mean of Figure 5(c) over newcomers at random leaves, each covered with this probability."""
    rng = random.Random(f"{depth}/{covered}")
    leaves = binary(depth).brokers[2**depth - 1 :]
    topics = range(12)
    clients = [Client("root", "b0"), *(Client(f"c{leaf}", leaf) for leaf in leaves)]
    actions: list[AdvertiseAction | SubscribeAction] = [AdvertiseAction(0.0, "root", "a", "TRUE")]
    is_covered = {topic: rng.random() < covered for topic in topics}
    for leaf in leaves:
        for topic in topics:
            if is_covered[topic]:
                actions.append(SubscribeAction(APART_MS, f"c{leaf}", f"x-{leaf}-{topic}", f"topic = {topic}"))
    for topic in topics:
        new = f"topic = {topic} AND size > 7"
        actions.append(SubscribeAction(2 * APART_MS, f"c{rng.choice(leaves)}", f"s-{topic}", new))
    found = hops(scenario_of(depth, 1, clients, actions, protocol))
    return sum(found[f"s-{topic}"] for topic in topics) / len(topics)


@pytest.mark.parametrize("depth", [3, 4, pytest.param(5, marks=pytest.mark.slow)])
def test_figure_5c_and_5d_it_is_flat_in_the_probability_of_being_covered(depth: int) -> None:
    assert [mean_hops("gryphon", depth, covered) for covered in (0.0, 0.5, 1.0)] == [2 * depth] * 3
    falling = [mean_hops("locaps", depth, covered) for covered in (0.0, 0.5, 1.0)]
    assert falling[0] == 2 * depth
    assert falling[0] > falling[1] > falling[2] == 2
