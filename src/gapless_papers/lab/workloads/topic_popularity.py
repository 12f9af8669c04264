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
    """All nodes subscribe to all topics and publish at random times, until so many messages are published in all."""

    messages: int = 128
    topics: int = 128
    zipf: float = 0.0
    """The n-th topic is chosen with a probability in proportion to 1 / n^zipf; 0 is uniform."""
    every_ms: float = 500.0
    """Between two messages of a node, on average."""
    gaps: Literal["exponential", "uniform", "fixed"] = "exponential"
    """How that time is drawn: uniformly from 0 to twice the average, or always the same after the first, or so."""
    map: int | None = None
    """Which map of topics to roots all runs have: that which the run with this seed draws; else each has its own."""

    def cost(self) -> float:
        """In messages."""
        return float(self.nodes * self.messages)

    def scenario(self, protocol: str, options: Mapping[str, Any], seed: int) -> Scenario:
        """The topics' names decide on their roots, so they differ from run to run, unless `map` says which."""
        names = self._names(seed)
        wanted = {name: range(self.nodes) for name in names}
        actions = [
            PublishAction(at_ms, f"c{number}", {"topic": topic}) for at_ms, number, topic in self._publications(seed)
        ]
        return self.assemble("topic-popularity", protocol, options, seed, wanted, actions=actions)

    def worked_out(self, protocol: str, seed: int) -> Mapping[str, Iterable[Pair]] | None:
        """The queues alone, if they suffice."""
        return self.work_out(protocol, self._names(seed), list(self._publications(seed))) if self.is_model else None

    def _names(self, seed: int) -> list[str]:
        chosen = seed if self.map is None else self.map
        return [f"t{chosen}.{number}" for number in range(self.topics)]

    def _publications(self, seed: int) -> Iterator[tuple[float, int, str]]:
        """When, by whom, and on which topic."""
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
