"""One message for a topic: how long until all subscribers have it, and how many messages it takes (Figures 3 and 4)."""

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
    """Their share of the nodes."""

    def cost(self) -> float:
        """In messages."""
        return float(self.nodes)

    def scenario(self, protocol: str, options: Mapping[str, Any], seed: int) -> Scenario:
        """The topic's name decides on its root, so it differs from run to run."""
        dice = random.Random(f"{seed}/topic-broadcast")
        members = sorted(dice.sample(range(self.nodes), max(1, round(self.nodes * self.subscribers))))
        topic = f"t{seed}"
        publication = PublishAction(START_MS, f"c{dice.choice(members)}", {"topic": topic})
        return self.assemble("topic-broadcast", protocol, options, seed, {topic: members}, actions=[publication])
