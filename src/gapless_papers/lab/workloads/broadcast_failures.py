"""Everybody wants everything, and some brokers fail (paper 003, Figure 9).

A tree filled level by level, a subscriber at each broker, all subscriptions in place; then some brokers, drawn by the
seed, fail at once and for good. When that has been noticed, living brokers publish, one event after the other.
"""

import random
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from gapless.simulator import Scenario
from gapless.simulator.scenario import Crash, PublishAction
from gapless_papers.lab.measures import Measure, Observed, Pair
from gapless_papers.lab.workloads.everybody import delivered, everybody_subscribes
from gapless_papers.lab.workloads.tree_failures import filled_tree
from gapless_papers.lab.workloads.workload import ScenarioWorkload

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
        publications = [
            PublishAction(PUBLISH_MS + turn * EVERY_MS, f"c{dice.choice(living)}", {"turn": turn})
            for turn in range(self.events)
        ]
        faults = [Crash(FAIL_MS, f"b{number}") for number in failed]
        return everybody_subscribes(
            "broadcast-failures", tree, self.delta, range(self.brokers), publications, faults,
            protocol=protocol, options=options, seed=seed,
        )  # fmt: skip

    def _delivered(self, run: Observed) -> Iterator[Pair]:
        return delivered(run, self.events * (self.brokers - self.failed))
