"""Newcomers subscribe at the leaves of a binary tree (paper 001, section VII).

The tree is full, every hop takes the same time, and clients are next to their brokers. First, publishers advertise.
Later, some subscriptions are made and become stable. Later still, the newcomers subscribe, each at a leaf drawn by the
seed and to its own topic. Only the newcomers are measured. Messages on one link keep their order, so with `jitter`
newcomers that subscribe at once delay each other, most of all if every broker receives every subscription (`delta`).
With `gap_ms` each newcomer subscribes that much later than the one before, so that none delays another.

- With `distance` each newcomer has its own publisher, that many hops away, at a broker drawn from all such brokers.
- Without it there is one publisher for all, at the root.
- With `every_ms` the publishers publish an event for each newcomer at that interval, from long before it subscribes
  until it must have received one: this is needed to measure the time until the first event.
- With `jitter` the latency of a hop is drawn for each message from 0 to twice `hop_ms`; else it is `hop_ms`.
- With the probability `covered` another client already has a subscription that covers the newcomer's. It is `pivot`
  hops up and down again: the two paths to the root meet `pivot` hops above the newcomer.
"""

import random
from collections.abc import Iterator, Mapping
from math import ceil
from typing import Any

from gapless.errors import ExperimentError
from gapless.overlay import Overlay, binary
from gapless.simulator import Scenario
from gapless.simulator.scenario import (
    Action,
    AdvertiseAction,
    Client,
    LatencySpec,
    Network,
    ProtocolChoice,
    PublishAction,
    Run,
    SubscribeAction,
)
from gapless_papers.lab.workloads.workload import ScenarioWorkload

__all__ = ["TreeSubscriptions"]

APART_MS = 20_000.0
"""The time between two stages, enough for the first to become stable in the deepest tree with the slowest protocol."""


class TreeSubscriptions(ScenarioWorkload, frozen=True):
    """All times are milliseconds, all distances hops."""

    depth: int
    """The depth of the tree; its diameter is twice that."""
    f: int = 1
    distance: int | None = None
    covered: float = 0.0
    pivot: int = 1
    newcomers: int = 20
    hop_ms: float = 50.0
    jitter: bool = False
    gap_ms: float = 0.0
    every_ms: float | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.depth <= 16:
            raise ValueError(f"depth is {self.depth}, but must be from 1 to 16")
        if self.distance is not None and not 0 <= self.distance <= 2 * self.depth:
            raise ValueError(f"no two brokers of a tree of depth {self.depth} are {self.distance} hops apart")
        if not 0 <= self.covered <= 1:
            raise ValueError(f"covered is {self.covered:g}, which is not a probability; choose a number from 0 to 1")
        if not 0 <= self.pivot <= self.depth:
            raise ValueError(f"pivot is {self.pivot}, but a leaf is {self.depth} hops below the root")
        if self.gap_ms < 0:
            raise ValueError(f"gap_ms is {self.gap_ms:g}, but must be 0 or more")
        if self.every_ms is not None and self.every_ms <= 0:
            raise ValueError(f"every_ms is {self.every_ms:g}, but must be more than 0")

    def cost(self) -> float:
        """Return the expected number of messages."""
        return float(2**self.depth * self.newcomers)

    def counts(self, subscription: str) -> bool:
        """Return whether the subscription is a newcomer's."""
        return subscription.startswith("new")

    def scenario(self, protocol: str, options: Mapping[str, Any], seed: int) -> Scenario:
        """Return the tree, the publishers, the earlier subscribers, and the newcomers."""
        overlay = binary(self.depth)
        dice = random.Random(f"{seed}/tree-subscriptions")
        clients: dict[str, Client] = {}
        actions: list[Action] = []
        if self.distance is None:
            clients["root"] = Client("root", "b0")
            actions.append(AdvertiseAction(0.0, "root", "all", "topic >= 0"))
        for number in range(self.newcomers):
            leaf = dice.choice(overlay.brokers[2**self.depth - 1 :])
            for client, action in self._newcomer(number, leaf, overlay, dice):
                clients[client.name] = client
                actions.append(action)
        return Scenario(
            name="tree-subscriptions",
            network=Network("binary", depth=self.depth, f=self.f, latency=self._latency()),
            protocol=ProtocolChoice(protocol, dict(options)),
            run=Run(seed=seed, settle_ms=self._settle_ms()),
            clients=tuple(clients.values()),
            actions=tuple(sorted(actions, key=lambda action: action.at_ms)),
        )

    def _newcomer(
        self, number: int, leaf: str, overlay: Overlay, dice: random.Random
    ) -> Iterator[tuple[Client, Action]]:
        """Yield a newcomer, its publisher, and the client with the covering subscription, each with its first call."""
        start_ms = 2 * APART_MS + number * self.gap_ms
        if self.distance is not None:
            publisher = Client(f"publisher{number}", _at_distance(overlay, leaf, self.distance, dice))
            yield publisher, AdvertiseAction(0.0, publisher.name, f"all{number}", f"topic = {number}")
        if self.every_ms is not None:
            source = Client("root", "b0") if self.distance is None else publisher
            length_ms = 4 * self.hop_ms * (2 * self.depth + 1)
            yield (
                source,
                PublishAction(
                    start_ms - length_ms / 2,
                    source.name,
                    {"topic": number, "size": 8},
                    ceil(1.5 * length_ms / self.every_ms),
                    self.every_ms,
                ),
            )
        if dice.random() < self.covered:
            old = Client(f"old{number}", _cousin(leaf, self.pivot))
            yield old, SubscribeAction(APART_MS, old.name, f"old{number}", f"topic = {number}")
        new = Client(f"new{number}", leaf)
        wanted = f"topic = {number} AND size > 7"
        yield new, SubscribeAction(start_ms, new.name, f"new{number}", wanted, ready="first")

    def _settle_ms(self) -> float:
        """Return a time long enough for the slowest newcomer: with jitter a path takes twice the mean or more."""
        return (16 if self.jitter else 4) * self.hop_ms * (self.depth + 1)

    def _latency(self) -> LatencySpec:
        if self.jitter:
            return LatencySpec("jitter", min_ms=0.0, max_ms=2 * self.hop_ms)
        return LatencySpec(ms=self.hop_ms)


def _at_distance(overlay: Overlay, broker: str, distance: int, dice: random.Random) -> str:
    found = [other for other in overlay.brokers if overlay.distance(broker, other) == distance]
    if not found:
        raise ExperimentError(f"no broker is {distance} hops away from {broker}; choose a smaller distance")
    return dice.choice(found)


def _cousin(leaf: str, up: int) -> str:
    """Return a leaf whose path to the root joins that of the given leaf `up` hops above both."""
    first = len_of_levels_above(leaf)
    place = int(leaf[1:]) - first
    return leaf if up == 0 else f"b{first + (place ^ 1 << (up - 1))}"


def len_of_levels_above(leaf: str) -> int:
    """Return the number of brokers above this leaf's level, which is also the number of the level's first broker."""
    return (1 << (int(leaf[1:]) + 1).bit_length() - 1) - 1
