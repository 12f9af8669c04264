"""A hypercube of real brokers for tests, with links whose deliveries the test controls."""

from collections import Counter, deque
from collections.abc import Collection
from typing import Any

from gapless.events import Event
from gapless.overlay import chain
from gapless.protocol import BrokerPlace, Received, Send
from gapless_papers.protocols.vcube.broker import VcubeBroker
from gapless_papers.protocols.vcube.messages import ClientPublish, ClientSubscribe, Delivery
from gapless_papers.protocols.vcube.options import VcubeOptions

__all__ = ["Cube"]


class Cube:
    """Brokers b0, b1 … and FIFO links between them whose deliveries the test controls. Client `ck` is attached to
    `bk`.
    """

    def __init__(self, brokers: int, **options: Any) -> None:
        overlay = chain(brokers)
        chosen = VcubeOptions(**options)
        self.nodes = {name: VcubeBroker(BrokerPlace(name, overlay, 0), chosen) for name in overlay.brokers}
        self.links: dict[tuple[str, str], deque[Any]] = {}
        self.sent: Counter[str] = Counter()
        self.clients: dict[str, list[Any]] = {}
        self._seq: Counter[str] = Counter()

    def step(self, broker: str, peer: str, message: Any) -> None:
        for effect in self.nodes[broker].step(Received(peer, message), 0):
            assert isinstance(effect, Send)
            if effect.peer in self.nodes:
                self.sent[type(effect.message).__name__] += 1
                self.links.setdefault((broker, effect.peer), deque()).append(effect.message)
            else:
                self.clients.setdefault(effect.peer, []).append(effect.message)

    def deliver(self, sender: int, receiver: int) -> Any:
        """Deliver the next message of one link, and return it."""
        message = self.links[f"b{sender}", f"b{receiver}"].popleft()
        self.step(f"b{receiver}", f"b{sender}", message)
        return message

    def settle(self, but: Collection[tuple[int, int]] = ()) -> None:
        """Deliver all messages, except on these links."""
        slow = {(f"b{a}", f"b{b}") for a, b in but}
        while ready := [link for link, queue in self.links.items() if queue and link not in slow]:
            for sender, receiver in ready:
                self.step(receiver, sender, self.links[sender, receiver].popleft())

    def call(self, number: int, message: Any) -> None:
        self.step(f"b{number}", f"c{number}", message)

    def subscribe(self, *numbers: int, settle: bool = True) -> None:
        for number in numbers:
            self.call(number, ClientSubscribe(1, "t"))
            if settle:
                self.settle()

    def publish(self, number: int) -> None:
        self._seq[f"c{number}"] += 1
        event = Event(f"c{number}", self._seq[f"c{number}"], {"topic": "t"})
        self.call(number, ClientPublish("t", event))

    def got(self, number: int) -> list[str]:
        """Return the events that a client has received."""
        return [message.event.id for message in self.clients.get(f"c{number}", []) if isinstance(message, Delivery)]

    def received_by(self, number: int, kind: type) -> list[Any]:
        return [message for message in self.clients.get(f"c{number}", []) if isinstance(message, kind)]

    def size(self, number: int, kind: str) -> int:
        return self.nodes[f"b{number}"].state_size()[kind]
