"""All members of a unit come to the same view, whatever happens: storms of restarts, far beyond f, and no clients.

When the storm is over every broker is back, is settled in the eyes of all around it, and has its links of the tree;
both ends have the same installation of each, and no hand-over is under way.
"""

import random

import pytest

from gapless.protocols.gapless.broker import GaplessBroker
from gapless.protocols.gapless.members.status import FIRST, is_unsettled
from gapless.protocols.gapless.recovery.handovers import Handovers, Missing
from gapless.simulator import NodeError, Scenario
from gapless.simulator.generator_trees import draw_tree
from gapless.simulator.scenario import Crash, Delay, Fault, LatencySpec, Network, ProtocolChoice, Restart, Run
from gapless.simulator.scenario_run import prepare, run_prepared

SEEDS = range(40)
DOUBTED = (87, 94, 187)
"""Seeds of storms in which a broker is settled while another has stopped using its link to it."""


def storm(seed: int) -> Scenario:
    """Brokers go and come all the time, many before anybody notices, over links of very different delays."""
    dice = random.Random(f"{seed}/storm")
    tree = draw_tree(dice, dice.randint(3, 14))
    detect_ms = float(dice.randint(20, 80))
    until_ms = dice.choice([300.0, 1000.0, 3000.0])
    away_ms = dice.choice([1.0, detect_ms / 2, detect_ms, 3 * detect_ms, 500.0])
    faults: list[Fault] = []
    for broker in tree.brokers:
        at_ms = dice.uniform(0, until_ms)
        while at_ms < 1.5 * until_ms and dice.random() < 0.7:
            back_ms = at_ms + dice.uniform(0.1, 1) * away_ms
            faults += [Crash(round(at_ms, 3), broker), Restart(round(back_ms, 3), broker, memory=dice.random() < 0.1)]
            at_ms = back_ms + dice.uniform(0.1, dice.choice([100.0, 600.0, 2000.0]))
    return Scenario(
        name=f"storm-{seed}",
        network=Network(
            shape="edges",
            edges=tree.edges,
            f=dice.randint(1, 3),
            latency=LatencySpec(
                model=dice.choice(["jitter", "per-link"]), min_ms=0.2, max_ms=dice.choice([1.0, 40.0, 120.0, 300.0])
            ),
            detection=Delay(detect_ms, detect_ms + dice.randint(10, 150)),
            reconnect=Delay(0.0, dice.choice([0.0, 20.0, 60.0])),
        ),
        protocol=ProtocolChoice("gapless", {"partition": "go on"}),
        run=Run(seed=seed, settle_ms=30_000.0),
        faults=tuple(sorted(faults, key=lambda fault: fault.at_ms)),
    )


def after(scenario: Scenario) -> dict[str, GaplessBroker]:
    """The brokers when all is over."""
    simulation = prepare(scenario, None)
    run_prepared(scenario, simulation)
    brokers = {}
    for name, slot in simulation.slots.items():
        assert isinstance(slot.node, GaplessBroker)
        brokers[name] = slot.node
    return brokers


def agree(brokers: dict[str, GaplessBroker]) -> None:
    for name, broker in brokers.items():
        membership, links = broker.life.membership, broker.life.table.links
        assert broker.life.handovers.missing() == [], name
        assert not is_unsettled(membership.status.get(name, FIRST)), name
        for other in broker._site.near:
            assert membership.status.get(other, 0) == brokers[other].life.membership.status.get(other, 0), (name, other)
        assert set(links) == set(membership.overlay.neighbours(name)), name
        for peer, link in links.items():
            assert brokers[peer].life.table.links[name].tag == link.tag, (name, peer)


@pytest.mark.parametrize("seed", [*SEEDS, *DOUBTED])
def test_after_a_storm_all_agree(seed: int) -> None:
    agree(after(storm(seed)))


def test_without_doubts_some_would_wait_for_links_that_nobody_installs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Handovers, "doubt", lambda handovers, news: {})
    for seed in DOUBTED:
        with pytest.raises(NodeError, match="a link that is not used has to be in a region that is handed over"):
            after(storm(seed))


def waiting(until_ms: float, *faults: Fault) -> dict[str, list[Missing]]:
    """For whom everyone waits at that time, in a chain of five with links of 10 ms."""
    scenario = Scenario(
        name="waiting",
        network=Network(
            shape="chain",
            brokers=5,
            f=2,
            latency=LatencySpec(model="jitter", min_ms=10.0, max_ms=10.0),
            detection=Delay(50.0, 50.0),
        ),
        protocol=ProtocolChoice("gapless", {"partition": "go on"}),
        run=Run(seed=1, until_ms=until_ms),
        faults=faults,
    )
    found = {name: broker.life.handovers.missing() for name, broker in after(scenario).items()}
    return {name: missing for name, missing in found.items() if missing}


def test_a_hand_over_tells_whose_contribution_is_missing() -> None:
    faults = (Crash(1000.0, "b1"), Crash(1060.0, "b0"))
    assert waiting(1040.0, *faults) == {}
    assert waiting(1090.0, *faults) == {"b2": [Missing(("b1",), "contribution", ("b0",))]}
    assert waiting(1300.0, *faults) == {}


def test_who_is_to_be_settled_tells_who_has_not_completed() -> None:
    faults = (Crash(1000.0, "b1"), Restart(2000.0, "b1"))
    assert waiting(2005.0, *faults) == {"b1": [Missing(("b1",), "contribution", ("b2", "b0"))]}
    assert waiting(2030.0, *faults) == {"b1": [Missing(("b1",), "completion", ("b2", "b0"))]}
    assert waiting(2100.0, *faults) == {}
