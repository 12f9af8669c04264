"""The slots of nodes, the directed links between them, and their timers.

A slot outlives the node in it: when a broker crashes, its slot stays without a node, and a restart
puts one back in. `life` grows with each crash and each restart, so that outdated events are
recognized.

`Link.delay` is the fast path: the constant latency of a link without faults, or -1, which sends the
engine to the slow path (the link is down, jittered, lossy, queued or recorded).
"""

from collections.abc import Callable, Sequence
from typing import Any

from gapless.protocol import Effect, Node, TimerFired
from gapless.simulator.clocks import NodeClock

__all__ = ["CAREFUL", "Link", "Slot", "Timer", "deaf"]

CAREFUL = -1


def deaf(item: Any, now: int) -> Sequence[Effect]:
    """Ignore an input: the step function of an empty slot."""
    return ()


class Slot:
    """A broker or a client of a run, with its current node if it is running."""

    __slots__ = (
        "advertisements", "alive", "broker", "clock", "consume_us", "contacts", "delivered", "incarnation", "is_broker",
        "is_consuming", "latency_us", "life", "links", "name", "node", "number", "overdue", "step", "subscriptions",
        "suspects", "timers", "watch",
    )  # fmt: skip

    def __init__(self, name: str, number: int, broker: str | None = None, contacts: tuple[str, ...] = ()) -> None:
        self.name = name
        self.number = number
        self.is_broker = broker is None
        self.broker = broker
        self.contacts = contacts
        self.latency_us = 0
        self.consume_us = 0
        """How long the application waits before it takes deliveries."""
        self.delivered = 0
        self.is_consuming = False
        self.alive = False
        self.life = 0
        self.incarnation = 0
        self.node: Node | None = None
        self.step: Callable[[Any, int], Sequence[Effect]] = deaf
        self.links: dict[str, Link] = {}
        self.timers: dict[str, Timer] = {}
        self.overdue: list[str] = []
        self.suspects: dict[str, None] = {}
        self.subscriptions: dict[str, None] = {}
        self.advertisements: dict[str, None] = {}
        self.clock: NodeClock | None = None
        """The clock of the node, or None if the node uses the run's clock."""
        self.watch: Callable[[Slot, Any, Sequence[Effect]], None] | None = None
        """Called with every input of the node and its effects."""

    def set_node(self, node: Node) -> None:
        """Put a node into the slot."""
        self.node = node
        self._choose_step()
        self.alive = True
        self.life += 1

    def own_clock(self) -> NodeClock:
        """Give the slot a clock of its own, and return the clock."""
        if self.clock is None:
            self.clock = NodeClock()
            if self.alive:
                self._choose_step()
        return self.clock

    def _choose_step(self) -> None:
        assert self.node is not None
        plain = self.node.step if self.clock is None else self._step_by_own_clock
        self.step = plain if self.watch is None else self._step_watched

    def _step_by_own_clock(self, item: Any, now: int) -> Sequence[Effect]:
        assert self.node is not None
        assert self.clock is not None
        return self.node.step(item, self.clock(now))

    def _step_watched(self, item: Any, now: int) -> Sequence[Effect]:
        assert self.node is not None
        assert self.watch is not None
        effects = self.node.step(item, now if self.clock is None else self.clock(now))
        self.watch(self, item, effects)
        return effects

    def silence(self) -> None:
        """Stop passing inputs to the node, which has crashed or is paused."""
        self.step = deaf
        self.alive = False
        self.life += 1

    def forget(self) -> None:
        """Drop all state that only the memory of the node contained."""
        self.node = None
        self.timers = {}
        self.overdue = []
        self.suspects = {}


class Link:
    """One direction of the connection between two nodes."""

    __slots__ = ("base", "delay", "gate", "last_arrival", "receiver", "sender", "spread", "up")

    def __init__(self, sender: Slot, receiver: Slot, base: int, spread: int) -> None:
        self.sender = sender
        self.receiver = receiver
        self.gate: Any = receiver
        """The receiver of arriving messages, or the queue in front of the receiver."""
        self.base = base
        self.spread = spread
        self.delay = CAREFUL
        self.last_arrival = 0
        self.up = True


class Timer:
    """A running timer. It was replaced if its slot has another one with the same key."""

    __slots__ = ("give", "key", "slot")

    def __init__(self, slot: Slot, key: str, give: Callable[[Slot, TimerFired], None]) -> None:
        self.slot = slot
        self.key = key
        self.give = give

    def __call__(self) -> None:
        slot = self.slot
        if slot.timers.get(self.key) is not self:
            return
        del slot.timers[self.key]
        if slot.alive:
            self.give(slot, TimerFired(self.key))
        else:
            slot.overdue.append(self.key)
