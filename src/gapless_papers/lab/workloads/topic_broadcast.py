"""One message on a topic: the time until all subscribers have it, and the number of messages (Figures 3 and 4)."""

import random
from collections.abc import Mapping
from typing import Any

from gapless.simulator import Scenario
from gapless.simulator.scenario import PublishAction
from gapless_papers.lab.workloads.topics import START_MS, TopicWorkload

__all__ = ["TopicBroadcast"]


class TopicBroadcast(TopicWorkload, frozen=True):
    """Some nodes, drawn by the seed, subscribe; one of them publishes once."""

    subscribers: float = 1.0
    """The share of the nodes that subscribe."""

    def cost(self) -> float:
        """Return the expected number of messages."""
        return float(self.nodes)

    def scenario(self, protocol: str, options: Mapping[str, Any], seed: int) -> Scenario:
        """Return the scenario. The topic's name determines its root, so it differs from run to run."""
        dice = random.Random(f"{seed}/topic-broadcast")
        members = sorted(dice.sample(range(self.nodes), max(1, round(self.nodes * self.subscribers))))
        topic = f"t{seed}"
        publication = PublishAction(START_MS, f"c{dice.choice(members)}", {"topic": topic})
        return self.assemble("topic-broadcast", protocol, options, seed, {topic: members}, actions=[publication])
