"""Crashes, restarts, cuts and false suspicions: what can go wrong, and how it ends.

- A crashed broker hears nothing and its timers stand still. Messages in flight to it are lost; of those from it, a
  drawn prefix of each link survives.
- A restart without memory puts a fresh node in, with a higher incarnation, and gives it `Start`; it has no connection
  yet. A restart with memory lets the same node go on as after a long pause: what arrived meanwhile is lost, timers
  that ran out meanwhile fire now.
- A cut parts one pair of nodes and no other, even where the tree path of another pair crosses it.
- A false suspicion loses nothing.

A fault that does not fit the moment (a crash of the dead, a restart of the living) is refused: it is a mistake in
the script.
"""

from collections.abc import Callable

from gapless.errors import ScenarioError
from gapless.overlay import Overlay
from gapless.protocol import BrokerPlace, Input, Node, Start, TimerFired
from gapless.simulator.agenda import Agenda
from gapless.simulator.connections import Connections, pair_of
from gapless.simulator.nodes import Slot

__all__ = ["Faults"]


class Faults:
    """Carries faults out, at the moment they are due."""

    def __init__(
        self, overlay: Overlay, f: int, slots: dict[str, Slot], agenda: Agenda, connections: Connections,
        make_broker: Callable[[BrokerPlace], Node], give: Callable[[Slot, Input], None],
    ) -> None:  # fmt: skip
        self._overlay = overlay
        self._f = f
        self._slots = slots
        self._agenda = agenda
        self._connections = connections
        self._make_broker = make_broker
        self._give = give

    def begin(self, slot: Slot) -> None:
        """Put a fresh broker in."""
        place = BrokerPlace(slot.name, self._overlay, self._f, slot.incarnation)
        slot.inhabit(self._make_broker(place))

    def crash(self, name: str) -> None:
        """The broker falls silent."""
        slot = self._slots[name]
        if not slot.alive:
            raise ScenarioError(f"broker {name!r} cannot crash at {self._ms()} ms: it is dead already")
        slot.silence()
        if self._connections.queues is not None:
            self._connections.queues.clear(slot)
        self._connections.crash(slot)

    def restart(self, name: str, memory: bool) -> None:
        """The broker is back."""
        slot = self._slots[name]
        if slot.alive:
            raise ScenarioError(f"broker {name!r} cannot restart at {self._ms()} ms: it is alive")
        if memory:
            assert slot.node is not None
            slot.inhabit(slot.node)
        else:
            slot.forget()
            slot.incarnation += 1
            self.begin(slot)
            self._give(slot, Start())
        for peer in self._connections.peers(slot):
            self._connections.restore(slot, peer)
        self._connections.watch_absent(slot)
        overdue, slot.overdue = slot.overdue, []
        for key in overdue:
            self._agenda.put(self._agenda.now, (slot, TimerFired(key), None))

    def cut(self, a: str, b: str) -> None:
        """The two can no longer reach each other."""
        one, other = self._slots[a], self._slots[b]
        pair = pair_of(one, other)
        if pair in self._connections.cut:
            raise ScenarioError(f"{a!r} and {b!r} cannot be cut at {self._ms()} ms: they are cut already")
        self._connections.cut[pair] = None
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

    def _ms(self) -> str:
        return f"{self._agenda.now / 1000:g}"
