"""Recovery of events in whole networks. For larger networks, see `benchmarks/epidemic_recovery.py`."""

from functools import cache
from typing import Any

import msgspec
import pytest
from benchmarks.epidemic_recovery import RECOVERIES, Case, Figures, measure, scenario_of

from gapless.checkers import check
from gapless.overlay import Overlay, random_tree
from gapless.protocol import Subscribe
from gapless.simulator import Settings, Simulation, run_scenario
from gapless.simulator.relinking import ChangingTree
from gapless_papers.protocols.epidemic.broker import EpidemicBroker
from gapless_papers.protocols.epidemic.options import Recovery

SMALL: dict[str, Any] = {
    "brokers": 20, "publishers": 2, "rate": 40.0, "patterns": 4, "patterns_per_event": 1, "subscribers": 16,
    "warm_ms": 3_000.0, "measured_ms": 1_500.0, "drain_ms": 1_500.0,
}  # fmt: skip


@cache
def figures(recovery: Recovery) -> Figures:
    return measure(Case(recovery, **SMALL))


def delivered(recovery: Recovery, **more: Any) -> float:
    return measure(Case(recovery, **{**SMALL, **more})).delivered


def test_gossip_recovers_what_lossy_links_lose() -> None:
    shares = {recovery: figures(recovery).delivered for recovery in RECOVERIES}
    assert shares["none"] < 0.6
    assert shares["push"] >= 0.99
    assert shares["publisher-pull"] >= 0.99
    assert shares["combined-pull"] >= 0.99
    assert shares["none"] + 0.1 < shares["subscriber-pull"] < shares["combined-pull"]


def test_pull_is_reactive_and_push_is_not() -> None:
    """Section 2.2: without losses, pull sends nothing, and push continues."""
    for recovery in RECOVERIES:
        calm = measure(Case(recovery, **{**SMALL, "loss": 0.0, "warm_ms": 0.0}))
        assert calm.delivered == 1
        assert (calm.gossip > 0) == (recovery == "push")
        assert calm.requests + calm.retransmissions == 0


def test_subscriber_based_pull_finds_no_peer_without_shared_patterns() -> None:
    """Section 5: pull depends on subscribers of the same pattern; combining it with the other pull helps."""
    alone = {"subscribers": 4}
    assert delivered("subscriber-pull", **alone) == delivered("none", **alone) < 0.8
    assert delivered("combined-pull", **alone) >= 0.99


@pytest.mark.slow
def test_push_suffers_from_many_patterns_and_small_caches() -> None:
    """Section 5: with more patterns an event is announced later, and may have been evicted by then."""
    few = {"options": {"buffer": 50}}
    many = {**few, "patterns": 100, "patterns_per_subscriber": 25}
    assert delivered("push", **few) >= 0.99
    assert delivered("push", **many) < 0.9


@pytest.mark.parametrize(("name", "good", "bad"), [("buffer", 500, 10), ("gossip_ms", 30.0, 1000.0)])
def test_buffers_and_intervals_matter(name: str, good: float, bad: float) -> None:
    for recovery in ("push", "combined-pull"):
        shares = [delivered(recovery, options={name: value, "give_up_ms": 3_000.0}) for value in (good, bad)]
        assert shares[0] > shares[1] + 0.02, (recovery, shares)


@pytest.mark.slow
def test_losses_of_a_changing_tree_are_recovered() -> None:
    changing = {"loss": 0.0, "relink_ms": 100.0}
    lost = 1 - delivered("none", **changing)
    assert lost > 0.02
    assert 1 - delivered("combined-pull", **changing) < lost / 5
    assert 1 - delivered("push", **changing) < lost / 5


@pytest.mark.parametrize("recovery", RECOVERIES)
def test_no_event_is_delivered_twice_or_to_the_wrong_subscription(recovery: Recovery) -> None:
    case = Case(recovery, **{**SMALL, "relink_ms": 400.0, "measured_ms": 500.0, "drain_ms": 0.0, "seed": 3})
    scenario = scenario_of(case)
    network = msgspec.structs.replace(scenario.network, duplication=0.1)
    trace = run_scenario(msgspec.structs.replace(scenario, network=network)).trace
    assert trace is not None
    assert check(trace).status == "valid"


# ---- routes


def expected_peers(tree: Overlay, wanted: dict[str, str], broker: str) -> dict[str, set[str]]:
    """Return, for each pattern, the neighbours behind which there is a subscriber, by walking the tree."""
    found: dict[str, set[str]] = {}
    for client_broker, pattern in wanted.items():
        if client_broker != broker:
            found.setdefault(pattern, set()).add(tree.path(broker, client_broker)[1])
    return found


@pytest.mark.parametrize("seed", range(8))
def test_routes_are_right_after_all_reconfigurations_and_losses(seed: int) -> None:
    tree = ChangingTree(random_tree(12, seed))
    settings = Settings(loss=0.3, duplication=0.1)
    simulation = Simulation(tree.overlay, "epidemic", settings=settings, seed=seed, options={"recovery": "none"})
    wanted = {f"b{number}": f"topic = {number % 3}" for number in range(0, 12, 2)}
    for broker, pattern in wanted.items():
        simulation.add_client(f"{broker}.c", broker)
        simulation.call(f"{broker}.c", Subscribe(f"{broker}.s", pattern), at=100_000)
    for number in range(10):
        old = tree.overlay.edges[(seed + 5 * number) % 11]
        sides = [
            [name for name in tree.overlay.brokers if (tree.overlay.path(name, old[0])[-2:] == (old[1], old[0])) == far]
            for far in (False, True)
        ]
        new = (sides[0][number % len(sides[0])], sides[1][-1 - number % len(sides[1])])
        if set(new) != set(old):
            tree.take_away(old, new)
            tree.bring(new)
            simulation.relink(old, new, at=120_000 + 170_000 * number)
    simulation.run(settle=8_000_000)
    for name in tree.overlay.brokers:
        node = simulation.slots[name].node
        assert isinstance(node, EpidemicBroker)
        table = node._table
        assert set(table.links) == set(tree.overlay.neighbours(name))
        peers = {text: set(table.peers(text)) for text in wanted.values() if table.peers(text)}
        assert peers == expected_peers(tree.overlay, wanted, name)
