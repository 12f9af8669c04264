"""The causal multicast in isolation: brokers exchange messages over links with random delays."""

import random
from collections import deque
from typing import Any

import msgspec
import pytest

from gapless.overlay import Overlay, grid, random_regular, random_tree, ring, with_bypasses
from gapless_papers.protocols.locamu.multicast import CausalMulticast, Due
from gapless_papers.protocols.locamu.regions import regions_of


class Packet(msgspec.Struct, frozen=True):
    stream: str
    number: int
    origin: str
    ends: tuple[str, ...]
    due: Due
    settled: dict[str, int]
    content: Any


class World:
    """All brokers, and FIFO links from which the next message to arrive is drawn at random."""

    def __init__(self, overlay: Overlay, f: int, seed: int) -> None:
        self.dice = random.Random(seed)
        self.overlay = overlay
        self.links: dict[tuple[str, str], deque[Any]] = {}
        self.got: dict[str, list[tuple[str, int]]] = {name: [] for name in overlay.brokers}
        self.past: dict[tuple[str, int], set[tuple[str, int]]] = {}
        self.ends: dict[tuple[str, int], tuple[str, ...]] = {}
        self.regions = regions_of(overlay, f)
        self.dead: set[str] = set()
        self.nodes = {name: self._node(name) for name in overlay.brokers}

    def _node(self, name: str) -> CausalMulticast:
        def send(peer: str, packet: Packet, extra: tuple[str, ...]) -> None:
            self.links.setdefault((name, peer), deque()).append((packet, extra))

        def deliver(packet: Packet) -> None:
            self.got[name].append((packet.stream, packet.number))

        return CausalMulticast(name, self.regions, Packet, send, deliver, lambda packet: (), lambda stream, n: None)

    def say(self, name: str, ends: list[str]) -> None:
        key = (name, self.nodes[name].say(ends, None))
        self.past[key] = set(self.got[name]).union(*(self.past[cause] for cause in self.got[name]))
        self.ends[key] = tuple(end for end in ends if end != name)
        self.got[name].append(key)

    def arrive(self) -> bool:
        busy = [link for link, queue in self.links.items() if queue]
        if not busy:
            return False
        sender, receiver = self.dice.choice(busy)
        packet, extra = self.links[sender, receiver].popleft()
        if receiver not in self.dead:
            self.nodes[receiver].receive(sender, packet, extra)
        return True

    def thank(self) -> None:
        for name, node in self.nodes.items():
            for origin, done in node.thanks().items():
                if not {name, origin} & self.dead:
                    self.nodes[origin].receive_done(name, done, dict(node.due))

    def crash(self, name: str) -> None:
        """Stop a broker and drop part of the messages that it was sending; all others are notified."""
        self.dead.add(name)
        for (sender, _), queue in self.links.items():
            if sender == name:
                for _ in range(self.dice.randint(0, len(queue))):
                    queue.pop()
        for other, node in self.nodes.items():
            if other not in self.dead:
                node.exclude(name)

    def judge(self) -> None:
        for name, order in self.got.items():
            place = {key: number for number, key in enumerate(order)}
            assert len(place) == len(order), "something was processed twice"
            for key in order:
                for cause in self.past[key]:
                    if cause in place:
                        assert place[cause] < place[key], (name, cause, key)


GRAPHS = {
    "ring": (ring(6), 1),
    "grid": (grid(3, 3), 1),
    "cubic": (random_regular(8, 3, 2), 2),
    "bypass": (with_bypasses(random_tree(9, 4, 3), 2), 2),
}


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("seed", range(5))
def test_causes_arrive_before_effects_and_every_event_arrives(graph: str, seed: int) -> None:
    world = World(*GRAPHS[graph], seed)
    for _ in range(150):
        name = world.dice.choice(world.overlay.brokers)
        world.say(name, world.dice.sample(world.overlay.brokers, world.dice.randint(1, 3)))
        for _ in range(world.dice.randint(0, 20)):
            world.arrive()
        if world.dice.random() < 0.2:
            world.thank()
    while world.arrive():
        pass
    world.judge()
    for key, ends in world.ends.items():
        assert all(key in world.got[end] for end in ends)
    world.thank()
    assert all(node.unsettled == 0 and node.waiting == 0 for node in world.nodes.values())


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("seed", range(5))
def test_messages_of_live_brokers_arrive_whichever_brokers_fail(graph: str, seed: int) -> None:
    overlay, f = GRAPHS[graph]
    world = World(overlay, f, seed)
    doomed = world.dice.sample(overlay.brokers, f)
    for turn in range(120):
        alive = [name for name in overlay.brokers if name not in world.dead]
        world.say(world.dice.choice(alive), world.dice.sample(overlay.brokers, 2))
        for _ in range(world.dice.randint(0, 20)):
            world.arrive()
        if turn % 40 == 20 and doomed:
            world.crash(doomed.pop())
    while world.arrive():
        pass
    for key, ends in world.ends.items():
        if key[0] not in world.dead:
            assert all(key in world.got[end] for end in ends if end not in world.dead), key
    assert all(world.nodes[name].waiting == 0 for name in overlay.brokers if name not in world.dead)
