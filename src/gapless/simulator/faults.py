"""Crashes, restarts, cuts, false suspicions and relinks: what can go wrong, and how it ends.

- A crashed broker hears nothing and its timers stand still. Messages in flight to it are lost; of those from it, a
  drawn prefix of each link survives.
- A restart without memory puts a fresh node in, with a higher incarnation, and gives it `Start`; it has no connection
  yet. A restart with memory lets the same node go on as after a long pause: what arrived meanwhile is lost, timers
  that ran out meanwhile fire now.
- Where brokers have disks, one that restarts without memory is given what is on its disk (`disks`).
- A cut parts one pair of nodes and no other, even where the tree path of another pair crosses it. It may be one-way.
- A false suspicion loses nothing.
- A relink changes the tree for good: the ends of the link that goes and of the one that comes are told at once.

A fault that does not fit the moment (a crash of the dead, a restart of the living) is refused: it is a mistake in
the script.
"""

from collections.abc import Callable

from gapless.errors import OverlayError, ScenarioError
from gapless.overlay import Overlay
from gapless.protocol import BrokerPlace, Forget, Input, Linked, Node, Resumed, Start, TimerFired, Unlinked
from gapless.simulator.connections import Connections, pair_of
from gapless.simulator.disks import Disks, DiskState
from gapless.simulator.event_queue import EventQueue
from gapless.simulator.nodes import Slot
from gapless.simulator.relinking import ChangingTree

__all__ = ["Faults"]


class Faults:
    """Carries faults out, at the moment they are due."""

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
        """Put a fresh broker in."""
        found = None if self._disks is None else self._disks.read(slot, disk)
        place = BrokerPlace(slot.name, self._tree.overlay, self._f, slot.incarnation, found)
        if slot.clock is not None:
            slot.clock.begin()
        slot.inhabit(self._make_broker(place))

    def crash(self, name: str) -> None:
        """The broker falls silent."""
        slot = self._slots[name]
        if not slot.alive:
            raise ScenarioError(f"broker {name!r} cannot crash at {self._ms()} ms: it is dead already")
        slot.silence()
        self._silent_since[name] = self._event_queue.now
        if self._connections.queues is not None:
            self._connections.queues.clear(slot)
        self._connections.crash(slot)

    def restart(self, name: str, memory: bool, disk: DiskState = "kept") -> None:
        """The broker is back."""
        slot = self._slots[name]
        if slot.alive:
            raise ScenarioError(f"broker {name!r} cannot restart at {self._ms()} ms: it is alive")
        if memory:
            assert slot.node is not None
            slot.inhabit(slot.node)
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
        """The two can no longer reach each other; or only the first can no longer reach the second."""
        one, other = self._slots[a], self._slots[b]
        pair = pair_of(one, other)
        if pair in self._connections.cut:
            raise ScenarioError(f"{a!r} and {b!r} cannot be cut at {self._ms()} ms: they are cut already")
        self._connections.cut[pair] = None
        if one_way:
            self._connections.break_one_way(one, other)
        else:
            self._connections.break_off(one, other)

    def heal(self, a: str, b: str) -> None:
        """The two can reach each other again."""
        one, other = self._slots[a], self._slots[b]
        pair = pair_of(one, other)
        if pair not in self._connections.cut:
            raise ScenarioError(f"{a!r} and {b!r} cannot be healed at {self._ms()} ms: they are not cut")
        del self._connections.cut[pair]
        self._connections.restore(one, other)

    def suspect(self, observer: str, target: str) -> None:
        """The observer wrongly believes that the target is dead."""
        self._connections.suspect(self._slots[observer], self._slots[target])

    def trust(self, observer: str, target: str) -> None:
        """The observer no longer believes it."""
        self._connections.trust(self._slots[observer], self._slots[target])

    def forget(self, broker: str, told: str) -> None:
        """An operator says that a broker will not return."""
        slot = self._slots[told]
        if slot.alive:
            self._give(slot, Forget(broker))

    def set_clock(self, broker: str, ahead: int, drift: float) -> None:
        """The broker's clock shows another time."""
        self._slots[broker].own_clock().set(self._event_queue.now, ahead, drift)

    def unlink(self, old: tuple[str, str], new: tuple[str, str]) -> None:
        """The old link of the tree goes; the new one will take its place."""
        self._need_alive(old)
        try:
            self._tree.take_away(old, new)
        except OverlayError as error:
            raise ScenarioError(f"no relink at {self._ms()} ms: {error}") from None
        self._connections.rearrange(self._tree.overlay)
        self._connections.tell_ends(self._slots[old[0]], self._slots[old[1]], Unlinked)

    def link(self, new: tuple[str, str]) -> None:
        """The new link is there."""
        self._need_alive(new)
        self._tree.bring(new)
        self._connections.tell_ends(self._slots[new[0]], self._slots[new[1]], Linked)

    def _need_alive(self, link: tuple[str, str]) -> None:
        for name in link:
            if not self._slots[name].alive:
                raise ScenarioError(f"{'–'.join(link)} cannot be relinked at {self._ms()} ms: {name!r} is dead")

    def _ms(self) -> str:
        return f"{self._event_queue.now / 1000:g}"
