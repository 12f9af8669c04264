"""Random scenarios on graphs: large ones, permanent faults that affect operations in flight, and rejected scales."""

import random
from functools import cache

import pytest

from gapless.errors import ScenarioError
from gapless.overlay import Overlay, chain, from_edges
from gapless.simulator import GeneratorLimits, Scenario, generate, parse_scenario, search
from gapless.simulator.generator_scales import GRAPH, LARGE_GRAPH
from gapless.simulator.graph_scenarios import choose_graph_scale, generate_on_graph
from gapless.simulator.in_flight import draw_target, operations_of
from gapless.simulator.scenario import Client, Crash, PublishAction, SubscribeAction, Suspect

KINDS = "crash,in-flight,suspicion"


@cache
def large(f: int, faults: str = KINDS) -> list[Scenario]:
    limits = GeneratorLimits(f=f)
    return [generate_on_graph(seed, "locaps", faults, limits=limits, scale=LARGE_GRAPH) for seed in range(40)]


def excluded(scenario: Scenario) -> list[str]:
    names = [fault.broker if isinstance(fault, Crash) else fault.target for fault in scenario.faults
             if isinstance(fault, Crash | Suspect)]  # fmt: skip
    return list(dict.fromkeys(names))


def tree_of(scenario: Scenario) -> Overlay:
    return from_edges(scenario.network.edges or ())


@pytest.mark.parametrize("f", [1, 2, 3])
def test_large_graphs_are_trees_with_bypasses_over_15_to_40_brokers(f: int) -> None:
    sizes = {len(tree_of(scenario).brokers) for scenario in large(f)}
    assert min(sizes) >= 15
    assert max(sizes) <= 40
    assert len(sizes) > 10
    assert {(scenario.network.f, scenario.network.bypass) for scenario in large(f)} == {(f, f)}
    assert max(tree_of(scenario).diameter for scenario in large(f)) > 12


@pytest.mark.parametrize("f", [1, 2, 3])
def test_more_than_f_brokers_fail_in_all_but_no_more_than_f_in_a_neighbourhood_of_the_tree(f: int) -> None:
    beyond = 0
    for scenario in large(f):
        tree = tree_of(scenario)
        lost = excluded(scenario)
        for centre in tree.brokers:
            assert sum(tree.distance(centre, broker) <= f + 1 for broker in lost) <= f
        beyond += len(lost) > f
    assert beyond >= 8


def test_all_that_can_hurt_occurs() -> None:
    seen = dict.fromkeys(("publisher", "soon", "suspect", "crash"), 0)
    for scenario in large(1):
        at = {client.name: client.broker for client in scenario.clients}
        publishers = {at[action.client] for action in scenario.actions if isinstance(action, PublishAction)}
        subscribed = [action.at_ms for action in scenario.actions if isinstance(action, SubscribeAction)]
        crashes = [fault for fault in scenario.faults if isinstance(fault, Crash)]
        seen["crash"] += bool(crashes)
        seen["suspect"] += any(isinstance(fault, Suspect) for fault in scenario.faults)
        seen["publisher"] += any(crash.broker in publishers for crash in crashes)
        seen["soon"] += any(
            crash.broker in publishers and any(0 < crash.at_ms - at_ms < 100 for at_ms in subscribed)
            for crash in crashes
        )
    assert min(seen.values()) >= 8, seen


def test_they_can_be_saved_and_are_the_same_each_time() -> None:
    for scenario in large(2)[:10]:
        assert parse_scenario(scenario.to_toml()) == scenario
    assert large(2)[3] == generate_on_graph(3, "locaps", KINDS, limits=GeneratorLimits(f=2), scale=LARGE_GRAPH)


def test_a_target_is_on_the_path_of_an_operation_before_it_can_be_answered() -> None:
    tree = chain(6)
    clients = (Client("writer", "b0"), Client("reader", "b3"))
    operations = operations_of((SubscribeAction(500.0, "reader", "s", "TRUE"),), clients)
    drawn = [draw_target(random.Random(seed), tree, operations, ["b0", "b3"], 10.0) for seed in range(200)]
    assert {broker for broker, _ in drawn} == {"b0", "b1", "b2", "b3"}
    assert all(500.0 <= at_ms <= 560.0 for _, at_ms in drawn)


@pytest.mark.parametrize("protocol", ["gapless", "delta", "vcube"])
def test_crashes_meet_operations_of_every_protocol(protocol: str) -> None:
    for seed in range(20):
        scenario = generate(seed, protocol, "in-flight")
        assert any(isinstance(fault, Crash) for fault in scenario.faults)


@pytest.mark.parametrize("scale", ["small", "graph"])
def test_the_small_scale_of_a_protocol_without_returns_is_a_small_graph(scale: str) -> None:
    assert choose_graph_scale(scale, 0, "crash") == GRAPH


def test_half_of_the_mixed_graphs_are_large_and_all_that_have_suspicions() -> None:
    chosen = [choose_graph_scale("mixed", seed, "crash") for seed in range(100)]
    assert 30 < chosen.count(LARGE_GRAPH) < 70
    assert {choose_graph_scale("mixed", seed, KINDS) for seed in range(10)} == {LARGE_GRAPH}


@pytest.mark.parametrize(
    ("scale", "faults", "sentence"),
    [
        ("long", "crash", "with this protocol crashed brokers do not return; choose small, large or mixed"),
        ("small", "crash,suspicion", "on small graphs there are crashes only, but faults is crash,suspicion"),
        ("huge", "crash", "there is no 'huge'"),
    ],
)
def test_a_scale_that_does_not_apply_is_refused(scale: str, faults: str, sentence: str) -> None:
    with pytest.raises(ScenarioError, match=sentence):
        search("locaps", 1, faults=faults, scale=scale, processes=1)


def test_large_graphs_take_no_fault_that_ends() -> None:
    with pytest.raises(ScenarioError, match="there are crash, in-flight and suspicion, but not cut"):
        generate_on_graph(0, "locaps", "cut", scale=LARGE_GRAPH)
