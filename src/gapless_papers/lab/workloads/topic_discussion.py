"""A discussion: everybody answers what others said, so that messages have causes (Figure 6)."""

import random
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from gapless.simulator import Scenario
from gapless.simulator.scenario import PublishAction, Reply
from gapless_papers.lab.measures import Pair
from gapless_papers.lab.workloads.discussion_model import Discussion
from gapless_papers.lab.workloads.topics import START_MS, TopicWorkload

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
    in_order: bool = True
    """Whether messages of one link keep their order; only the model (`is_model`) knows links that do not."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.in_order and not self.is_model:
            raise ValueError("in_order is false, but protocols are run over links that keep order; set is_model = true")

    def cost(self) -> float:
        """In messages."""
        return float(self.nodes**2)

    def scenario(self, protocol: str, options: Mapping[str, Any], seed: int) -> Scenario:
        """Who opens, and how long each other waits, is drawn by the seed."""
        topic = f"t{seed}"
        opening, pauses = self._drawn(seed)
        actions = [PublishAction(at_ms, f"c{number}", {"topic": topic}) for number, at_ms in opening.items()]
        replies = [
            Reply(f"c{number}", {"topic": topic}, at_most=1, after=self.wait - 1, delay_ms=delay_ms)
            for number, delay_ms in pauses.items()
        ]
        wanted = {topic: range(self.nodes)}
        options = {**options, "barrier": self.barrier}
        return self.assemble("topic-discussion", protocol, options, seed, wanted, actions=actions, replies=replies)

    def worked_out(self, protocol: str, seed: int) -> Mapping[str, Iterable[Pair]] | None:
        """The barriers alone, if they suffice."""
        if not self.is_model:
            return None
        self.check_model()
        model = Discussion(
            self.nodes, self.wait, round(1000 * (self.propagation_ms + self.processing_ms)),
            round(1000 * self.jitter_ms), round(1000 * self.transmission_ms), self.first == "largest", self.in_order,
            self.barrier == "direct",
        )  # fmt: skip
        opening, pauses = self._drawn(seed)
        return model.run(
            {number: round(1000 * at_ms) for number, at_ms in opening.items()},
            {number: round(1000 * delay_ms) for number, delay_ms in pauses.items()},
            seed,
        )

    def _drawn(self, seed: int) -> tuple[dict[int, float], dict[int, float]]:
        """When each of those speaks who open the discussion, and how long each other waits."""
        dice = random.Random(f"{seed}/topic-discussion")
        order = dice.sample(range(self.nodes), self.nodes)
        opening = {number: round(START_MS + dice.uniform(0, self.within_ms), 3) for number in order[: self.wait]}
        return opening, {number: round(self._pause_ms(dice), 3) for number in order[self.wait :]}

    def _pause_ms(self, dice: random.Random) -> float:
        if self.pause == "exponential":
            return dice.expovariate(1 / self.pause_ms)
        return dice.uniform(0, self.pause_ms)
