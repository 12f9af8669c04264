"""A client of the specification: it owns its subscriptions, advertisements and unconfirmed publications."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from model.routing import Filter
from model.simulator import Simulator
from model.tree import Event, Incarnation


class Application(Protocol):
    """The application's view, and the brokers that a client can use."""

    def published(self, client: str, number: int, topic: int) -> None: ...
    def confirmed(self, publisher: str, number: int) -> None: ...
    def subscribed(self, client: str, name: str, wanted: Filter) -> None: ...
    def unsubscribed(self, name: str) -> None: ...
    def became_active(self, name: str, cuts: dict[str, int]) -> None: ...
    def delivered(self, name: str, event: Event) -> None: ...


@dataclass
class Subscribed:
    """A subscription and its progress."""

    filter: Filter
    active: bool = False
    cuts: dict[str, int] = field(default_factory=dict)
    begin: int = 0
    position: int = 0
    last: dict[str, int] = field(default_factory=dict)


class Client:
    """Attaches with its old incarnation and the largest timestamp that it has seen, and then sends its other state."""

    def __init__(
        self, simulator: Simulator, name: str, application: Application, refuge: Callable[[str], Incarnation | None]
    ) -> None:
        self.simulator, self.name, self.application, self.refuge, self.alive = (
            simulator,
            name,
            application,
            refuge,
            True,
        )
        self.session = 0
        self.home: Incarnation | None = None
        self.trying: Incarnation | None = None
        self.old: Incarnation | None = None
        """The last incarnation that opened a session."""
        self.subscriptions: dict[str, Subscribed] = {}
        self.advertisements: dict[str, tuple[Filter, bool]] = {}
        """name -> (filter, ending)"""
        self.unconfirmed: list[tuple[Any, ...]] = []
        """Advertise, unadvertise and publish operations that are not confirmed, in order."""
        self.numbers, self.names, self.seen, self.replies = 0, 0, 0, 0
        self.ready_first, self.resuming = True, False
        simulator.nodes[name] = self

    def attach(self, to: Incarnation) -> None:
        self.session += 1
        self.trying, self.home = to, None
        self.simulator.send(self.name, to, 0, "attach", (self.session, self.old, self.seen))
        if not self.ready_first:
            for operation in self.unconfirmed:
                self.simulator.send(self.name, to, 0, "operation", (self.session, operation))

    def operate(self, *operation: Any) -> None:
        if self.home:
            self.simulator.send(self.name, self.home, 0, "operation", (self.session, operation))

    # ---- the application's calls
    def advertise(self, wanted: Filter) -> None:
        self.names += 1
        name = f"{self.name}.a{self.names}"
        self.advertisements[name] = (wanted, False)
        self.unconfirmed.append(("advertise", name, wanted))
        self.operate("advertise", name, wanted)

    def unadvertise(self, index: int) -> None:
        names = [name for name, (_, ending) in self.advertisements.items() if not ending]
        if names:
            name = names[index % len(names)]
            self.advertisements[name] = (self.advertisements[name][0], True)
            self.unconfirmed.append(("unadvertise", name))
            self.operate("unadvertise", name)

    def publish(self, index: int) -> None:
        topics = sorted({t for wanted, ending in self.advertisements.values() if not ending for t in wanted})
        if topics:
            self.numbers += 1
            topic = topics[index % len(topics)]
            self.application.published(self.name, self.numbers, topic)
            self.unconfirmed.append(("publish", self.numbers, topic))
            self.operate("publish", self.numbers, topic)

    def subscribe(self, wanted: Filter) -> None:
        self.names += 1
        name = f"{self.name}.s{self.names}"
        self.subscriptions[name] = Subscribed(wanted)
        self.application.subscribed(self.name, name, wanted)
        self.operate("subscribe", name, wanted)

    def unsubscribe(self, index: int) -> None:
        names = [name for name, s in self.subscriptions.items() if s.active]
        if names:
            name = names[index % len(names)]
            del self.subscriptions[name]
            self.application.unsubscribed(name)
            self.operate("unsubscribe", name)

    def move(self, to: Incarnation) -> None:
        if self.home and to != self.home:
            self.attach(to)

    def lost(self, broker: Incarnation) -> None:
        """Handle a broken connection."""
        if broker in (self.home, self.trying):
            self.home = self.trying = None
            self.simulator.after(self.simulator.random.random() * 10, self.retry)

    def retry(self) -> None:
        if self.home is None and self.trying is None:
            refuge = self.refuge(self.name)
            if refuge:
                self.attach(refuge)
            else:
                self.simulator.after(10, self.retry)

    # ---- messages
    def receive(self, source: Any, clock: int, kind: str, arguments: tuple[Any, ...]) -> None:
        """Process a message of the current session; ignore others."""
        if source == (self.home or self.trying) and arguments[0] == self.session:
            getattr(self, "on_" + kind)(source, *arguments[1:])

    def on_ready(self, source: Incarnation, last: int) -> None:
        """Drop operations that the broker has admitted, and send the others."""
        self.home = self.old = source
        self.trying = None
        for operation in list(self.unconfirmed):
            if operation[0] == "publish" and operation[1] <= last:
                self.on_confirm(source, operation[1])
        for name, (wanted, _) in self.advertisements.items():
            if ("advertise", name, wanted) not in self.unconfirmed:
                self.operate("advertise", name, wanted)
        active = [(name, s) for name, s in self.subscriptions.items() if s.active]
        self.resuming = bool(active)
        if active:
            self.operate("resume", [(name, s.filter, s.position, s.cuts, s.begin, dict(s.last)) for name, s in active])
        for name, s in self.subscriptions.items():
            if not s.active:
                self.operate("subscribe", name, s.filter)
        for operation in self.unconfirmed:
            self.operate(*operation)

    def on_resumed(self, source: Incarnation) -> None:
        self.resuming = False

    def on_stable(self, source: Incarnation, name: str) -> None:
        self.unconfirmed = [o for o in self.unconfirmed if o[:2] != ("advertise", name)]

    def on_unadvertised(self, source: Incarnation, name: str) -> None:
        self.unconfirmed = [o for o in self.unconfirmed if o[0] == "publish" or o[1] != name]
        self.advertisements.pop(name, None)

    def on_confirm(self, source: Incarnation, number: int) -> None:
        before = len(self.unconfirmed)
        self.unconfirmed = [o for o in self.unconfirmed if o[:2] != ("publish", number)]
        if len(self.unconfirmed) < before:
            self.application.confirmed(self.name, number)

    def on_active(self, source: Incarnation, name: str, cuts: dict[str, int], begin: int, position: int) -> None:
        s = self.subscriptions.get(name)
        if s:
            s.active, s.cuts, s.begin, s.position = True, cuts, begin, position
            self.application.became_active(name, cuts)

    def on_position(self, source: Incarnation, name: str, position: int) -> None:
        s = self.subscriptions.get(name)
        if s:
            s.position = max(s.position, position)

    def on_deliver(self, source: Incarnation, name: str, event: Event) -> None:
        s = self.subscriptions.get(name)
        if s is None:
            return
        s.last[event.publisher] = max(event.number, s.last.get(event.publisher, 0))
        self.seen = max(self.seen, event.timestamp)
        self.application.delivered(name, event)
        if self.replies and self.simulator.random.random() < 0.5:
            self.replies -= 1
            self.publish(self.simulator.random.randint(0, 9))

    def quiet(self) -> bool:
        active = all(s.active for s in self.subscriptions.values())
        return self.home is not None and not self.unconfirmed and not self.resuming and active
