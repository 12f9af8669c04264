"""Computes the effect of failures on a tree whose brokers can bypass δ failed ones in a row (paper 003, Figures 8, 10,
11).

The tree is filled level by level, so that each inner broker has `fanout` children. Some brokers, chosen again for each
draw, fail at once. Messages keep to their path through the tree and skip failed brokers on it: two living brokers are
connected if at most δ failed ones in a row are between them. If legitimacy is strict, they are connected only if at
most δ of any 2δ + 1 brokers in a row between them have failed, because the protocol needs that to detect duplicates.
Two living brokers have an active session if all brokers between them, δ at most, have failed.

| measure | subject | value |
| --- | --- | --- |
| `pairs-cut` | draw | percentage of the pairs of living brokers that are not connected |
| `reached` | draw | percentage of the living brokers that a living broker reaches, itself included, on average |
| `neighbourhood` | broker | how many others are at most δ + 1 away |
| `sessions` | draw and broker | how many active sessions a living broker has |
"""

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import ClassVar, Literal

from gapless.overlay import Overlay
from gapless_papers.lab.measures import Pair
from gapless_papers.lab.workloads.workload import DirectWorkload

__all__ = ["TreeFailures", "connected_pairs", "filled_tree", "legitimate_pairs", "live_sessions"]


def filled_tree(brokers: int, fanout: int) -> Overlay:
    """Return a tree filled level by level: the parent of broker n is broker (n - 1) // fanout."""
    edges = [(f"b{(number - 1) // fanout}", f"b{number}") for number in range(1, brokers)]
    return Overlay([f"b{number}" for number in range(brokers)], edges)


class TreeFailures(DirectWorkload, frozen=True):
    """The shape of the tree alone: nothing is sent."""

    brokers: int = 1000
    fanout: int = 3
    delta: int = 1
    failed: int = 0
    legitimacy: Literal["relaxed", "strict"] = "relaxed"
    draws: int = 1
    """The number of draws of failures in one run."""

    own_measures: ClassVar[tuple[str, ...]] = ("pairs-cut", "reached", "neighbourhood", "sessions")

    def __post_init__(self) -> None:
        if self.fanout < 1 or self.delta < 0 or self.draws < 1:
            raise ValueError("fanout and draws must be at least 1, and delta 0")
        if not 0 <= self.failed < self.brokers:
            raise ValueError(f"failed is {self.failed}, but there are {self.brokers} brokers, and one must live")

    def cost(self) -> float:
        """Return the number of brokers to visit."""
        return float(self.brokers * self.draws)

    def results(self, seed: int) -> Mapping[str, Iterable[Pair]]:
        """Return the measures over all draws; `neighbourhood` and `sessions` are only computed on request."""
        parents = [(number - 1) // self.fanout for number in range(self.brokers)]
        dice = random.Random(f"{seed}/tree-failures")
        draws = [frozenset(dice.sample(range(self.brokers), self.failed)) for _ in range(self.draws)]
        count = legitimate_pairs if self.legitimacy == "strict" else connected_pairs
        alive = self.brokers - self.failed
        pairs = alive * (alive - 1)
        connected = [count(parents, failed, self.delta) for failed in draws]
        return {
            "pairs-cut": [(str(draw), 100 * (1 - n / pairs) if pairs else 0.0) for draw, n in enumerate(connected)],
            "reached": [(str(draw), 100 * (n + alive) / alive**2) for draw, n in enumerate(connected)],
            "neighbourhood": self._neighbourhoods(),
            "sessions": self._sessions(draws),
        }

    def _neighbourhoods(self) -> Iterator[Pair]:
        tree = filled_tree(self.brokers, self.fanout)
        for name in tree.brokers:
            yield name, len(tree.within(name, self.delta + 1))

    def _sessions(self, draws: Sequence[frozenset[int]]) -> Iterator[Pair]:
        tree = filled_tree(self.brokers, self.fanout)
        for draw, failed in enumerate(draws):
            names = frozenset(tree.brokers[number] for number in failed)
            for name, peers in live_sessions(tree, names, self.delta).items():
                yield f"{draw}/{name}", len(peers)


def connected_pairs(parents: Sequence[int], failed: frozenset[int], delta: int) -> int:
    """Return the number of ordered pairs of living brokers with at most `delta` failed ones in a row between them.

    The parent of broker n is `parents[n]`, which has a smaller number; the root's entry is ignored. `down[n][r]` is the
    number of living brokers in the subtree of n that a path from above reaches after r failed brokers in a row;
    `up[n][r]` is the same for a path upwards from n, in the rest of the tree.
    """
    brokers, runs = len(parents), range(delta + 1)
    below = [[0] * (delta + 2) for _ in range(brokers)]
    down = [[0] * (delta + 2) for _ in range(brokers)]
    up = [[0] * (delta + 2) for _ in range(brokers)]
    for node in reversed(range(brokers)):
        for run in runs:
            down[node][run] = below[node][run + 1] if node in failed else 1 + below[node][0]
            if node:
                below[parents[node]][run] += down[node][run]
    total = 0
    for node in range(brokers):
        if node:
            parent = parents[node]
            for run in runs:
                after = run + 1 if parent in failed else 0
                others = up[parent][after] + below[parent][after] - down[node][after]
                up[node][run] = others if parent in failed else 1 + others
            if parent in failed:
                up[node][delta] = 0
        if node not in failed:
            total += up[node][0] + below[node][0]
    return total


def legitimate_pairs(parents: Sequence[int], failed: frozenset[int], delta: int) -> int:
    """Return the number of ordered pairs of living brokers such that at most `delta` of any 2 · `delta` + 1 brokers in
    a row between them have failed. Searches outwards from each living broker, with the end of the path as bits.
    """
    brokers, mask = len(parents), (1 << 2 * delta + 1) - 1
    around: list[list[int]] = [[] for _ in range(brokers)]
    for node in range(1, brokers):
        around[node].append(parents[node])
        around[parents[node]].append(node)
    total = 0
    for start in range(brokers):
        if start in failed:
            continue
        ways = [(start, start, 0)]
        while ways:
            node, back, window = ways.pop()
            for other in around[node]:
                if other == back:
                    continue
                seen = (window << 1 | (other in failed)) & mask
                if seen.bit_count() <= delta:
                    total += other not in failed
                    ways.append((other, node, seen))
    return total


def live_sessions(tree: Overlay, failed: frozenset[str], delta: int) -> dict[str, list[str]]:
    """Return the session partners of each living broker."""
    return {name: list(_next_living(tree, name, failed, delta)) for name in tree.brokers if name not in failed}


def _next_living(tree: Overlay, start: str, failed: frozenset[str], delta: int) -> Iterator[str]:
    ring = [(start, "")]
    for _ in range(delta + 1):
        further = []
        for name, back in ring:
            for other in tree.neighbours(name):
                if other == back:
                    continue
                if other in failed:
                    further.append((other, name))
                else:
                    yield other
        ring = further
