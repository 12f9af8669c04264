"""Real brokers of the protocol in virtual time, with clients that can send arbitrary messages.

Messages are encoded and decoded as over TCP.
"""

from __future__ import annotations

import heapq
from collections import deque
from itertools import count
from typing import Any

from gapless.overlay import Overlay, chain
from gapless.protocol import (
    BrokerPlace,
    Connected,
    Expel,
    Owners,
    Received,
    Send,
    SetTimer,
    Start,
    Suspected,
    TimerFired,
)
from gapless.protocols.gapless.broker import GaplessBroker
from gapless.protocols.gapless.client_messages import (
    Attach,
    ClientAdvertise,
    ClientPublish,
    ClientSubscribe,
    Delivery,
    Ready,
    Stable,
)
from gapless.protocols.gapless.options import GaplessOptions
from gapless.registry import find_protocol
from gapless.runtime.codec import Codec

__all__ = ["BEGIN_US", "SPEC", "Bench"]

SPEC = find_protocol("gapless")
BEGIN_US = 1_000_000_000
STEPS_MAX = 200_000


class Bench:
    """Some brokers, the messages in flight between them, and the messages that clients received."""

    def __init__(
        self,
        overlay: Overlay | int = 2,
        f: int = 0,
        options: GaplessOptions | None = None,
        owners: Owners | None = None,
    ) -> None:
        overlay = chain(overlay) if isinstance(overlay, int) else overlay
        self.codec = Codec(SPEC, 1 << 24)
        options = options or GaplessOptions()
        self.nodes = {
            name: GaplessBroker(BrokerPlace(name, overlay, f, owners=owners or Owners()), options)
            for name in overlay.brokers
        }
        self.now = BEGIN_US
        self.inboxes: dict[str, list[Any]] = {}
        """The received messages by client."""
        self.expelled: dict[str, str] = {}
        """The reason of each disconnected client."""
        self._waiting: deque[tuple[str, Any]] = deque((name, Start()) for name in self.nodes)
        self._waiting += [(one, Connected(other)) for one in self.nodes for other in self.nodes if one != other]
        self._timers: list[tuple[int, int, str, str]] = []
        self._current: dict[tuple[str, str], int] = {}
        self._order = count()
        self.pass_time(1.0)

    def say(self, client: str, broker: str, *messages: Any) -> None:
        """Send a client's batch, unless the client was disconnected."""
        pieces = self.codec.frames(messages)
        for body in pieces[1::2]:
            self.say_bytes(client, broker, bytes(body))

    def say_bytes(self, client: str, broker: str, body: bytes) -> None:
        for message in self.codec.decode(memoryview(body), is_client=True):
            if client not in self.expelled:
                self._step(broker, Received(client, message))
                self.settle()

    def settle(self) -> None:
        for _ in range(STEPS_MAX):
            if not self._waiting:
                return
            self._step(*self._waiting.popleft())
        raise AssertionError("the brokers do not come to rest")

    def pass_time(self, seconds: float) -> None:
        end = self.now + int(seconds * 1e6)
        self.settle()
        while self._timers and self._timers[0][0] <= end:
            due, number, broker, key = heapq.heappop(self._timers)
            if self._current.get((broker, key)) == number:
                self.now = max(self.now, due)
                del self._current[broker, key]
                self._step(broker, TimerFired(key))
                self.settle()
        self.now = end

    def crash(self, broker: str) -> None:
        del self.nodes[broker]
        self._waiting += [(name, Suspected(broker)) for name in self.nodes]
        self.settle()

    def _step(self, broker: str, item: Any) -> None:
        if broker not in self.nodes:
            return
        for effect in self.nodes[broker].step(item, self.now):
            if isinstance(effect, SetTimer):
                number = self._current[broker, effect.key] = next(self._order)
                heapq.heappush(self._timers, (self.now + effect.delay_us, number, broker, effect.key))
            elif isinstance(effect, Expel):
                self.expelled[effect.client] = effect.reason
            else:
                assert isinstance(effect, Send), effect
                [_, body] = self.codec.frames([effect.message])
                [message] = self.codec.decode(memoryview(body), is_client=False)
                if effect.peer in self.nodes:
                    self._waiting.append((effect.peer, Received(broker, message)))
                else:
                    self.inboxes.setdefault(effect.peer, []).append(message)

    # ---- clients ------------------------------------------------------------------------------------------

    def received_by(self, client: str, kind: type[Any]) -> list[Any]:
        """Return the messages of this kind that a client received."""
        return [message for message in self.inboxes.get(client, []) if isinstance(message, kind)]

    def attach(self, client: str, broker: str, session: int = 1, **more: Any) -> None:
        """Open a session as a correct client does."""
        fields: dict[str, Any] = {
            "incarnation": None, "resumes": 0, "received": 0, "largest": 0, "published": 0, "confirmed": 0, **more,
        }  # fmt: skip
        self.say(client, broker, Attach(session, **fields))
        for _ in range(50):
            if any(ready.session == session for ready in self.received_by(client, Ready)):
                return
            self.pass_time(0.1)
        raise AssertionError(f"{client} gets no session at {broker}")

    def got(self, client: str, subscription: str) -> list[str]:
        """Return the events delivered to a client's subscription."""
        return [
            event.id for delivery in self.received_by(client, Delivery) if subscription in delivery.subscriptions
            for event in delivery.events
        ]  # fmt: skip

    def begin_honest(self) -> None:
        """Start a publisher at the first broker and a subscriber at the last."""
        first, *_, last = self.nodes
        self.attach("honest", first)
        self.attach("reader", last)
        self.say("honest", first, ClientAdvertise(1, "honest/a1", "topic = 'honest'"))
        self.say("reader", last, ClientSubscribe(1, "reader/s1", "topic = 'honest'"))
        self.pass_time(1.0)

    def check_honest(self) -> None:
        """Check that an event of the correct client arrives, also at a new subscription, with a timestamp from a
        broker's clock, and that no clock is ahead of the time.
        """
        from gapless.event_runs import EventRun
        from gapless.events import Event

        first, *_, last = self.nodes
        assert self.received_by("honest", Stable), "the honest advertisement does not become stable"
        self.say("reader", last, ClientSubscribe(1, "reader/s2", "topic = 'honest' AND TRUE"))
        self.pass_time(1.0)
        event = Event("honest", 1, {"topic": "honest"})
        self.say("honest", first, ClientPublish(1, EventRun.of([event])))
        self.pass_time(1.0)
        assert not {"honest", "reader"} & self.expelled.keys(), self.expelled
        for subscription in ("reader/s1", "reader/s2"):
            assert event.id in self.got("reader", subscription), subscription
        for name, node in self.nodes.items():
            assert node.state.clock.last <= self.now + 1_000, f"the clock of {name} was moved"
