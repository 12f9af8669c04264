"""The paper's figures at a small scale: with many failures, exactly what the tree still connects is delivered."""

import random

import pytest

from gapless.overlay import Overlay
from gapless.protocol import Deliver, Publish, Subscribe
from gapless.simulator import Settings, Simulation

BROKERS, FANOUT, DEAD, PUBLICATIONS = 90, 3, 22, 25
SECOND = 1_000_000


def connected(tree: Overlay, dead: set[str], delta: int, one: str, other: str) -> bool:
    """Return whether the path between two brokers has at most δ failed brokers in a row."""
    row = 0
    for name in tree.path(one, other):
        row = row + 1 if name in dead else 0
        if row > delta:
            return False
    return True


def broadcast(delta: int) -> tuple[int, int, Simulation]:
    """Let all clients subscribe to everything, a quarter of the brokers fail, and living ones publish; return the
    deliveries, the number due, and the simulation.
    """
    tree = Overlay(
        [f"b{number}" for number in range(BROKERS)],
        [(f"b{(number - 1) // FANOUT}", f"b{number}") for number in range(1, BROKERS)],
    )
    dice = random.Random(5)
    dead = set(dice.sample(tree.brokers, DEAD))
    alive = [name for name in tree.brokers if name not in dead]
    simulation = Simulation(tree, "delta", f=delta, options={"legitimacy": "relaxed"}, settings=Settings())
    for name in tree.brokers:
        simulation.add_client(f"c-{name}", name)
        simulation.call(f"c-{name}", Subscribe(f"s-{name}", "TRUE"), at=0)
    for name in sorted(dead):
        simulation.crash(name, at=2 * SECOND)
    sources = [dice.choice(alive) for _ in range(PUBLICATIONS)]
    for place, name in enumerate(sources):
        simulation.call(f"c-{name}", Publish({"place": place}), at=5 * SECOND + place)
    came: list[str] = []
    simulation._handlers[Deliver] = lambda slot, effect, now: came.append(slot.name)
    simulation.run(until=9 * SECOND)
    due = sum(connected(tree, dead, delta, source, name) for source in sources for name in alive)
    return len(came), due, simulation


@pytest.mark.parametrize("delta", range(4))
def test_deliveries_are_what_the_tree_connects(delta: int) -> None:
    came, due, simulation = broadcast(delta)
    assert came == due > 0
    sizes = {
        name: slot.node.state_size()
        for name, slot in simulation.slots.items()
        if slot.is_broker and slot.node is not None
    }
    assert all(sizes[name]["neighbourhood"] == len(simulation.overlay.within(name, delta + 1)) for name in sizes)
    if delta:
        assert max(size["active_sessions"] for size in sizes.values()) > FANOUT + 1
