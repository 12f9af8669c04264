"""Many publishers at once: contention, and the distribution of load (Figure 5 and Table I)."""

import random
from collections.abc import Iterable, Mapping
from typing import Any

from gapless.simulator import Scenario
from gapless.simulator.scenario import PublishAction
from gapless_papers.lab.measures import Pair
from gapless_papers.lab.workloads.topics import START_MS, TopicWorkload

__all__ = ["TopicPublishers"]


class TopicPublishers(TopicWorkload, frozen=True):
    """All nodes subscribe; some publish one message each, at a time drawn from the first 1000 units."""

    publishers: float = 1.0
    """The share of the nodes that publish; at least one node."""
    within_ms: float = 1000.0
    whole_times: bool = False
    """Whether publication times are whole units, so that more nodes publish at once."""

    def cost(self) -> float:
        """Return the expected number of messages."""
        return self.nodes * max(1.0, self.nodes * self.publishers)

    def scenario(self, protocol: str, options: Mapping[str, Any], seed: int) -> Scenario:
        """Return the scenario. The topic's name determines its root, so it differs from run to run."""
        topic = f"t{seed}"
        actions = [PublishAction(at_ms, f"c{number}", {"topic": topic}) for at_ms, number in self._publications(seed)]
        wanted = {topic: range(self.nodes)}
        return self.assemble("topic-publishers", protocol, options, seed, wanted, actions=actions)

    def computed(self, protocol: str, seed: int) -> Mapping[str, Iterable[Pair]] | None:
        """Return the measures from the model of queues, if that suffices."""
        if not self.is_model:
            return None
        topic = f"t{seed}"
        return self.compute(
            protocol, [topic], [(at_ms, number, topic) for at_ms, number in sorted(self._publications(seed))]
        )

    def _publications(self, seed: int) -> list[tuple[float, int]]:
        """Return the time and the node of each publication."""
        dice = random.Random(f"{seed}/topic-publishers")
        digits = 0 if self.whole_times else 3
        return [
            (round(START_MS + dice.uniform(0, self.within_ms), digits), number)
            for number in dice.sample(range(self.nodes), max(1, round(self.nodes * self.publishers)))
        ]
