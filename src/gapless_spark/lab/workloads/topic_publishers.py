"""Many publishers at once: contention, and who carries the load (Figure 5 and Table I)."""

import random
from collections.abc import Mapping
from typing import Any

from gapless.simulator import Scenario
from gapless.simulator.scenario import PublishAction
from gapless_spark.lab.workloads.topics import START_MS, TopicWorkload

__all__ = ["TopicPublishers"]


class TopicPublishers(TopicWorkload, frozen=True):
    """All nodes subscribe; some publish one message each, at a time drawn from the first 1000 units."""

    publishers: float = 1.0
    """Their share of the nodes; at least one."""
    within_ms: float = 1000.0

    def cost(self) -> float:
        """In messages."""
        return self.nodes * max(1.0, self.nodes * self.publishers)

    def scenario(self, protocol: str, options: Mapping[str, Any], seed: int) -> Scenario:
        """The topic's name decides on its root, so it differs from run to run."""
        dice = random.Random(f"{seed}/topic-publishers")
        topic = f"t{seed}"
        count = max(1, round(self.nodes * self.publishers))
        actions = [
            PublishAction(round(START_MS + dice.uniform(0, self.within_ms), 3), f"c{number}", {"topic": topic})
            for number in dice.sample(range(self.nodes), count)
        ]
        wanted = {topic: range(self.nodes)}
        return self.assemble("topic-publishers", protocol, options, seed, wanted, actions=actions)
