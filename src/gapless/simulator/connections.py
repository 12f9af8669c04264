"""Connections between nodes: how they break, who notices when, and how they come back.

Two nodes are connected unless their pair is in `down`: then an end is dead, the pair is cut, or both could talk again
but have not reconnected yet. What is sent meanwhile is lost. When a connection breaks, of the messages in flight in
each direction a drawn prefix survives (of those to a crashed node, none). When it comes back, what is left of the
old connection is dropped first, so nothing old arrives after `Connected`.

A connection may also break in one direction only: then one end still hears the other, and is heard no more. If an end
dies meanwhile, nothing is left of it.

Each live end of a broken connection suspects the other after a delay of its own, unless they reconnect before.
A reconnection gives `Connected` to both ends and then `Trusted` to each that suspected the other.

Pairs that can be given news of each other: brokers at most f + 1 apart, a client and each of its contacts, and nodes
that have talked to each other.
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
    """The name of a pair, the same from either end."""
    return (a.name, b.name) if a.name < b.name else (b.name, a.name)


class _Down:
    """A pair without a connection; an object of its own each time, so that late news can tell."""

    __slots__ = ("attempt", "hearer")

    def __init__(self, hearer: str = "") -> None:
        self.attempt = 0
        self.hearer = hearer
        """The end, if any, that still hears the other."""


class Connections:
    """Every connection of a run."""

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
        self._times = LinkTimes(settings.latency, overlay, seed)
        self._down: dict[Pair, _Down] = {}
        self._clients_of: dict[str, list[str]] = {}

    # ---- links

    def know_client(self, client: Slot) -> None:
        """From now on the client is given news of its contacts; those dead already it will come to suspect.

        A cut that was healed before it came is none of its concern.
        """
        for name in client.contacts:
            self._clients_of.setdefault(name, []).append(client.name)
            pair = pair_of(client, self._slots[name])
            if not self._slots[name].alive:
                self._break(client, self._slots[name])
            elif pair not in self.cut:
                self._down.pop(pair, None)

    def open_link(self, sender: Slot, peer: str) -> Link:
        """The link from the sender to the peer, made at its first use together with the way back."""
        receiver = self._slots.get(peer)
        assert receiver is not None, f"{sender.name} sends to {peer!r}, but there is no such node"
        assert sender.is_broker or receiver.is_broker, f"{sender.name} sends to {peer!r}, but clients talk to brokers"
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
        """Whether what is sent arrives."""
        state = self._down.get(pair_of(sender, receiver)) if self._down else None
        return state is None or state.hearer == receiver.name

    def _latency(self, a: Slot, b: Slot) -> tuple[int, int]:
        if a.is_broker and b.is_broker:
            return self._times.between(a.name, b.name)
        client = b if a.is_broker else a
        return client.latency_us, client.latency_us

    def _set_up(self, a: Slot, b: Slot, up: bool) -> None:
        self._set(self._links(a, b), up)

    def _set(self, links: Iterable[Link], up: bool) -> None:
        for link in links:
            careful = self._recorded or (self._risky and link.sender.is_broker and link.receiver.is_broker)
            link.up = up
            link.delay = link.base if up and not careful and link.spread == 0 else CAREFUL

    @staticmethod
    def _links(a: Slot, b: Slot) -> list[Link]:
        return [link for link in (a.links.get(b.name), b.links.get(a.name)) if link is not None]

    def peers(self, slot: Slot) -> list[Slot]:
        """Everyone who is given news of this node."""
        if slot.is_broker:
            names = [*self._overlay.within(slot.name, self._f + 1), *self._clients_of.get(slot.name, ())]
        else:
            names = list(slot.contacts)
        found = [self._slots[name] for name in dict.fromkeys([*names, *slot.links])]
        return [peer for peer in found if peer.life > 0 and peer is not slot]

    # ---- rearranging the tree

    def expect_relinks(self) -> None:
        """Latencies will change: links between brokers must be used with care from the start, to stay in order."""
        self._risky = True

    def rearrange(self, overlay: Overlay) -> None:
        """From now on this is the tree, and what takes its way along it takes as long."""
        self._overlay = overlay
        self._times = LinkTimes(self._settings.latency, overlay, self._seed)
        for slot in self._slots.values():
            for link in slot.links.values():
                if slot.is_broker and link.receiver.is_broker:
                    least, most = self._times.between(slot.name, link.receiver.name)
                    link.base, link.spread = least, most - least

    def tell_ends(self, a: Slot, b: Slot, news: type[Linked | Unlinked]) -> None:
        """Both ends of a link hear what became of it; nothing from before arrives any more."""
        self.lost += self._event_queue.lose(dict.fromkeys(self._links(a, b), 0))
        self._give(a, news(b.name))
        self._give(b, news(a.name))

    # ---- breaking

    def crash(self, slot: Slot) -> None:
        """All connections of a node that has just died."""
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
        """The connection of two nodes that both live on."""
        keep = dict.fromkeys(self._links(a, b), 0)
        for link, count in self._event_queue.in_flight(keep).items():
            keep[link] = self._surviving(link, count)
        self.lost += self._event_queue.lose(keep)
        self._break(a, b)
        self._watch(b, a)

    def break_one_way(self, a: Slot, b: Slot) -> None:
        """What the first says no longer reaches the second; both live on."""
        if pair_of(a, b) in self._down:
            self.break_off(a, b)
            return
        keep = dict.fromkeys((link for link in self._links(a, b) if link.sender is a), 0)
        for link, count in self._event_queue.in_flight(keep).items():
            keep[link] = self._surviving(link, count)
        self.lost += self._event_queue.lose(keep)
        self._down[pair_of(a, b)] = _Down(hearer=a.name)
        self._set(keep, False)
        self._watch(b, a)

    def _surviving(self, link: Link, in_flight: int) -> int:
        """How many of the messages in flight still arrive."""
        return self._draw("survive", link.sender, link.receiver, 0, in_flight) if in_flight else 0

    def _break(self, observer: Slot, other: Slot) -> None:
        state = self._down.setdefault(pair_of(observer, other), _Down())
        state.attempt += 1
        state.hearer = ""
        self._set_up(observer, other, False)
        self._watch(observer, other)

    # ---- noticing

    def watch_absent(self, slot: Slot) -> None:
        """A node that has just (re)started will come to suspect those it has no connection to."""
        for peer in self.peers(slot):
            if pair_of(slot, peer) in self._down:
                self._watch(slot, peer)

    def is_noticed(self, absence_us: int) -> bool:
        """Whether anybody may have noticed that a node was away for so long."""
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
        """The observer's failure detector changes its mind, rightly or not."""
        if observer.alive and target.name not in observer.suspects:
            observer.suspects[target.name] = None
            self._give(observer, Suspected(target.name))

    def trust(self, observer: Slot, target: Slot) -> None:
        """Take a suspicion back, unless it has come true."""
        if observer.alive and target.name in observer.suspects and pair_of(observer, target) not in self._down:
            del observer.suspects[target.name]
            self._give(observer, Trusted(target.name))

    # ---- coming back

    def restore(self, a: Slot, b: Slot) -> None:
        """Both ends may be able to talk again: if so, they will have a connection soon, or at once.

        If one of them is dead, that is when it restarts; or, if they are not near and have never talked, when they do.
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
        """Whether nothing is cut, and nobody suspects a node that can be reached."""
        return not self.cut and not any(
            pair_of(slot, self._slots[name]) not in self._down
            for slot in self._slots.values() if slot.alive
            for name in slot.suspects
        )  # fmt: skip

    def _draw(self, purpose: str, a: Slot, b: Slot, least: int, most: int) -> int:
        """A number for this purpose, pair and moment; it depends on nothing else that happens in the run."""
        if least == most:
            return least
        return random.Random(f"{self._seed}/{purpose}/{a.name}/{b.name}/{self._event_queue.now}").randint(least, most)
