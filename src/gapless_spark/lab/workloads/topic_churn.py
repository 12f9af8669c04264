"""Subscribers leave and others join while somebody publishes (Table II)."""

import random
from collections.abc import Mapping
from typing import Any, Literal

from gapless.simulator import Scenario
from gapless.simulator.scenario import Action, PublishAction, SubscribeAction, UnsubscribeAction
from gapless_spark.lab.workloads.topics import START_MS, TopicWorkload

__all__ = ["TopicChurn"]


class TopicChurn(TopicWorkload, frozen=True):
    """Three quarters of the nodes subscribe. One of them publishes one message after the other; as it begins, some of
    the others leave, and as many of the rest join."""

    churn: float = 0.125
    """How many of the subscribers leave."""
    messages: int = 256
    subscribers: float = 0.75
    algorithm: Literal["repaired", "as printed"] = "repaired"
    """With the repairs of `vcube`, or as the paper's algorithms are printed."""

    def cost(self) -> float:
        """In messages."""
        return float(self.nodes * (self.messages + self.nodes * self.churn))

    def scenario(self, protocol: str, options: Mapping[str, Any], seed: int) -> Scenario:
        """Who is who is drawn by the seed."""
        dice = random.Random(f"{seed}/topic-churn")
        topic = f"t{seed}"
        order = dice.sample(range(self.nodes), self.nodes)
        members = order[: round(self.nodes * self.subscribers)]
        count = round(len(members) * self.churn)
        leaving, joining = members[1 : count + 1], order[len(members) : len(members) + count]
        publication = PublishAction(START_MS, f"c{members[0]}", {"topic": topic}, count=self.messages)
        actions: list[Action] = [publication]
        for leaver, newcomer in zip(leaving, joining, strict=True):
            actions.append(UnsubscribeAction(START_MS, f"c{leaver}", f"{topic}.{leaver}"))
            actions.append(SubscribeAction(START_MS, f"c{newcomer}", f"{topic}.{newcomer}", f"topic = '{topic}'"))
        if self.algorithm == "as printed":
            options = {**options, "switched_off": ["receivers", "starting-cut"]}
        return self.assemble("topic-churn", protocol, options, seed, {topic: sorted(members)}, actions=actions)
