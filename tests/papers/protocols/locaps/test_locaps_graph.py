"""LoCaPS over f + 1 paths: graphs, crashes, and the purpose of each repair.

Longer searches: `gapless sim search --protocol locaps --faults crash --runs 5000`.
"""

from itertools import combinations
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gapless.errors import ScenarioError
from gapless.overlay import binary
from gapless.simulator import GeneratorLimits, Scenario, load_scenario, run_scenario, search, try_scenario
from gapless.simulator.graph_scenarios import generate_on_graph
from gapless.simulator.networks import overlay_of
from gapless.simulator.scenario import (
    AdvertiseAction,
    Client,
    Crash,
    LatencySpec,
    Network,
    ProtocolChoice,
    PublishAction,
    Run,
    SubscribeAction,
    Suspect,
    Trust,
)
from gapless_papers.protocols.locaps.messages import Hop
from gapless_papers.protocols.locaps.options import REPAIRS

SCENARIOS = Path(__file__).parent / "scenarios"
FOUND = {
    "late_publisher": ("late-publishers", "missing-effect"),
    "one_marker_for_all": ("own-markers", "gap"),
    "answer_past_the_pivot": ("pivots", "missing-effect"),
    "effect_before_the_pivots": ("pivots", "missing-effect"),
    "publisher_notified_later": ("together", "missing-effect"),
    "cover_forgotten_too_soon": ("two-steps", "gap"),
}
"""By scenario, the repair that it needs, and the symptom without it. (Without `numbers` the start is merely late.)"""
ONCE_FAILED = (2, 3, 28, 112, 113, 140, 182, 443, 582)
"""Seeds with crashes that violated the guarantee, or never ended, during development."""


def with_options(scenario: Scenario, **options: Any) -> Scenario:
    return msgspec.structs.replace(scenario, protocol=ProtocolChoice("locaps", options))


@pytest.mark.parametrize("name", FOUND)
def test_each_repair_is_needed(name: str) -> None:
    scenario = load_scenario(SCENARIOS / f"{name}.toml")
    repair, symptom = FOUND[name]
    assert repair in REPAIRS
    assert try_scenario(scenario).status == "valid"
    assert try_scenario(with_options(scenario, switched_off=[repair])).symptoms == (symptom,)


def test_each_repair_has_a_scenario() -> None:
    assert {repair for repair, _ in FOUND.values()} | {"numbers"} == REPAIRS


@pytest.mark.parametrize("paths", ["one", "f+1"])
def test_without_numbers_a_quiet_publisher_starts_only_with_its_own_marker(paths: str) -> None:
    scenario = load_scenario(SCENARIOS / "quiet_publisher.toml")
    assert latency_ms(with_options(scenario, paths=paths), "narrow") == 20.0
    assert latency_ms(with_options(scenario, paths=paths, switched_off=["numbers"]), "narrow") == 100.0


@pytest.mark.parametrize(
    "options", [{"switched_off": ["numbers"]}, {"switched_off": ["numbers"], "paths": "one"}], ids=str
)
@pytest.mark.parametrize("times", [1, pytest.param(6, marks=pytest.mark.slow)])
def test_without_numbers_there_are_no_findings(options: dict[str, Any], times: int) -> None:
    scale = "graph" if "paths" not in options else "small"
    report = search("locaps", 4 * times, options=options, processes=1, scale=scale)
    assert report.finding is None, report.finding.repeat


def test_the_cascade_replaces_the_repair_together() -> None:
    """Algorithm 1, lines 14 to 21: a publisher that learns of a subscription from another's marker answers it."""
    scenario = load_scenario(SCENARIOS / "publisher_notified_later.toml")
    assert try_scenario(with_options(scenario, switched_off=["together"], cascade=True)).status == "valid"


@pytest.mark.parametrize("seed", ONCE_FAILED)
def test_scenarios_that_once_failed_are_valid(seed: int) -> None:
    outcome = try_scenario(generate_on_graph(seed, "locaps", "crash"))
    assert not outcome.failed, outcome.verdict


@pytest.mark.parametrize(
    "name",
    [
        "answer_to_the_former_advertisement",
        "answered_by_one_whose_broker_failed",
        "both_kept_until_the_last_pivot",
        "broker_suspected_by_a_client",
        "client_connects_to_an_excluded_broker",
        "event_missed_after_the_subscription_was_active",
        "own_marker_before_the_pivots_agree",
        "pivots_off_the_covers_path",
        "pivots_far_from_the_cover_of_36_brokers",
        "publisher_moved_to_the_covers_broker",
        "sent_again_while_it_waits",
    ],
)
def test_findings_of_the_search_are_valid_now(name: str) -> None:
    assert try_scenario(load_scenario(SCENARIOS / f"{name}.toml")).status == "valid"


@pytest.mark.parametrize("crash_ms", range(515, 605, 15))
def test_the_publishers_broker_may_crash_at_any_time_after_a_subscription(crash_ms: int) -> None:
    scenario = load_scenario(SCENARIOS / "publisher_moved_to_the_covers_broker.toml")
    scenario = msgspec.structs.replace(scenario, faults=(Crash(float(crash_ms), "b1"),))
    assert try_scenario(scenario).status == "valid"


@pytest.mark.parametrize("options", [{}, {"full_markers": True}, {"coverage": False}], ids=str)
@pytest.mark.parametrize("times", [1, pytest.param(6, marks=pytest.mark.slow)])
def test_no_violation_on_graphs(options: dict[str, Any], times: int) -> None:
    report = search("locaps", 3 * times, 1000, options=options, processes=1, scale="graph")
    assert report.finding is None, report.finding.repeat


@pytest.mark.parametrize("times", [1, pytest.param(6, marks=pytest.mark.slow)])
def test_no_violation_with_crashes(times: int) -> None:
    report = search("locaps", 5 * times, 2000, "crash", processes=1)
    assert report.finding is None, report.finding.repeat


@pytest.mark.parametrize("f", [1, 2, 3])
@pytest.mark.parametrize("times", [1, pytest.param(6, marks=pytest.mark.slow)])
def test_no_violation_on_large_trees_under_crashes_and_suspicions(f: int, times: int) -> None:
    limits = GeneratorLimits(f=f)
    report = search(
        "locaps", 2 * times, 500 * f, "crash,in-flight,suspicion", processes=1, limits=limits, scale="large"
    )
    assert report.finding is None, report.finding.repeat


@pytest.mark.parametrize("seed", range(3000, 3012))
def test_on_a_tree_it_makes_its_own_bypasses(seed: int) -> None:
    scenario = generate_on_graph(seed, "locaps", "crash")
    if scenario.network.bypass:
        scenario = msgspec.structs.replace(scenario, network=msgspec.structs.replace(scenario.network, bypass=0))
        outcome = try_scenario(scenario)
        assert not outcome.failed, outcome.verdict


def test_on_graphs_there_are_crashes_only() -> None:
    with pytest.raises(ScenarioError, match="on graphs there are crashes only, but faults is cut"):
        generate_on_graph(0, "locaps", "cut")


GRAPHS = {
    "ring": Network("ring", brokers=6, f=1, latency=LatencySpec(ms=10.0)),
    "grid": Network("grid", rows=3, columns=3, f=1, latency=LatencySpec(ms=10.0)),
    "regular": Network("regular", brokers=8, degree=4, f=2, latency=LatencySpec(ms=10.0)),
    "bypasses": Network("binary", depth=2, f=2, bypass=2, latency=LatencySpec(ms=10.0)),
    "links": Network("edges", edges=(*binary(2).edges, ("b3", "b5"), ("b4", "b6")), f=1, latency=LatencySpec(ms=10.0)),
}
"""A graph of each kind, in which any two brokers have f + 1 disjoint paths."""


def ring(*faults: Crash, f: int = 1) -> Scenario:
    """Return a scenario with a writer and a reader at opposite brokers of a ring of six."""
    return on(msgspec.structs.replace(GRAPHS["ring"], f=f), "b3", *faults)


def on(network: Network, reader: str, *faults: Crash) -> Scenario:
    """Return a scenario with a writer at b0, and a reader."""
    return Scenario(
        network=network,
        protocol=ProtocolChoice("locaps"),
        run=Run(settle_ms=2000.0),
        clients=(Client("writer", "b0"), Client("reader", reader)),
        actions=(
            AdvertiseAction(0.0, "writer", "a", "TRUE"),
            SubscribeAction(200.0, "reader", "s", "TRUE"),
            PublishAction(500.0, "writer", {"n": 1}, count=40, every_ms=10.0),
        ),
        faults=faults,
    )


def latency_ms(scenario: Scenario, subscription: str) -> float:
    trace = run_scenario(scenario).trace
    assert trace is not None
    [row] = [row for row in trace.subscriptions if row.subscription_id == subscription]
    assert row.active_ms is not None
    return row.active_ms - row.requested_ms


def delivered(scenario: Scenario) -> list[str]:
    trace = run_scenario(scenario).trace
    assert trace is not None
    return [row.event_id for row in trace.history if row.kind == "deliver"]


@pytest.mark.parametrize("broker", ["b1", "b2", "b4", "b5"])
def test_the_other_path_around_the_ring_is_used_if_one_is_broken(broker: str) -> None:
    expected = [f"writer:{number}" for number in range(1, 41)]
    assert delivered(ring()) == expected
    assert delivered(ring(Crash(650.0, broker))) == expected


@pytest.mark.parametrize("name", GRAPHS)
def test_on_each_kind_of_graph_any_f_brokers_except_the_readers_can_fail(name: str) -> None:
    network = GRAPHS[name]
    brokers = overlay_of(network).brokers
    for failed in combinations(brokers[:-1], network.f):
        faults = [Crash(630.0 + 25.0 * turn, broker) for turn, broker in enumerate(failed)]
        assert delivered(on(network, brokers[-1], *faults)) == [f"writer:{number}" for number in range(1, 41)], failed


def test_the_publishers_broker_may_fail_and_nothing_is_lost() -> None:
    assert delivered(ring(Crash(655.0, "b0"))) == [f"writer:{number}" for number in range(1, 41)]


def test_a_falsely_suspected_broker_redirects_its_clients_without_loss() -> None:
    faults = (Suspect(650.0, "b1", "b0"), Trust(700.0, "b1", "b0"))
    scenario = msgspec.structs.replace(ring(), faults=faults)
    assert delivered(scenario) == [f"writer:{number}" for number in range(1, 41)]


def test_subscriptions_of_a_failing_broker_end_at_their_position() -> None:
    scenario = ring(Crash(655.0, "b3"))
    trace = run_scenario(scenario).trace
    assert trace is not None
    [subscription] = trace.subscriptions
    assert subscription.ended_ms is not None
    got = [row.event_id for row in trace.history if row.kind == "deliver"]
    assert got == [f"writer:{number}" for number in range(1, len(got) + 1)]
    assert 0 < len(got) < 40
    assert trace.cuts[0].to_seq == len(got)


def test_without_paths_to_spare_each_link_carries_a_message_once() -> None:
    scenario = ring(f=0)
    hops = run_scenario(scenario).message_counts[Hop.__name__]
    twice = run_scenario(ring()).message_counts[Hop.__name__]
    assert hops < twice / 2
