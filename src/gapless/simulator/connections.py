"""Simulates connections between nodes: how they break, when failures are detected, and how they are restored.

Two nodes are connected unless their pair is in `down`: then an end has crashed, the pair is cut, or
both could communicate again but have not reconnected yet. Messages sent until then are lost. When a
connection breaks, a random prefix of the messages in flight in each direction survives (none of
those to a crashed node). When it is restored, the remains of the old connection are dropped first,
so nothing old arrives after `Connected`.

A connection can also break in one direction only: then one end still receives from the other, but
cannot reach it. If an end crashes in this state, the connection is gone.

Each live end of a broken connection suspects the other after its own delay, unless they reconnect
before. A reconnection gives `Connected` to both ends and then `Trusted` to each that suspected the
other.

Pairs that receive suspicions of each other: brokers at most f + 1 apart, a client and each of its
contacts, and nodes that have communicated.
"""

import random
from collections.abc import Callable, Iterable
from functools import partial
from typing import TypeAlias

from gapless.overlay import Overlay
from gapless.protocol import Connected, Input, Linked, Suspected, Trusted, Unlinked
from gapless.simulator.event_queue import EventQueue
from gapless.simulator.latency import LinkTimes
from gapless.simulator.nodes import CAREFUL, Link, Slot
from gapless.simulator.queueing import BrokerQueues
from gapless.simulator.settings import Settings

__all__ = ["Connections", "Pair", "pair_of"]

Pair: TypeAlias = tuple[str, str]


def pair_of(a: Slot, b: Slot) -> Pair:
    """Return the key of a pair of nodes, which is the same from either end."""
    return (a.name, b.name) if a.name < b.name else (b.name, a.name)


class _Down:
    """A pair of nodes without a connection. Each break creates a new object, so that outdated events are recognized."""

    __slots__ = ("attempt", "reachable_end")

    def __init__(self, reachable_end: str = "") -> None:
        self.attempt = 0
        self.reachable_end = reachable_end
        """The end that still receives from the other, if there is one."""


class Connections:
    """The connections of all nodes in a run."""

    def __init__(
        self, overlay: Overlay, f: int, slots: dict[str, Slot], event_queue: EventQueue, settings: Settings, seed: int,
        give: Callable[[Slot, Input], None], *, recorded: bool,
    ) -> None:  # fmt: skip
        self.queues: BrokerQueues | None = None
        self.cut: dict[Pair, None] = {}
        self.lost = 0
        self._overlay = overlay
        self._f = f
        self._slots = slots
        self._event_queue = event_queue
        self._settings = settings
        self._seed = seed
        self._give = give
        self._recorded = recorded
        self._risky = bool(settings.loss or settings.duplication or settings.node_model)
        self._by_priority = settings.schedule != "latency"
        self._times = LinkTimes(settings.latency, overlay, seed)
        self._down: dict[Pair, _Down] = {}
        self._clients_of: dict[str, list[str]] = {}

    # ---- links

    def know_client(self, client: Slot) -> None:
        """Start to notify a client about its contacts. It will suspect contacts that have crashed.

        A cut that was healed before the client joined does not affect it.
        """
        for name in client.contacts:
            self._clients_of.setdefault(name, []).append(client.name)
            pair = pair_of(client, self._slots[name])
            if not self._slots[name].alive:
                self._break(client, self._slots[name])
            elif pair not in self.cut:
                self._down.pop(pair, None)

    def open_link(self, sender: Slot, peer: str) -> Link:
        """Return the link from the sender to the peer. It is created with the reverse link at its first use."""
        receiver = self._slots.get(peer)
        assert receiver is not None, f"{sender.name} sends to {peer!r}, but there is no such node"
        assert sender.is_broker or receiver.is_broker, (
            f"{sender.name} sends to {peer!r}, but clients communicate only with brokers"
        )
        if not (sender.alive and receiver.alive):
            self._down.setdefault(pair_of(sender, receiver), _Down())
        least, most = self._latency(sender, receiver)
        there, back = Link(sender, receiver, least, most - least), Link(receiver, sender, least, most - least)
        if self.queues is not None and sender.is_broker and receiver.is_broker:
            there.gate, back.gate = self.queues.gate(there), self.queues.gate(back)
        sender.links[peer], receiver.links[sender.name] = there, back
        self._set((there,), self._carries(sender, receiver))
        self._set((back,), self._carries(receiver, sender))
        return there

    def _carries(self, sender: Slot, receiver: Slot) -> bool:
        """Return whether a message sent now would arrive."""
        state = self._down.get(pair_of(sender, receiver)) if self._down else None
        return state is None or state.reachable_end == receiver.name

    def _latency(self, a: Slot, b: Slot) -> tuple[int, int]:
        if a.is_broker and b.is_broker:
            return self._times.between(a.name, b.name)
        client = b if a.is_broker else a
        return client.latency_us, client.latency_us

    def _set_up(self, a: Slot, b: Slot, up: bool) -> None:
        self._set(self._links(a, b), up)

    def _set(self, links: Iterable[Link], up: bool) -> None:
        for link in links:
            careful = (
                self._recorded
                or self._by_priority
                or (self._risky and link.sender.is_broker and link.receiver.is_broker)
            )
            link.up = up
            link.delay = link.base if up and not careful and link.spread == 0 else CAREFUL

    @staticmethod
    def _links(a: Slot, b: Slot) -> list[Link]:
        return [link for link in (a.links.get(b.name), b.links.get(a.name)) if link is not None]

    def peers(self, slot: Slot) -> list[Slot]:
        """Return all nodes that are notified of failures of this one."""
        if slot.is_broker:
            names = [*self._overlay.within(slot.name, self._f + 1), *self._clients_of.get(slot.name, ())]
        else:
            names = list(slot.contacts)
        found = [self._slots[name] for name in dict.fromkeys([*names, *slot.links])]
        return [peer for peer in found if peer.life > 0 and peer is not slot]

    # ---- rearranging the tree

    def expect_relinks(self) -> None:
        """Prepare for changing latencies, so that messages on links between brokers stay in order."""
        self._risky = True

    def rearrange(self, overlay: Overlay) -> None:
        """Use this tree from now on, and the latencies along its links."""
        self._overlay = overlay
        self._times = LinkTimes(self._settings.latency, overlay, self._seed)
        for slot in self._slots.values():
            for link in slot.links.values():
                if slot.is_broker and link.receiver.is_broker:
                    least, most = self._times.between(slot.name, link.receiver.name)
                    link.base, link.spread = least, most - least

    def notify_ends(self, a: Slot, b: Slot, news: type[Linked | Unlinked]) -> None:
        """Notify both ends of a link. Messages sent earlier do not arrive."""
        self.lost += self._event_queue.lose(dict.fromkeys(self._links(a, b), 0))
        self._give(a, news(b.name))
        self._give(b, news(a.name))

    # ---- breaking

    def crash(self, slot: Slot) -> None:
        """Break all connections of a crashed node."""
        keep: dict[Link, int] = {}
        for link in slot.links.values():
            keep |= dict.fromkeys(self._links(slot, link.receiver), 0)
        for link, count in self._event_queue.in_flight(keep).items():
            if link.sender is slot:
                keep[link] = self._surviving(link, count)
        self.lost += self._event_queue.lose(keep)
        for peer in self.peers(slot):
            self._break(peer, slot)

    def break_off(self, a: Slot, b: Slot) -> None:
        """Break the connection between two running nodes."""
        keep = dict.fromkeys(self._links(a, b), 0)
        for link, count in self._event_queue.in_flight(keep).items():
            keep[link] = self._surviving(link, count)
        self.lost += self._event_queue.lose(keep)
        self._break(a, b)
        self._watch(b, a)

    def break_one_way(self, a: Slot, b: Slot) -> None:
        """Break the connection from the first node to the second. Both nodes keep running."""
        if pair_of(a, b) in self._down:
            self.break_off(a, b)
            return
        keep = dict.fromkeys((link for link in self._links(a, b) if link.sender is a), 0)
        for link, count in self._event_queue.in_flight(keep).items():
            keep[link] = self._surviving(link, count)
        self.lost += self._event_queue.lose(keep)
        self._down[pair_of(a, b)] = _Down(reachable_end=a.name)
        self._set(keep, False)
        self._watch(b, a)

    def _surviving(self, link: Link, in_flight: int) -> int:
        """Return how many of the messages in flight still arrive."""
        return self._draw("survive", link.sender, link.receiver, 0, in_flight) if in_flight else 0

    def _break(self, observer: Slot, other: Slot) -> None:
        state = self._down.setdefault(pair_of(observer, other), _Down())
        state.attempt += 1
        state.reachable_end = ""
        self._set_up(observer, other, False)
        self._watch(observer, other)

    # ---- detection

    def watch_absent(self, slot: Slot) -> None:
        """Let a started or restarted node suspect the nodes to which it has no connection."""
        for peer in self.peers(slot):
            if pair_of(slot, peer) in self._down:
                self._watch(slot, peer)

    def is_noticed(self, absence_us: int) -> bool:
        """Return whether an absence of this length can have been detected."""
        return absence_us >= self._settings.detect_least_us

    def _watch(self, observer: Slot, target: Slot) -> None:
        if observer.alive:
            settings = self._settings
            delay = self._draw("detect", observer, target, settings.detect_least_us, settings.detect_most_us)
            state = self._down[pair_of(observer, target)]
            self._event_queue.call(
                self._event_queue.now + delay, partial(self._notice, observer, observer.life, target, state)
            )

    def _notice(self, observer: Slot, life: int, target: Slot, state: _Down) -> None:
        if observer.life == life and self._down.get(pair_of(observer, target)) is state:
            self.suspect(observer, target)

    def suspect(self, observer: Slot, target: Slot) -> None:
        """Make the observer suspect the target, whether it has failed or not."""
        if observer.alive and target.name not in observer.suspects:
            observer.suspects[target.name] = None
            self._give(observer, Suspected(target.name))

    def trust(self, observer: Slot, target: Slot) -> None:
        """Withdraw a suspicion, unless the target has crashed since then."""
        if observer.alive and target.name in observer.suspects and pair_of(observer, target) not in self._down:
            del observer.suspects[target.name]
            self._give(observer, Trusted(target.name))

    # ---- reconnecting

    def restore(self, a: Slot, b: Slot) -> None:
        """Let both ends reconnect after a delay, if they can communicate again.

        If one of them is down, they reconnect at its restart. If they are not near and have never communicated, they
        connect at their first message.
        """
        pair = pair_of(a, b)
        state = self._down.get(pair)
        if state is None or pair in self.cut:
            return
        if not (a.alive and b.alive):
            if b not in self.peers(a):
                del self._down[pair]
            return
        state.attempt += 1
        settings = self._settings
        delay = self._draw("reconnect", a, b, settings.reconnect_least_us, settings.reconnect_most_us)
        if delay == 0:
            self._connect(a, b, state, state.attempt)
        else:
            again = partial(self._connect, a, b, state, state.attempt)
            self._event_queue.call(self._event_queue.now + delay, again)

    def _connect(self, a: Slot, b: Slot, state: _Down, attempt: int) -> None:
        pair = pair_of(a, b)
        if self._down.get(pair) is not state or state.attempt != attempt:
            return
        self.lost += self._event_queue.lose(dict.fromkeys(self._links(a, b), 0))
        del self._down[pair]
        self._set_up(a, b, True)
        one, other = (a, b) if a.number < b.number else (b, a)
        self._give(one, Connected(other.name))
        self._give(other, Connected(one.name))
        self.trust(one, other)
        self.trust(other, one)

    def all_well(self) -> bool:
        """Return whether no pair is cut and no reachable node is suspected."""
        return not self.cut and not any(
            pair_of(slot, self._slots[name]) not in self._down
            for slot in self._slots.values() if slot.alive
            for name in slot.suspects
        )  # fmt: skip

    def _draw(self, purpose: str, a: Slot, b: Slot, least: int, most: int) -> int:
        """Draw a random number for this purpose, pair and time, independently of all other draws in the run."""
        if least == most:
            return least
        return random.Random(f"{self._seed}/{purpose}/{a.name}/{b.name}/{self._event_queue.now}").randint(least, most)
