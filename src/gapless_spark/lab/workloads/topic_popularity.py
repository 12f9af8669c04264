"""Many topics, some more popular than others (Figure 7)."""

import random
from collections.abc import Iterator, Mapping
from heapq import heapify, heapreplace
from itertools import accumulate
from typing import Any

from gapless.simulator import Scenario
from gapless.simulator.scenario import PublishAction
from gapless_spark.lab.workloads.topics import START_MS, TopicWorkload

__all__ = ["TopicPopularity"]


class TopicPopularity(TopicWorkload, frozen=True):
    """All nodes subscribe to all topics and publish at random times, until so many messages are published in all."""

    messages: int = 128
    topics: int = 128
    zipf: float = 0.0
    """The n-th topic is chosen with a probability in proportion to 1 / n^zipf; 0 is uniform."""
    every_ms: float = 500.0
    """Between two messages of a node, on average; exponentially distributed."""

    def cost(self) -> float:
        """In messages."""
        return float(self.nodes * self.messages)

    def scenario(self, protocol: str, options: Mapping[str, Any], seed: int) -> Scenario:
        """The topics' names decide on their roots, so they differ from run to run."""
        names = [f"t{seed}.{number}" for number in range(self.topics)]
        wanted = {name: range(self.nodes) for name in names}
        actions = list(self._publications(names, random.Random(f"{seed}/topic-popularity")))
        return self.assemble("topic-popularity", protocol, options, seed, wanted, actions=actions)

    def _publications(self, names: list[str], dice: random.Random) -> Iterator[PublishAction]:
        weights = list(accumulate(1 / rank**self.zipf for rank in range(1, self.topics + 1)))
        due = [(START_MS + dice.expovariate(1 / self.every_ms), number) for number in range(self.nodes)]
        heapify(due)
        for _ in range(self.messages):
            at_ms, number = due[0]
            topic = dice.choices(names, cum_weights=weights)[0]
            yield PublishAction(round(at_ms, 3), f"c{number}", {"topic": topic})
            heapreplace(due, (at_ms + dice.expovariate(1 / self.every_ms), number))
