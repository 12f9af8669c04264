"""Subscribers leave and others join while one node publishes (Table II)."""

import random
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from gapless.errors import ExperimentError
from gapless.simulator import Scenario
from gapless.simulator.scenario import Action, PublishAction, SubscribeAction, UnsubscribeAction
from gapless_papers.lab.measures import Pair
from gapless_papers.lab.workloads.topics import START_MS, TopicWorkload

__all__ = ["TopicChurn"]


class TopicChurn(TopicWorkload, frozen=True):
    """Three quarters of the nodes subscribe, and one of them publishes one message after the other. When it begins,
    some of the others leave, and as many of the rest join.
    """

    churn: float = 0.125
    """The share of the subscribers that leave."""
    drawn: Literal["once", "with replacement"] = "once"
    """Whether no node is drawn twice. With replacement the number of draws is the same, so fewer nodes leave and join.
    Joining nodes are drawn from all that are not subscribed at that time, including those that have just left.
    """
    messages: int = 256
    subscribers: float = 0.75
    algorithm: Literal["repaired", "as printed"] = "repaired"
    """Whether to run the repairs of `vcube`, or the paper's algorithms as printed."""

    def cost(self) -> float:
        """Return the expected number of messages."""
        return float(self.nodes * (self.messages + self.nodes * self.churn))

    def scenario(self, protocol: str, options: Mapping[str, Any], seed: int) -> Scenario:
        """Return the scenario; the seed assigns the roles."""
        topic = f"t{seed}"
        members, leaving, joining = self._movers(seed)
        publication = PublishAction(START_MS, f"c{members[0]}", {"topic": topic}, count=self.messages)
        actions: list[Action] = [publication]
        for leaver in leaving:
            actions.append(UnsubscribeAction(START_MS, f"c{leaver}", f"{topic}.{leaver}"))
        for newcomer in joining:
            actions.append(SubscribeAction(START_MS, f"c{newcomer}", f"{topic}.{newcomer}.new", f"topic = '{topic}'"))
        if self.algorithm == "as printed":
            options = {**options, "switched_off": ["receivers", "starting-cut"]}
        return self.assemble("topic-churn", protocol, options, seed, {topic: sorted(members)}, actions=actions)

    def computed(self, protocol: str, seed: int) -> Mapping[str, Iterable[Pair]] | None:
        """Return the deliveries by closed form.

        A member that stays gets everything. A member that leaves gets one message that it no longer wants; if it has to
        leave before it joins, two. A member that joins misses the one message sent while it joins, since the source
        waits for as long as joining takes.
        """
        if not self.is_model:
            return None
        members, leaving, joining = self._movers(seed)
        again = len(set(leaving) & set(joining))
        come = self.messages * (len(members) - len(leaving) + len(joining)) - len(joining) - again
        if self.algorithm != "repaired":
            raise ExperimentError("is_model supports only the repaired algorithm")
        return {
            "deliveries": [("others", come - self.messages), ("own", self.messages)],
            "false-positives": [("count", len(leaving))],
        }

    def _movers(self, seed: int) -> tuple[list[int], list[int], list[int]]:
        """Return the members, the leaving nodes, and the joining nodes; the first member publishes and stays."""
        dice = random.Random(f"{seed}/topic-churn")
        order = dice.sample(range(self.nodes), self.nodes)
        part = round(self.nodes * self.subscribers)
        members, others = order[:part], order[part:]
        count = round(len(members) * self.churn)
        if self.drawn == "once":
            return members, members[1 : count + 1], others[:count]
        leaving = list(dict.fromkeys(dice.choices(members[1:], k=count)))
        return members, leaving, list(dict.fromkeys(dice.choices(others + leaving, k=count)))
