"""Everybody wants everything, and some brokers fail (paper 003, Figure 9).

A tree filled level by level, a subscriber at each broker, all subscriptions in place; then some brokers, drawn by the
seed, fail at once and for good. When that has been noticed, living brokers publish, one event after the other.
"""

import random
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from gapless.simulator import Scenario
from gapless.simulator.scenario import (
    Client,
    Crash,
    LatencySpec,
    Network,
    ProtocolChoice,
    PublishAction,
    Run,
    SubscribeAction,
)
from gapless_spark.lab.measures import Measure, Observed, Pair
from gapless_spark.lab.workloads.tree_failures import filled_tree
from gapless_spark.lab.workloads.workload import ScenarioWorkload

__all__ = ["BroadcastFailures"]

FAIL_MS = 5_000.0
"""All subscriptions are in place."""
PUBLISH_MS = 11_000.0
"""The failures are known, and those who failed are given up."""
EVERY_MS = 10.0


class BroadcastFailures(ScenarioWorkload, frozen=True):
    """All times are milliseconds."""

    brokers: int = 500
    fanout: int = 3
    delta: int = 3
    failed: int = 0
    events: int = 40
    """By living brokers, drawn by the seed."""

    own_measures: ClassVar[tuple[str, ...]] = ("delivered",)

    def __post_init__(self) -> None:
        if not 0 <= self.failed < self.brokers:
            raise ValueError(f"failed is {self.failed}, but there are {self.brokers} brokers, and one must live")

    def cost(self) -> float:
        """In messages."""
        return float(self.brokers * (self.brokers + self.events))

    def measures(self) -> Mapping[str, Measure]:
        """How much of what was due to the clients of living brokers was delivered."""
        return {"delivered": self._delivered}

    def scenario(self, protocol: str, options: Mapping[str, Any], seed: int) -> Scenario:
        """Who fails and who publishes is drawn by the seed."""
        dice = random.Random(f"{seed}/broadcast-failures")
        tree = filled_tree(self.brokers, self.fanout)
        order = dice.sample(range(self.brokers), self.brokers)
        failed, living = order[: self.failed], order[self.failed :]
        publishers = [dice.choice(living) for _ in range(self.events)]
        return Scenario(
            name="broadcast-failures",
            network=Network("edges", edges=tuple(tree.edges), f=self.delta, latency=LatencySpec(ms=10.0)),
            protocol=ProtocolChoice(protocol, dict(options)),
            run=Run(seed=seed, settle_ms=5_000.0, max_steps=1_000_000_000),
            clients=tuple(Client(f"c{number}", f"b{number}") for number in range(self.brokers)),
            actions=(
                *(SubscribeAction(0.0, f"c{number}", f"s{number}", "TRUE") for number in range(self.brokers)),
                *(
                    PublishAction(PUBLISH_MS + turn * EVERY_MS, f"c{number}", {"turn": turn})
                    for turn, number in enumerate(publishers)
                ),
            ),
            faults=tuple(Crash(FAIL_MS, f"b{number}") for number in failed),
        )

    def _delivered(self, run: Observed) -> Iterator[Pair]:
        came = len(run.observer.latencies_us) + run.observer.own_deliveries
        yield "percent", 100 * came / (self.events * (self.brokers - self.failed))
