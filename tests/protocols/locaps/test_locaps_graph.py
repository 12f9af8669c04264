"""LoCaPS over f + 1 paths: on graphs, with crashes, and what each repair is for.

More of them by hand: `gapless sim search --protocol locaps --faults crash --runs 5000`.
"""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from gapless.errors import ScenarioError
from gapless.protocols.locaps.messages import Hop
from gapless.protocols.locaps.options import REPAIRS
from gapless.simulator import Scenario, load_scenario, run_scenario, search, try_scenario
from gapless.simulator.graph_scenarios import generate_on_graph
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

SCENARIOS = Path(__file__).parent / "scenarios"
FOUND = {
    "effect_before_the_pivots": ("pivots", "missing-effect"),
    "publisher_told_later": ("together", "missing-effect"),
    "cover_forgotten_too_soon": ("two-steps", "gap"),
}
"""The smallest scenario that needs each repair, and what happens without."""
ONCE_FAILED = (2, 3, 28, 112, 113, 140, 182, 443, 582)
"""Seeds with crashes that broke the guarantee, or progress, while this was written."""


def with_options(scenario: Scenario, **options: Any) -> Scenario:
    return msgspec.structs.replace(scenario, protocol=ProtocolChoice("locaps", options))


@pytest.mark.parametrize("name", FOUND)
def test_each_repair_is_needed(name: str) -> None:
    scenario = load_scenario(SCENARIOS / f"{name}.toml")
    repair, symptom = FOUND[name]
    assert repair in REPAIRS
    assert try_scenario(scenario).status == "valid"
    assert try_scenario(with_options(scenario, switched_off=[repair])).symptoms == (symptom,)


def test_the_cascade_mends_what_it_is_for() -> None:
    """Algorithm 1, lines 14 to 21: a publisher that hears of a subscription from another's marker answers it."""
    scenario = load_scenario(SCENARIOS / "publisher_told_later.toml")
    assert try_scenario(with_options(scenario, switched_off=["together"], cascade=True)).status == "valid"


@pytest.mark.parametrize("seed", ONCE_FAILED)
def test_what_once_failed_does_not_any_more(seed: int) -> None:
    outcome = try_scenario(generate_on_graph(seed, "locaps", "crash"))
    assert not outcome.failed, outcome.verdict


@pytest.mark.parametrize("options", [{}, {"full_markers": True}, {"coverage": False}], ids=str)
def test_no_violation_on_graphs(options: dict[str, Any]) -> None:
    report = search("locaps", 12, 1000, options=options, processes=1, scale="graph")
    assert report.finding is None, report.finding.repeat


def test_no_violation_with_crashes() -> None:
    report = search("locaps", 24, 2000, "crash", processes=1)
    assert report.finding is None, report.finding.repeat


@pytest.mark.parametrize("seed", range(3000, 3012))
def test_on_a_tree_it_makes_its_own_bypasses(seed: int) -> None:
    scenario = generate_on_graph(seed, "locaps", "crash")
    if scenario.network.bypass:
        scenario = msgspec.structs.replace(scenario, network=msgspec.structs.replace(scenario.network, bypass=0))
        outcome = try_scenario(scenario)
        assert not outcome.failed, outcome.verdict


def test_on_graphs_there_are_crashes_only() -> None:
    with pytest.raises(ScenarioError, match="on graphs there are crashes only, and you ask for cut"):
        generate_on_graph(0, "locaps", "cut")


def ring(*faults: Crash, f: int = 1) -> Scenario:
    """A writer and a reader at opposite places of a ring of six, 10 ms a link."""
    return Scenario(
        network=Network("ring", brokers=6, f=f, latency=LatencySpec(ms=10.0)),
        protocol=ProtocolChoice("locaps"),
        run=Run(settle_ms=2000.0),
        clients=(Client("writer", "b0"), Client("reader", "b3")),
        actions=(
            AdvertiseAction(0.0, "writer", "a", "TRUE"),
            SubscribeAction(200.0, "reader", "s", "TRUE"),
            PublishAction(500.0, "writer", {"n": 1}, count=40, every_ms=10.0),
        ),
        faults=faults,
    )


def delivered(scenario: Scenario) -> list[str]:
    trace = run_scenario(scenario).trace
    assert trace is not None
    return [row.event_id for row in trace.history if row.kind == "deliver"]


@pytest.mark.parametrize("broker", ["b1", "b2", "b4", "b5"])
def test_the_other_way_round_serves_if_one_is_broken(broker: str) -> None:
    expected = [f"writer:{number}" for number in range(1, 41)]
    assert delivered(ring()) == expected
    assert delivered(ring(Crash(650.0, broker))) == expected


def test_the_publishers_broker_may_fail_and_nothing_is_lost() -> None:
    assert delivered(ring(Crash(655.0, "b0"))) == [f"writer:{number}" for number in range(1, 41)]


def test_a_broker_that_is_wrongly_taken_for_dead_sends_its_clients_away_and_nothing_is_lost() -> None:
    faults = (Suspect(650.0, "b1", "b0"), Trust(700.0, "b1", "b0"))
    scenario = msgspec.structs.replace(ring(), faults=faults)
    assert delivered(scenario) == [f"writer:{number}" for number in range(1, 41)]


def test_subscriptions_of_a_broker_that_fails_end_where_they_stand() -> None:
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
