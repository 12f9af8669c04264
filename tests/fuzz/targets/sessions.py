"""Two brokers that keep each other's backups, and clients that say anything: the honest ones go on.

The brokers are the real state machines; what they send each other and their clients is encoded and decoded as over TCP.
"""

from __future__ import annotations

from collections import deque
from random import Random
from typing import Any

import msgspec

from gapless.errors import GaplessError
from gapless.events import Event
from gapless.overlay import chain
from gapless.protocol import BrokerPlace, Connected, Received, Send, Start, Suspected
from gapless.protocols.gapless.broker import GaplessBroker
from gapless.protocols.gapless.client_messages import (
    Attach,
    ClientAdvertise,
    ClientPublish,
    ClientSubscribe,
    Delivery,
    Stable,
)
from gapless.protocols.gapless.options import GaplessOptions
from gapless.registry import find_protocol
from gapless.runtime.codec import Codec
from tests.fuzz.changes import change_packed, changed_tree
from tests.fuzz.shapes import Shapes, pack
from tests.fuzz.target import Target, Unexpected

LIARS = ("ann", "bob")
BROKERS = ("b0", "b1")
STEPS_MAX = 5_000


class _Network:
    """Two brokers, and what waits between them."""

    def __init__(self, codec: Codec) -> None:
        self._codec = codec
        overlay = chain(2)
        self._nodes = {
            name: GaplessBroker(BrokerPlace(name, overlay, 1, 0), GaplessOptions()) for name in overlay.brokers
        }
        self._waiting: deque[tuple[str, Any]] = deque()
        self.heard: dict[str, list[Any]] = {}
        for name in self._nodes:
            self._waiting.append((name, Start()))
        for name, other in (BROKERS, BROKERS[::-1]):
            self._waiting.append((name, Connected(other)))
        self.settle()

    def say(self, client: str, broker: str, body: bytes) -> bool:
        """A client sends a batch; whether it was taken. A client that is refused is gone."""
        try:
            for message in self._codec.decode(memoryview(body), is_client=True):
                self._step(broker, Received(client, message))
                self.settle()
        except GaplessError:
            self._step(broker, Suspected(client))
            self.settle()
            return False
        return True

    def settle(self) -> None:
        """Until nothing is under way."""
        for _ in range(STEPS_MAX):
            if not self._waiting:
                return
            self._step(*self._waiting.popleft())
        raise Unexpected("the brokers do not come to rest")

    def _step(self, broker: str, item: Any) -> None:
        for effect in self._nodes[broker].step(item, 0):
            if isinstance(effect, Send):
                [_, body] = self._codec.frames([effect.message])
                [message] = self._codec.decode(memoryview(body), is_client=False)
                if effect.peer in self._nodes:
                    self._waiting.append((effect.peer, Received(broker, message)))
                else:
                    self.heard.setdefault(effect.peer, []).append(message)


class Sessions(Target):
    """An array of [liar, broker, batch]."""

    name = "sessions"
    about = "clients that lie to two brokers"

    def __init__(self) -> None:
        spec = find_protocol("gapless")
        self._codec = Codec(spec, 1 << 24)
        self._shapes = Shapes(*spec.client_messages)

    def draw(self, dice: Random) -> bytes:
        said: list[list[Any]] = []
        for liar in range(dice.choice((1, 1, 2))):
            broker = dice.randrange(2)
            said.append([liar, broker, [["Attach", 1, f"b{broker}/0", [], {}, [], 1, 0]]])
            for _ in range(dice.choice((1, 2, 5))):
                attempt = dice.choice((1, 1, 1, 1, 2))
                said.append([liar, broker, [self._call(dice, LIARS[liar], attempt)]])
        return pack(said)

    def _call(self, dice: Random, client: str, attempt: int) -> list[Any]:
        own, number = f"{client}/{dice.choice(('s1', 's2', 'a1'))}", dice.choice((1, 1, 2, 3))
        text = dice.choice(("TRUE", "x = 1", "price < 10", "x LIKE 'a%'"))
        event = [client, number, {"x": 1}, b""]
        likely: tuple[list[Any], ...] = (
            ["ClientSubscribe", attempt, own, text],
            ["ClientAdvertise", attempt, own, text, number],
            ["ClientPublish", attempt, [event]],
            ["ClientUnadvertise", attempt, own],
            ["ClientUnsubscribe", attempt, own],
            ["ClientGot", attempt, number],
            [
                *("Attach", attempt + 1, dice.choice(("b0/0", "b1/0"))),
                [["SubscriptionProgress", own, text, {"honest": number}, {}, False]],
                {f"{client}/a1": [text, number]},
                *([event], number, 0),
            ],
        )
        call: list[Any] = dice.choice(likely)
        return call if dice.random() < 0.8 else self._shapes.draw(dice)

    def change(self, data: bytes, dice: Random) -> bytes:
        try:
            said = msgspec.msgpack.decode(data, type=list[tuple[int, int, Any]])
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return self.draw(dice)
        if not said or dice.random() < 0.05:
            return change_packed(data, dice)
        place, kind = dice.randrange(len(said)), dice.randrange(8)
        liar, broker, batch = said[place]
        if kind == 0:
            said.insert(place, (liar, broker, [self._call(dice, LIARS[liar % 2], dice.choice((1, 2)))]))
        elif kind == 1:
            del said[place]
        elif kind == 2:
            other = dice.randrange(len(said))
            said[place], said[other] = said[other], said[place]
        elif kind == 3:
            said[place] = (liar, 1 - broker % 2, batch)
        else:
            said[place] = (liar, broker, changed_tree(batch, dice))
        try:
            return pack(said)
        except (TypeError, ValueError, OverflowError):
            return data

    def run(self, data: bytes) -> str:
        try:
            said = msgspec.msgpack.decode(data, type=list[tuple[int, int, msgspec.Raw]])
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return "nothing said"
        network = _Network(self._codec)
        _begin_honest(self._codec, network)
        taken = [network.say(LIARS[liar % 2], BROKERS[broker % 2], bytes(batch)) for liar, broker, batch in said[:30]]
        _check_honest(self._codec, network)
        return "all taken" if all(taken) else "some refused"


def _say(codec: Codec, network: _Network, client: str, broker: str, *messages: Any) -> None:
    [_, body] = codec.frames(messages)
    if not network.say(client, broker, body):
        raise Unexpected(f"{client} was refused: {messages!r}")


def _begin_honest(codec: Codec, network: _Network) -> None:
    for client, broker in (("honest", "b0"), ("reader", "b1")):
        _say(codec, network, client, broker, Attach(1, f"{broker}/0", [], {}, [], 1))
    _say(codec, network, "honest", "b0", ClientAdvertise(1, "honest/a1", "topic = 'honest'", 1))
    _say(codec, network, "reader", "b1", ClientSubscribe(1, "reader/s1", "topic = 'honest'"))


def _check_honest(codec: Codec, network: _Network) -> None:
    """An event of the honest one arrives, also for who subscribes now."""
    if not any(isinstance(message, Stable) for message in network.heard["honest"]):
        raise Unexpected("the honest advertisement does not become stable")
    _say(codec, network, "reader", "b1", ClientSubscribe(1, "reader/s2", "topic = 'honest' AND TRUE"))
    event = Event("honest", 1, {"topic": "honest"})
    _say(codec, network, "honest", "b0", ClientPublish(1, [event]))
    deliveries = [message for message in network.heard["reader"] if isinstance(message, Delivery)]
    got = {(each.id, name) for delivery in deliveries for each in delivery.events for name in delivery.subscriptions}
    if not {(event.id, "reader/s1"), (event.id, "reader/s2")} <= got:
        raise Unexpected(f"the honest event is not among {got!r}")
