"""Links that lose messages, and gossip that brings them back (paper 004, section 5).

Brokers form a random tree of degree 4 at most. Each pattern is one attribute, each event has a few of them, drawn by
the seed. Subscribers are dealt out over the brokers and patterns in turn, so that each pattern has as many as any
other. Publishers publish steadily. What counts are events of the middle of the run: before it every subscriber has the
time to hear of every source once, without which pull cannot notice a loss; after it there is time to recover.
"""

import random
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from gapless.simulator import Scenario
from gapless.simulator.scenario import (
    Action,
    Client,
    LatencySpec,
    Network,
    ProtocolChoice,
    PublishAction,
    Run,
    SubscribeAction,
)
from gapless_spark.lab.measures import Measure, Observed, Pair
from gapless_spark.lab.workloads.workload import ScenarioWorkload

__all__ = ["LossyLinks"]

START_MS = 2_000.0
"""By then all subscriptions are known everywhere, though their messages get lost, too."""
LINK_MS = 5.0
GOSSIP = ("PushDigest", "SubscriberPull", "PublisherPull", "Request", "Retransmission")
"""The messages of `epidemic` that are the price of recovery."""


class LossyLinks(ScenarioWorkload, frozen=True):
    """All times are milliseconds."""

    brokers: int = 50
    loss: float = 0.2
    publishers: int = 4
    rate: float = 40.0
    """Events per second of each publisher."""
    patterns: int = 10
    patterns_per_event: int = 1
    subscribers: int = 50
    interest: float = 0.0
    """The share of all patterns that each subscriber wants; at least one pattern."""
    warm_ms: float = 5_000.0
    measured_ms: float = 3_000.0
    drain_ms: float = 3_000.0

    own_measures: ClassVar[tuple[str, ...]] = ("delivered", "overhead")

    def __post_init__(self) -> None:
        if not 0 <= self.loss < 1:
            raise ValueError(f"loss is {self.loss:g}, but must be at least 0 and less than 1")
        if not 0 <= self.interest <= 1:
            raise ValueError(f"interest is {self.interest:g}, but must be from 0 to 1")
        if not 1 <= self.patterns_per_event <= self.patterns:
            raise ValueError(f"an event cannot have {self.patterns_per_event} of {self.patterns} patterns")

    def cost(self) -> float:
        """In messages."""
        return self.brokers * self.publishers * self.rate * (1 + self.patterns_per_event)

    def measures(self) -> Mapping[str, Measure]:
        """What came of what was due, and what recovery costs."""
        return {"delivered": self._delivered, "overhead": _overhead}

    def scenario(self, protocol: str, options: Mapping[str, Any], seed: int) -> Scenario:
        """Where everybody sits, and what is published, is drawn by the seed."""
        dice = random.Random(f"{seed}/lossy-links")
        names = [f"b{number}" for number in range(self.brokers)]
        places = [*dice.sample(names, self.brokers), *(dice.choice(names) for _ in range(self.subscribers))]
        subscribers = [Client(f"c{number}", places[number]) for number in range(self.subscribers)]
        publishers = [Client(f"p{number}", dice.choice(names)) for number in range(self.publishers)]
        actions = [*self._subscriptions(), *self._publications(dice)]
        return Scenario(
            name="lossy-links",
            network=Network(
                "random", brokers=self.brokers, tree_seed=seed, max_degree=4, loss=self.loss,
                latency=LatencySpec(ms=LINK_MS),
            ),
            protocol=ProtocolChoice(protocol, dict(options)),
            run=Run(seed=seed, settle_ms=500.0, max_steps=1_000_000_000),
            clients=(*subscribers, *publishers),
            actions=tuple(sorted(actions, key=lambda action: action.at_ms)),
        )  # fmt: skip

    def _subscriptions(self) -> Iterator[Action]:
        each = max(1, round(self.patterns * self.interest))
        for number in range(self.subscribers):
            for turn in range(each):
                pattern = (number * each + turn) % self.patterns
                yield SubscribeAction(0.0, f"c{number}", f"s{number}.{turn}", f"p{pattern} = TRUE")

    def _publications(self, dice: random.Random) -> Iterator[Action]:
        end_ms = START_MS + self.warm_ms + self.measured_ms + self.drain_ms
        for number in range(self.publishers):
            at_ms = START_MS + dice.uniform(0, 1000 / self.rate)
            while at_ms < end_ms:
                drawn = dice.sample(range(self.patterns), self.patterns_per_event)
                yield PublishAction(round(at_ms, 3), f"p{number}", {f"p{pattern}": True for pattern in drawn})
                at_ms += 1000 / self.rate

    def _delivered(self, run: Observed) -> Iterator[Pair]:
        """Of the pairs of an event of the middle and a subscription that it matches, how many were delivered."""
        wanted: dict[str, int] = {}
        for action in run.scenario.actions:
            if isinstance(action, SubscribeAction):
                pattern = action.filter.split()[0]
                wanted[pattern] = wanted.get(pattern, 0) + 1
        numbers: dict[str, int] = {}
        due = came = 0
        since_us, until_us = ((START_MS + self.warm_ms) * 1000, (START_MS + self.warm_ms + self.measured_ms) * 1000)
        for action in run.scenario.actions:
            if isinstance(action, PublishAction):
                seq = numbers[action.client] = numbers.get(action.client, 0) + 1
                if since_us <= run.observer.published_us[action.client, seq] < until_us:
                    due += sum(wanted.get(pattern, 0) for pattern in action.attributes)
                    came += run.observer.deliveries.get((action.client, seq), 0)
        yield "percent", 100 * came / due


def _overhead(run: Observed) -> Iterator[Pair]:
    """Messages between brokers that recovery costs, for each event published."""
    counts = run.result.message_counts
    yield "messages", sum(counts.get(kind, 0) for kind in GOSSIP) / max(1, len(run.observer.published_us))
