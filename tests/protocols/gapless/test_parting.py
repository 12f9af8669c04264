"""Two halves that went on without each other, and what everyone is told of it when they meet."""

import pytest

from gapless.checkers import check
from gapless.overlay import star
from gapless.protocols.gapless.broker import GaplessBroker
from gapless.protocols.gapless.client_messages import Parted
from gapless.protocols.gapless.members.status import excluded_status
from gapless.protocols.gapless.parting import TOGETHER, join, parting, to_tell
from gapless.protocols.gapless.recovery.handover import has_two_owners
from gapless.simulator import Scenario, run_scenario
from gapless.simulator.scenario import (
    AdvertiseAction,
    Client,
    Cut,
    Delay,
    Fault,
    Heal,
    LatencySpec,
    Network,
    ProtocolChoice,
    PublishAction,
    Run,
    SubscribeAction,
)
from gapless.simulator.scenario_run import prepare, run_prepared
from tests.protocols.gapless.recovery.bench import contribution, region_at

HALVES = (("b0", "b1", "b2"), ("b3", "b4", "b5"))


def cut(*, until_ms: float = 6000.0, partition: str = "go on") -> Scenario:
    """A chain of six that is cut in the middle; ann publishes in the lower half, and bob subscribes in the other."""
    pairs = [(one, other) for one in HALVES[0] for other in HALVES[1]]
    pairs += [("ann", other) for other in HALVES[0]] + [("bob", other) for other in HALVES[1]]
    cuts: list[Fault] = [Cut(1000.0, pair) for pair in pairs]
    heals: list[Fault] = [Heal(until_ms, pair) for pair in pairs]
    return Scenario(
        name="halves",
        network=Network(
            "edges",
            edges=tuple((f"b{n}", f"b{n + 1}") for n in range(5)),
            f=1,
            latency=LatencySpec(ms=5.0),
            detection=Delay(30.0, 60.0),
        ),
        protocol=ProtocolChoice("gapless", {"partition": partition}),
        run=Run(seed=1, settle_ms=30_000.0, may_lose=True),
        clients=(Client("ann", "b5"), Client("bob", "b0")),
        actions=(
            AdvertiseAction(100.0, "ann", "a", "TRUE"),
            SubscribeAction(100.0, "bob", "s", "TRUE"),
            PublishAction(500.0, "ann", {"x": 1}),
            PublishAction(3000.0, "ann", {"x": 2}),
        ),
        faults=(*cuts, *heals),
    )


def test_partings_that_overlap_are_one() -> None:
    assert parting(0, 1_550_000) == (1, 1_600_000)
    assert to_tell((1, 1_600_000)) == to_tell((1, 2_000_000)) == (1, 2_000_000)
    assert join(TOGETHER, (5, 9)) == join((5, 9), TOGETHER) == (5, 9)
    assert join((5, 9), (7, 12)) == join((7, 12), (5, 9)) == (5, 12)
    assert join((5, 9), (10, 12)) == join((10, 12), (5, 9)) == (10, 12), "the first was told before"


def test_two_who_hold_the_same_session_went_on_without_each_other() -> None:
    region = region_at(star(4), {"b0": excluded_status(0)}, "b1")
    ours, theirs = contribution(region, owned={"a": 1, "b": 1}), contribution(region, owned={"c": 1})
    assert not has_two_owners([ours, theirs])
    assert has_two_owners([ours, theirs, contribution(region, owned={"b": 2})])


def test_everyone_hears_of_it_when_they_meet_and_clients_are_told() -> None:
    scenario = cut()
    simulation = prepare(scenario, None)
    result = run_prepared(scenario, simulation)
    brokers = [node for node in simulation.broker_nodes() if isinstance(node, GaplessBroker)]
    [told] = {node.life.membership.parted for node in brokers}
    assert 1 <= told[0] < 1_000_000, "what was common before the cut is not in it"
    assert 6_000_000 < told[1] < 20_000_000
    assert result.message_counts[Parted.__name__] >= 2


@pytest.mark.parametrize(
    "scenario",
    [cut(until_ms=1020.0), cut(partition="wait")],
    ids=["before anybody noticed", "where brokers wait"],
)
def test_who_did_not_go_on_has_nothing_to_tell(scenario: Scenario) -> None:
    result = run_scenario(scenario)
    assert Parted.__name__ not in result.message_counts
    assert result.trace is not None
    verdict = check(result.trace)
    assert (verdict.status, verdict.deliveries, verdict.reported_losses) == ("valid", 2, 0), verdict.reason
