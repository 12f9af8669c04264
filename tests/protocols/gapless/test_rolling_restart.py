"""Every broker restarts, one after the other or all at once; afterwards the network works as before.

What a unit is does not depend on how wide the tree is, nor on how many have restarted before.
"""

from itertools import pairwise

import msgspec
import pytest

from gapless.overlay import Overlay, chain, random_tree
from gapless.simulator import Scenario, run_scenario, try_scenario
from gapless.simulator.scenario import (
    AdvertiseAction,
    Client,
    Crash,
    Delay,
    Fault,
    LatencySpec,
    Network,
    ProtocolChoice,
    PublishAction,
    Restart,
    Run,
    SubscribeAction,
)  # fmt: skip

CHAINS = {
    4: (0,), 5: (0,), 6: (2, 7), 7: (2, 3, 4, 6, 7, 12), 12: (0, 1, 2, 3, 4, 5),
}  # fmt: skip
TREES = {8: (0, 3), 12: (3, 6), 20: (0, 3, 4), 30: (0,)}
"""By size: seeds of runs that never came to an end while a returning broker was not told who was settled."""


def restart_all(overlay: Overlay, seed: int, f: int, every_ms: float, away_ms: float) -> Scenario:
    """All brokers restart in turn; when that is long over somebody publishes, and somebody subscribes."""
    faults: list[Fault] = []
    for place, name in enumerate(overlay.brokers):
        at_ms = 1000 + place * every_ms
        faults += [Crash(at_ms, name), Restart(at_ms + away_ms, name)]
    over_ms = max(fault.at_ms for fault in faults) + 30_000
    return Scenario(
        name=f"restart-all-{seed}",
        network=Network(
            shape="edges",
            edges=overlay.edges,
            f=f,
            latency=LatencySpec(model="jitter", min_ms=0.2, max_ms=0.6),
            detection=Delay(50.0, 75.0),
        ),
        protocol=ProtocolChoice("gapless", {}),
        run=Run(seed=seed, settle_ms=20_000.0),
        clients=(Client("alice", overlay.brokers[2], over_ms), Client("bob", overlay.brokers[-1], over_ms)),
        actions=(
            AdvertiseAction(over_ms + 1000, "alice", "a", "x >= 0"),
            SubscribeAction(over_ms + 2000, "bob", "s", "x >= 0"),
            PublishAction(over_ms + 3000, "alice", {"x": 1}, count=20, every_ms=10.0),
        ),
        faults=tuple(sorted(faults, key=lambda fault: fault.at_ms)),
    )


def works(scenario: Scenario) -> bool:
    outcome = try_scenario(scenario)
    assert outcome.verdict is not None, outcome.summary
    return outcome.status == "valid" and outcome.verdict.deliveries == 20


@pytest.mark.parametrize(("brokers", "seed"), [(size, seed) for size, seeds in CHAINS.items() for seed in seeds])
def test_a_chain_restarted_broker_by_broker_works_as_before(brokers: int, seed: int) -> None:
    assert works(restart_all(chain(brokers), seed, 1, 8000.0, 1500.0))


@pytest.mark.parametrize(("brokers", "seed"), [(size, seed) for size, seeds in TREES.items() for seed in seeds])
def test_a_tree_restarted_broker_by_broker_works_as_before(brokers: int, seed: int) -> None:
    assert works(restart_all(random_tree(brokers, seed, 3), seed, 1 + seed % 3, 8000.0, 1500.0))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("brokers", [6, 12, 20])
def test_a_network_that_restarts_all_at_once_works_again(brokers: int, seed: int) -> None:
    """More than f at a time may lose what they held; but a unit that is wider than a broker sees is one unit still."""
    assert works(restart_all(chain(brokers), seed, 1, 50.0, 3000.0 + 50.0 * brokers))
    assert works(restart_all(random_tree(brokers, seed, 3), seed, 1, 50.0, 3000.0 + 50.0 * brokers))


def test_a_restart_concerns_those_around_it_alone_however_many_have_restarted_before() -> None:
    """So each costs a chain as many messages as the one before, but for luck."""
    scenario = restart_all(chain(20), 1, 1, 8000.0, 1500.0)
    sent = []
    for count in range(7, 14):
        some = msgspec.structs.replace(scenario, faults=scenario.faults[: 2 * count])
        sent.append(run_scenario(some).messages)
    costs = [more - less for less, more in pairwise(sent)]
    assert max(costs) < 1.5 * min(costs), costs
