"""Shared by workloads in which every client subscribes to everything, in a tree filled level by level, while parts
fail.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from gapless.overlay import Overlay
from gapless.simulator import Scenario
from gapless.simulator.scenario import (
    Client,
    Fault,
    LatencySpec,
    Network,
    ProtocolChoice,
    PublishAction,
    Run,
    SubscribeAction,
)
from gapless_papers.lab.measures import Observed, Pair

__all__ = ["delivered", "everybody_subscribes"]


def everybody_subscribes(
    name: str,
    tree: Overlay,
    delta: int,
    clients: Sequence[int],
    publications: Iterable[PublishAction],
    faults: Iterable[Fault],
    *,
    protocol: str,
    options: Mapping[str, Any],
    seed: int,
) -> Scenario:
    """Return a scenario in which a client at each of these brokers subscribes to everything at once, plus the given
    steps.
    """
    return Scenario(
        name=name,
        network=Network("edges", edges=tuple(tree.edges), f=delta, latency=LatencySpec(ms=10.0)),
        protocol=ProtocolChoice(protocol, dict(options)),
        run=Run(seed=seed, settle_ms=5_000.0, max_steps=1_000_000_000),
        clients=tuple(Client(f"c{number}", f"b{number}") for number in clients),
        actions=(
            *(SubscribeAction(0.0, f"c{number}", f"s{number}", "TRUE") for number in clients),
            *publications,
        ),
        faults=tuple(faults),
    )


def delivered(run: Observed, due: int) -> Iterator[Pair]:
    """Yield the number of deliveries as a percentage of those due."""
    came = len(run.observer.latencies_us) + run.observer.own_deliveries
    yield "percent", 100 * came / due
