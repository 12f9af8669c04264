"""Plans cuts of the network, from a random generator of its own on top of the other faults.

A cut is a set of pairs of brokers that lose their connections at about the same time, in one direction or in both:

- along the tree: the brokers behind one link, or behind several, are separated from the rest;
- across the tree: any set of brokers is separated from the others, or there are three parts;
- an island: more than f adjacent brokers, mostly in the middle of the tree;
- irregular: any pairs, many or few;
- all connections of one broker, or a single one.

It lasts for a moment that is not noticed, or for seconds; it is healed at once, or pair by pair in any order. The next
one may begin before. Clients are cut off from the brokers of the other side, or not. No budget applies.
"""

import random

from gapless.overlay import Overlay
from gapless.simulator.fault_plan import Hazards
from gapless.simulator.scenario import Cut, Fault, Heal

__all__ = ["PARTITION", "PartitionPlan"]

PARTITION = "partition"
LONGEST_MS = 3_000.0
"""The maximum duration of a cut, much longer than any timeout of brokers."""
Pairs = list[tuple[str, str]]


class PartitionPlan:
    """Draws the cuts of one scenario."""

    def __init__(self, seed: int, overlay: Overlay, hazards: Hazards) -> None:
        self._rng = random.Random(f"{seed}/partition")
        self._overlay = overlay
        self._hazards = hazards
        self._spans: dict[frozenset[str], list[tuple[float, float]]] = {}

    def draw(self, faults: tuple[Fault, ...]) -> tuple[Fault, ...]:
        """Return the faults with one to three cuts of the network added."""
        drawn: list[Fault] = []
        self._take_over(faults)
        for _ in range(self._rng.choice([1, 1, 1, 2, 3])):
            drawn += self._draw_cut()
        return tuple(sorted([*faults, *drawn], key=lambda fault: fault.at_ms))

    def _take_over(self, faults: tuple[Fault, ...]) -> None:
        """Record the cuts among the faults, because a pair can be cut only once at a time."""
        begun: dict[frozenset[str], float] = {}
        for fault in faults:
            if isinstance(fault, Cut):
                begun[frozenset(fault.between)] = fault.at_ms
            elif isinstance(fault, Heal):
                pair = frozenset(fault.between)
                self._spans.setdefault(pair, []).append((begun[pair], fault.at_ms))

    def _draw_cut(self) -> list[Fault]:
        rng = self._rng
        start = rng.uniform(0, self._hazards.until_ms * rng.choice([0.5, 1]))
        end = start + self._draw_length()
        spread = rng.choice([0.0, 0.0, self._hazards.detection.max_ms])
        healing = rng.choice([0.0, 0.0, 0.0, 100.0, 1_000.0])
        one_way = rng.choice([0.0, 0.0, 0.0, 0.2, 1.0])
        faults: list[Fault] = []
        pairs = self._draw_pairs()
        while not pairs:
            pairs = self._draw_pairs()
        for pair in pairs:
            begin_ms = round(start + rng.uniform(0, spread), 3)
            end_ms = round(max(begin_ms + 0.1, end + rng.uniform(0, healing)), 3)
            if self._is_free(frozenset(pair), begin_ms, end_ms):
                faults += [Cut(begin_ms, pair, rng.random() < one_way), Heal(end_ms, pair)]
        return faults

    def _is_free(self, pair: frozenset[str], begin_ms: float, end_ms: float) -> bool:
        spans = self._spans.setdefault(pair, [])
        if any(begin <= end_ms and begin_ms <= end for begin, end in spans):
            return False
        spans.append((begin_ms, end_ms))
        return True

    def _draw_length(self) -> float:
        rng, detection = self._rng, self._hazards.detection
        most = rng.choice([detection.min_ms, detection.max_ms * 3, LONGEST_MS, LONGEST_MS])
        return rng.uniform(0.2, 1) * most

    # ---- shapes

    def _draw_pairs(self) -> Pairs:
        """Return the pairs to cut. Their order matters only for a one-way cut."""
        rng = self._rng
        shape = rng.choice(["link", "links", "island", "island", "parts", "parts", "three", "pairs", "broker", "pair"])
        brokers = self._overlay.brokers
        if shape == "pairs":
            share = rng.choice([0.1, 0.3, 0.6])
            return [self._turned(a, b) for a, b in self._all_pairs() if rng.random() < share]
        if shape == "pair":
            a = rng.choice(brokers)
            return [self._turned(a, rng.choice(self._overlay.within(a, self._hazards.f + 1)))]
        sides = self._draw_sides(shape)
        turned = rng.random() < 0.5
        pairs = [pair if (sides[pair[0]] < sides[pair[1]]) != turned else pair[::-1] for pair in self._all_pairs()]
        pairs = [(a, b) for a, b in pairs if sides[a] != sides[b]]
        if rng.random() < 0.5:
            pairs += self._client_pairs(sides)
        return pairs

    def _draw_sides(self, shape: str) -> dict[str, int]:
        """Return the side on which each broker is."""
        rng, overlay = self._rng, self._overlay
        if shape == "link":
            return self._behind(rng.choice(overlay.edges))
        if shape == "links":
            first, second = (self._behind(rng.choice(overlay.edges)) for _ in range(2))
            return {name: first[name] + 2 * second[name] for name in overlay.brokers}
        if shape == "broker":
            alone = rng.choice(overlay.brokers)
            return {name: int(name == alone) for name in overlay.brokers}
        if shape == "island":
            return self._draw_island()
        parts = 3 if shape == "three" else 2
        share = rng.choice([0.15, 0.3, 0.5])
        return {name: rng.randrange(1, parts) if rng.random() < share else 0 for name in overlay.brokers}

    def _draw_island(self) -> dict[str, int]:
        """Return sides with more than f adjacent brokers on one of them, without leaves of the tree if possible."""
        rng, overlay = self._rng, self._overlay
        inner = [name for name in overlay.brokers if len(overlay.neighbours(name)) > 1]
        island = [rng.choice(inner)]
        for _ in range(self._hazards.f + rng.choice([0, 0, 1])):
            around = [other for name in island for other in overlay.neighbours(name) if other not in island]
            if around:
                island.append(rng.choice([name for name in around if name in inner] or around))
        return {name: int(name in island) for name in overlay.brokers}

    def _behind(self, link: tuple[str, str]) -> dict[str, int]:
        near, far = link
        overlay = self._overlay
        return {name: int(overlay.distance(name, far) < overlay.distance(name, near)) for name in overlay.brokers}

    def _all_pairs(self) -> Pairs:
        brokers = self._overlay.brokers
        return [(a, b) for place, a in enumerate(brokers) for b in brokers[place + 1 :]]

    def _client_pairs(self, sides: dict[str, int]) -> Pairs:
        """Return the pairs of clients and brokers that are on different sides."""
        return [
            (client, other)
            for client, broker in self._hazards.clients
            if self._rng.random() < 0.5
            for other in self._overlay.within(broker, self._hazards.f + 1)
            if sides[other] != sides[broker]
        ]

    def _turned(self, a: str, b: str) -> tuple[str, str]:
        return (a, b) if self._rng.random() < 0.5 else (b, a)
