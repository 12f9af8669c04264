"""A protocol that follows the test's instructions and records every input of every node.

A client's `publish` is an order to its broker: `{"send": "b3", "text": "hello"}` sends a note to b3, with `"count"`
copies numbered from 0; `{"timer": "k", "ms": 5}` sets a timer. `{"direct": "b2", "text": …}` is sent by the client
itself.
"""

from collections.abc import Sequence

import msgspec

from gapless.events import Attributes
from gapless.overlay import Overlay
from gapless.protocol import (
    BrokerNode,
    BrokerPlace,
    ClientNode,
    ClientPlace,
    Connected,
    Effect,
    Input,
    Linked,
    ProtocolSpec,
    Publish,
    Received,
    Send,
    SetTimer,
    Start,
    Suspected,
    TimerFired,
    Trusted,
    Unlinked,
)
from gapless.simulator import Settings, Simulation


class Note(msgspec.Struct, frozen=True):
    """A message of a test."""

    text: str
    number: int = 0


class Order(msgspec.Struct, frozen=True):
    """An instruction to a broker."""

    attributes: Attributes


class NoOptions(msgspec.Struct, frozen=True):
    """A protocol without options."""


class Logs:
    """Every input of every node, in order."""

    def __init__(self) -> None:
        self.all: list[tuple[int, str, Input]] = []
        self.nodes: list[ProbeNode] = []

    def of(self, name: str) -> list[tuple[int, Input]]:
        """Return the messages that this node received, without instructions."""
        return [
            (now, item)
            for now, node, item in self.all
            if node == name and not (isinstance(item, Received) and isinstance(item.message, Order))
        ]

    def notes(self, name: str) -> list[tuple[int, str, int]]:
        """Return the notes that this node received: time, sender, number."""
        return [
            (now, item.peer, item.message.number)
            for now, item in self.of(name)
            if isinstance(item, Received) and isinstance(item.message, Note)
        ]

    def news(self, name: str) -> list[tuple[int, str, str]]:
        """Return the node's reports on its peers, its starts and its timers, in words."""
        found = []
        for now, item in self.of(name):
            match item:
                case Start():
                    found.append((now, "start", ""))
                case Connected(peer) | Suspected(peer) | Trusted(peer) | Linked(peer) | Unlinked(peer):
                    found.append((now, type(item).__name__.lower(), peer))
                case TimerFired(key):
                    found.append((now, "timer", key))
        return found


class ProbeNode(BrokerNode, ClientNode):
    """A broker or a client."""

    def __init__(self, place: BrokerPlace | ClientPlace, logs: Logs) -> None:
        self.place = place
        self._logs = logs
        logs.nodes.append(self)

    def step(self, item: Input, now: int) -> Sequence[Effect]:
        self._logs.all.append((now, self.place.name, item))
        match item:
            case Publish(attributes) if isinstance(self.place, ClientPlace):
                if "direct" in attributes:
                    return _notes(str(attributes["direct"]), attributes)
                return [Send(self.place.broker, Order(attributes))]
            case Received(_, Order(attributes)):
                if "timer" in attributes:
                    return [SetTimer(str(attributes["timer"]), int(attributes["ms"]) * 1000)]
                return _notes(str(attributes["send"]), attributes)
        return ()

    def state_size(self) -> dict[str, int]:
        return {}


def _notes(peer: str, attributes: Attributes) -> list[Effect]:
    return [Send(peer, Note(str(attributes["text"]), number)) for number in range(int(attributes.get("count", 1)))]


class Probe:
    """A simulation of the probe protocol, with a client `<broker>.c` at every broker."""

    def __init__(self, overlay: Overlay, *, f: int = 1, settings: Settings | None = None, seed: int = 0) -> None:
        self.logs = Logs()
        self.spec = ProtocolSpec(
            name="probe",
            guarantee="best-effort",
            summary="Does as told.",
            options=NoOptions,
            broker=lambda place, _: ProbeNode(place, self.logs),
            client=lambda place, _: ProbeNode(place, self.logs),
            copes_with=frozenset({"relink"}),
        )
        self.simulation = Simulation(overlay, self.spec, f=f, settings=settings, seed=seed)
        for name in overlay.brokers:
            self.simulation.add_client(f"{name}.c", name)

    def command(self, broker: str, at: int, **attributes: str | int) -> None:
        self.simulation.call(f"{broker}.c", Publish(dict(attributes)), at=at)

    def send(self, sender: str, receiver: str, at: int, count: int = 1) -> None:
        """Let a broker send numbered notes to another node."""
        self.command(sender, at, send=receiver, text="note", count=count)
