"""Many topics, some more popular than others (Figure 7)."""

import random
from collections.abc import Iterable, Iterator, Mapping
from heapq import heapify, heapreplace
from itertools import accumulate
from typing import Any, Literal

from gapless.simulator import Scenario
from gapless.simulator.scenario import PublishAction
from gapless_papers.lab.measures import Pair
from gapless_papers.lab.workloads.topics import START_MS, TopicWorkload

__all__ = ["TopicPopularity"]


class TopicPopularity(TopicWorkload, frozen=True):
    """All nodes subscribe to all topics and publish at random times, until `messages` messages are published."""

    messages: int = 128
    topics: int = 128
    zipf: float = 0.0
    """The n-th topic is chosen with a probability in proportion to 1 / n^zipf; 0 is uniform."""
    every_ms: float = 500.0
    """The mean time between two messages of a node."""
    gaps: Literal["exponential", "uniform", "fixed"] = "exponential"
    """The distribution of that time: uniform from 0 to twice the mean, constant after the first, or exponential."""
    map: int | None = None
    """The seed whose mapping of topics to roots all runs use; without it each run draws its own."""

    def cost(self) -> float:
        """Return the expected number of messages."""
        return float(self.nodes * self.messages)

    def scenario(self, protocol: str, options: Mapping[str, Any], seed: int) -> Scenario:
        """Return the scenario. The topics' names determine their roots, so they differ from run to run, unless `map` is
        set.
        """
        names = self._names(seed)
        wanted = {name: range(self.nodes) for name in names}
        actions = [
            PublishAction(at_ms, f"c{number}", {"topic": topic}) for at_ms, number, topic in self._publications(seed)
        ]
        return self.assemble("topic-popularity", protocol, options, seed, wanted, actions=actions)

    def computed(self, protocol: str, seed: int) -> Mapping[str, Iterable[Pair]] | None:
        """Return the measures from the model of queues, if that suffices."""
        return self.compute(protocol, self._names(seed), list(self._publications(seed))) if self.is_model else None

    def _names(self, seed: int) -> list[str]:
        chosen = seed if self.map is None else self.map
        return [f"t{chosen}.{number}" for number in range(self.topics)]

    def _publications(self, seed: int) -> Iterator[tuple[float, int, str]]:
        """Return the time, the node, and the topic of each publication."""
        dice, names = random.Random(f"{seed}/topic-popularity"), self._names(seed)
        weights = list(accumulate(1 / rank**self.zipf for rank in range(1, self.topics + 1)))
        due = [(START_MS + self._gap_ms(dice, is_first=True), number) for number in range(self.nodes)]
        heapify(due)
        for _ in range(self.messages):
            at_ms, number = due[0]
            topic = dice.choices(names, cum_weights=weights)[0]
            yield round(at_ms, 3), number, topic
            heapreplace(due, (at_ms + self._gap_ms(dice), number))

    def _gap_ms(self, dice: random.Random, *, is_first: bool = False) -> float:
        if self.gaps == "exponential":
            return dice.expovariate(1 / self.every_ms)
        if self.gaps == "uniform":
            return dice.uniform(0, 2 * self.every_ms)
        return dice.uniform(0, self.every_ms) if is_first else self.every_ms
