"""Subscription latency in hops, taken from the trace: 2·d, and 2·(k + f) for a pivot k hops away.

In a binary tree of depth D the subscribers are at the leaves. The path to the root of a covering subscription at
`leaf(D, k)` meets that of the leftmost leaf k hops up.
"""

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


def leaf(depth: int, up: int) -> str:
    """Return a leaf whose path to the root meets that of the leftmost leaf `up` hops above it."""
    return f"b{2**depth - 1 + (2 ** (up - 1) if up else 0)}"


def hops(
    depth: int, f: int, publishers: list[str], covers: dict[int, int], coverage: bool = True, paths: str = "one",
    full_markers: bool = False,
) -> dict[int, float]:  # fmt: skip
    """Subscribe at the leftmost leaf to each topic of `covers`, one after another; return the latency of each in hops.

    The values are how many hops up the topic is covered; a negative one means that it is not covered. The covering
    subscription of a topic also covers all earlier topics.
    """
    clients = [Client(f"p{broker}", broker) for broker in publishers]
    clients += [Client("new", leaf(depth, 0))]
    actions: list[AdvertiseAction | SubscribeAction] = [
        AdvertiseAction(0.0, f"p{broker}", f"a{broker}", "TRUE") for broker in publishers
    ]
    for number, up in covers.items():
        if up >= 0:
            clients.append(Client(f"old{number}", leaf(depth, up)))
            actions.append(SubscribeAction(APART_MS, f"old{number}", f"x{number}", f"topic <= {number} AND topic > -1"))
    for place, number in enumerate(sorted(covers), start=2):
        actions.append(SubscribeAction(place * APART_MS, "new", f"s{number}", f"topic = {number}"))
    scenario = Scenario(
        network=Network("binary", depth=depth, f=f, latency=LatencySpec(ms=HOP_MS)),
        protocol=ProtocolChoice("locaps", {"coverage": coverage, "paths": paths, "full_markers": full_markers}),
        run=Run(settle_ms=APART_MS),
        clients=tuple(clients),
        actions=tuple(actions),
    )
    trace = run_scenario(scenario).trace
    assert trace is not None
    found = {}
    for row in trace.subscriptions:
        if row.client == "new":
            assert row.active_ms is not None
            found[int(row.subscription_id[1:])] = (row.active_ms - row.requested_ms) / HOP_MS
    return found


@pytest.mark.parametrize("depth", [*range(3, 7), *(pytest.param(depth, marks=pytest.mark.slow) for depth in (7, 8, 9))])
def test_a_covered_subscription_takes_a_round_trip_to_the_last_broker_of_the_pivots_set(depth: int) -> None:
    for f in range(5):
        for up in (0, 1, 2, depth - 1, depth):
            assert hops(depth, f, ["b0"], {0: up}) == {0: 2 * min(up + f, depth)}, (depth, f, up)


@pytest.mark.parametrize("depth", range(3, 10))
def test_an_uncovered_subscription_takes_a_round_trip_to_the_nearest_publisher(depth: int) -> None:
    assert hops(depth, 1, ["b0"], {0: -1}) == {0: 2 * depth}
    parent = binary(depth).path(leaf(depth, 0), "b0")[1]
    far = f"b{2 ** (depth + 1) - 2}"
    assert hops(depth, 1, [far], {0: -1}) == {0: 4 * depth}
    assert hops(depth, 1, [far, "b0", parent], {0: -1}) == {0: 2}
    assert hops(depth, 1, [leaf(depth, 0), far], {0: -1}) == {0: 0}


@pytest.mark.parametrize("f", range(5))
def test_without_the_option_coverage_a_covering_subscription_makes_no_difference(f: int) -> None:
    assert hops(5, f, ["b0"], {0: 1}, coverage=False) == {0: 10}


@pytest.mark.parametrize("f", range(5))
def test_the_nearest_pivot_counts(f: int) -> None:
    """Topic 1 is covered 4 hops up; topic 0 is covered there and 2 hops up."""
    assert hops(9, f, ["b0"], {0: 2, 1: 4}) == {0: 2 * (2 + f), 1: 2 * min(4 + f, 9)}


@pytest.mark.parametrize("f", range(5))
def test_the_nearest_of_several_publishers_settles_it_where_its_own_marker_comes_first(f: int) -> None:
    """The publisher 3 hops up sends its own marker; the pivot 2 hops up answers for both."""
    near = binary(6).path(leaf(6, 0), "b0")[3]
    assert hops(6, f, [near, "b0"], {0: 2}) == {0: 2 * min(2 + f, 3)}


@pytest.mark.parametrize("f", [1, 2])
def test_subscribing_over_f_plus_one_paths_takes_as_long_as_over_one(f: int) -> None:
    for up in (-1, 0, 1, 2):
        expected = 6 if up < 0 else 2 * min(up + f, 3)
        assert hops(3, f, ["b0"], {0: up}, paths="f+1") == {0: expected}, up


def test_with_full_markers_a_covered_broker_answers_alone() -> None:
    assert hops(3, 2, ["b0"], {0: 0}, paths="f+1", full_markers=True) == {0: 0}
    assert hops(3, 2, ["b0"], {0: 1}, paths="f+1", full_markers=True) == {0: 6}
