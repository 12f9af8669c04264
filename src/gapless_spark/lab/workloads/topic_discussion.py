"""A discussion: everybody answers what others said, so that messages have causes (Figure 6)."""

import random
from collections.abc import Mapping
from typing import Any, Literal

from gapless.simulator import Scenario
from gapless.simulator.scenario import PublishAction, Reply
from gapless_spark.lab.workloads.topics import START_MS, TopicWorkload

__all__ = ["TopicDiscussion"]


class TopicDiscussion(TopicWorkload, frozen=True):
    """All nodes subscribe. Some open the discussion; each other speaks once, a random time after it has heard them."""

    wait: int = 1
    """How many open the discussion, and how many messages the others wait for."""
    pause_ms: float = 100.0
    """Each then waits: up to this, or for this on average. The paper does not say what it draws."""
    pause: Literal["uniform", "exponential"] = "uniform"
    within_ms: float = 0.0
    """Over how long the opening is spread."""
    barrier: Literal["direct", "all"] = "direct"
    """What counts as a cause: see the option of `vcube`."""

    def cost(self) -> float:
        """In messages."""
        return float(self.nodes**2)

    def scenario(self, protocol: str, options: Mapping[str, Any], seed: int) -> Scenario:
        """Who opens, and how long each other waits, is drawn by the seed."""
        dice = random.Random(f"{seed}/topic-discussion")
        topic = f"t{seed}"
        order = dice.sample(range(self.nodes), self.nodes)
        opening = [
            PublishAction(round(START_MS + dice.uniform(0, self.within_ms), 3), f"c{number}", {"topic": topic})
            for number in order[: self.wait]
        ]
        replies = [
            Reply(
                f"c{number}", {"topic": topic}, at_most=1, after=self.wait - 1,
                delay_ms=round(self._pause_ms(dice), 3),
            )
            for number in order[self.wait :]
        ]  # fmt: skip
        wanted = {topic: range(self.nodes)}
        options = {**options, "barrier": self.barrier}
        return self.assemble("topic-discussion", protocol, options, seed, wanted, actions=opening, replies=replies)

    def _pause_ms(self, dice: random.Random) -> float:
        if self.pause == "exponential":
            return dice.expovariate(1 / self.pause_ms)
        return dice.uniform(0, self.pause_ms)
