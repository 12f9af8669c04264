"""Carries out crashes, restarts, cuts, false suspicions and relinks.

- A crashed broker receives nothing and its timers stop. Messages in flight to it are lost; of those
  from it, a random prefix of each link survives.
- A restart without memory creates a new node with a higher incarnation, and gives it `Start`; it
  has no connection yet. A restart with memory continues the same node as after a long pause:
  messages that arrived during the pause are lost, timers that expired during it fire now.
- Where brokers have disks, one that restarts without memory is given the content of its disk
  (`disks`).
- A cut disconnects one pair of nodes and no other, even if the tree path of another pair crosses
  it. It can be one-way.
- A false suspicion loses nothing.
- A relink changes the tree permanently: the ends of the old and of the new link are notified at
  once.

A fault that is impossible at its time (a crash of a crashed broker, a restart of a running one) is
an error in the script.
"""

from collections.abc import Callable

from gapless.errors import OverlayError, ScenarioError
from gapless.overlay import Overlay
from gapless.protocol import (
    BrokerPlace,
    DeleteEvents,
    Forget,
    Input,
    Linked,
    Node,
    Resumed,
    Start,
    TimerFired,
    Unlinked,
)
from gapless.simulator.connections import Connections, pair_of
from gapless.simulator.disks import Disks, DiskState
from gapless.simulator.event_queue import EventQueue
from gapless.simulator.nodes import Slot
from gapless.simulator.relinking import ChangingTree

__all__ = ["Faults"]


class Faults:
    """Carries out the faults of one run."""

    def __init__(
        self, overlay: Overlay, f: int, slots: dict[str, Slot], event_queue: EventQueue, connections: Connections,
        make_broker: Callable[[BrokerPlace], Node], give: Callable[[Slot, Input], None], disks: Disks | None = None,
    ) -> None:  # fmt: skip
        self._disks = disks
        self._tree = ChangingTree(overlay)
        self._f = f
        self._slots = slots
        self._event_queue = event_queue
        self._connections = connections
        self._make_broker = make_broker
        self._give = give
        self._silent_since: dict[str, int] = {}

    def begin(self, slot: Slot, disk: DiskState = "kept") -> None:
        """Create a broker node in the slot, and start it with the contents of a disk."""
        found = None if self._disks is None else self._disks.read(slot, disk)
        place = BrokerPlace(slot.name, self._tree.overlay, self._f, slot.incarnation, found)
        if slot.clock is not None:
            slot.clock.begin()
        slot.set_node(self._make_broker(place))

    def crash(self, name: str) -> None:
        """Stop a broker without notice, as in a crash."""
        slot = self._slots[name]
        if not slot.alive:
            raise ScenarioError(f"broker {name!r} cannot crash at {self._ms()} ms: it has already crashed")
        slot.silence()
        self._silent_since[name] = self._event_queue.now
        if self._connections.queues is not None:
            self._connections.queues.clear(slot)
        self._connections.crash(slot)

    def restart(self, name: str, memory: bool, disk: DiskState = "kept") -> None:
        """Restart a crashed broker, with its memory or without."""
        slot = self._slots[name]
        if slot.alive:
            raise ScenarioError(f"broker {name!r} cannot restart at {self._ms()} ms: it is running")
        if memory:
            assert slot.node is not None
            slot.set_node(slot.node)
            if self._disks is not None and self._connections.is_noticed(
                self._event_queue.now - self._silent_since[name]
            ):
                self._give(slot, Resumed())
        else:
            slot.forget()
            slot.incarnation += 1
            self.begin(slot, disk)
            self._give(slot, Start())
        for peer in self._connections.peers(slot):
            self._connections.restore(slot, peer)
        self._connections.watch_absent(slot)
        overdue, slot.overdue = slot.overdue, []
        for key in overdue:
            self._event_queue.put(self._event_queue.now, (slot, TimerFired(key), None))
        if memory and self._disks is not None:
            self._disks.go_on(slot)

    def cut(self, a: str, b: str, one_way: bool = False) -> None:
        """Disconnect two nodes, in both directions or only from the first to the second."""
        one, other = self._slots[a], self._slots[b]
        pair = pair_of(one, other)
        if pair in self._connections.cut:
            raise ScenarioError(f"{a!r} and {b!r} cannot be cut at {self._ms()} ms: they are already cut")
        self._connections.cut[pair] = None
        if one_way:
            self._connections.break_one_way(one, other)
        else:
            self._connections.break_off(one, other)

    def heal(self, a: str, b: str) -> None:
        """Let two nodes communicate again."""
        one, other = self._slots[a], self._slots[b]
        pair = pair_of(one, other)
        if pair not in self._connections.cut:
            raise ScenarioError(f"{a!r} and {b!r} cannot be healed at {self._ms()} ms: they are not cut")
        del self._connections.cut[pair]
        self._connections.restore(one, other)

    def suspect(self, observer: str, target: str) -> None:
        """Make the observer suspect the target, which has not failed."""
        self._connections.suspect(self._slots[observer], self._slots[target])

    def trust(self, observer: str, target: str) -> None:
        """End the false suspicion."""
        self._connections.trust(self._slots[observer], self._slots[target])

    def forget(self, broker: str, at_broker: str) -> None:
        """Tell one broker, on behalf of an operator, that another will not return."""
        slot = self._slots[at_broker]
        if slot.alive:
            self._give(slot, Forget(broker))

    def delete_events(self, publisher: str, at_broker: str) -> None:
        """Tell one broker, on behalf of an operator, to delete a publisher's events."""
        slot = self._slots[at_broker]
        if slot.alive:
            self._give(slot, DeleteEvents(publisher))

    def set_clock(self, broker: str, ahead: int, drift: float) -> None:
        """Change the broker's clock."""
        self._slots[broker].own_clock().set(self._event_queue.now, ahead, drift)

    def unlink(self, old: tuple[str, str], new: tuple[str, str]) -> None:
        """Remove a link of the tree that the new one will replace."""
        self._need_alive(old)
        try:
            self._tree.take_away(old, new)
        except OverlayError as error:
            raise ScenarioError(f"no relink at {self._ms()} ms: {error}") from None
        self._connections.rearrange(self._tree.overlay)
        self._connections.notify_ends(self._slots[old[0]], self._slots[old[1]], Unlinked)

    def link(self, new: tuple[str, str]) -> None:
        """Add the new link to the tree."""
        self._need_alive(new)
        self._tree.bring(new)
        self._connections.notify_ends(self._slots[new[0]], self._slots[new[1]], Linked)

    def _need_alive(self, link: tuple[str, str]) -> None:
        for name in link:
            if not self._slots[name].alive:
                raise ScenarioError(f"{'–'.join(link)} cannot be relinked at {self._ms()} ms: {name!r} is down")

    def _ms(self) -> str:
        return f"{self._event_queue.now / 1000:g}"
