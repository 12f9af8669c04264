"""Every client subscribes to everything, and some brokers fail (paper 003, Figure 9).

The brokers are a tree filled level by level, with a subscriber at each broker. When all subscriptions are active, some
brokers, drawn by the seed, fail at once and never return. After the others have detected the failures, living brokers
publish, one event after the other.
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
"""By now all subscriptions are active."""
PUBLISH_MS = 11_000.0
"""By now the failures are detected, and the failed brokers are excluded."""
EVERY_MS = 10.0


class BroadcastFailures(ScenarioWorkload, frozen=True):
    """All times are milliseconds."""

    brokers: int = 500
    fanout: int = 3
    delta: int = 3
    failed: int = 0
    events: int = 40
    """The number of events, published by living brokers that the seed selects."""

    own_measures: ClassVar[tuple[str, ...]] = ("delivered",)

    def __post_init__(self) -> None:
        if not 0 <= self.failed < self.brokers:
            raise ValueError(f"failed is {self.failed}, but there are {self.brokers} brokers, and one must live")

    def cost(self) -> float:
        """Return the expected number of messages."""
        return float(self.brokers * (self.brokers + self.events))

    def measures(self) -> Mapping[str, Measure]:
        """Return the delivered share of the events due to clients of living brokers."""
        return {"delivered": self._delivered}

    def scenario(self, protocol: str, options: Mapping[str, Any], seed: int) -> Scenario:
        """Return the scenario; the seed selects the failing and the publishing brokers."""
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
