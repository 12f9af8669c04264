"""A discussion: every node answers the messages of others, so that messages have causes (Figure 6)."""

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
    """All nodes subscribe. Some open the discussion; each other node publishes once, a random time after it has
    received them."""

    wait: int = 1
    """The number of nodes that open the discussion, and of messages that the others wait for."""
    pause_ms: float = 100.0
    """The longest, or the mean, additional wait of each. The paper does not give the distribution."""
    pause: Literal["uniform", "exponential"] = "uniform"
    within_ms: float = 0.0
    """The period during which the opening messages are published."""
    barrier: Literal["direct", "all"] = "direct"
    """The messages that count as causes: see the option of `vcube`."""
    in_order: bool = True
    """Whether messages on one link keep their order; only the model (`is_model`) supports links that reorder."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.in_order and not self.is_model:
            raise ValueError("in_order is false, but protocols are run over links that keep order; set is_model = true")

    def cost(self) -> float:
        """Return the expected number of messages."""
        return float(self.nodes**2)

    def scenario(self, protocol: str, options: Mapping[str, Any], seed: int) -> Scenario:
        """Return the scenario; the seed selects the opening nodes and the waits of the others."""
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

    def computed(self, protocol: str, seed: int) -> Mapping[str, Iterable[Pair]] | None:
        """Return the measures from the model of barriers, if that suffices."""
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
        """Return the times of the opening messages, and how long each other node waits."""
        dice = random.Random(f"{seed}/topic-discussion")
        order = dice.sample(range(self.nodes), self.nodes)
        opening = {number: round(START_MS + dice.uniform(0, self.within_ms), 3) for number in order[: self.wait]}
        return opening, {number: round(self._pause_ms(dice), 3) for number in order[self.wait :]}

    def _pause_ms(self, dice: random.Random) -> float:
        if self.pause == "exponential":
            return dice.expovariate(1 / self.pause_ms)
        return dice.uniform(0, self.pause_ms)
