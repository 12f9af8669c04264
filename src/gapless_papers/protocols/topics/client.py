"""A client of topics, permanently attached to one broker; `vcube` and `srpt` share it.

It numbers its calls, and turns its broker's answers into effects. A client that subscribes to a topic or advertises it
can publish on it. The connection is FIFO, so the events delivered when a subscription ends are an exact ending cut:
everything of each publisher up to its last event, and nothing after. Events still in transit then are dropped.
"""

from collections import Counter
from collections.abc import Mapping
from typing import assert_never

from gapless.protocol import (
    Activated,
    Advertise,
    Advertised,
    ClientPlace,
    Confirmed,
    Ended,
    Publish,
    Subscribe,
    Unadvertise,
    Unsubscribe,
)  # fmt: skip
from gapless.protocols.parts.held import Held
from gapless_papers.protocols.parts.calling_client import CallingClient
from gapless_papers.protocols.topics.messages import (
    ClientAdvertise,
    ClientEnd,
    ClientPublish,
    ClientSubscribe,
    Delivery,
    Ready,
    Refused,
    Taken,
    ToClient,
)  # fmt: skip
from gapless_papers.protocols.topics.topic_filter import TopicError, topic_of

__all__ = ["TopicClient"]


class _Use(Held):
    """A subscription or an advertisement as the client keeps it."""

    def __init__(self, call: Subscribe | Advertise, name: str, topic: str) -> None:
        super().__init__(name)
        self.call = call
        self.topic = topic

    @property
    def is_subscription(self) -> bool:
        return isinstance(self.call, Subscribe)


class TopicClient(CallingClient):
    """A client node. If it has a window, publications are confirmed, and at most `window` are unconfirmed at a time."""

    def __init__(self, place: ClientPlace, window: int | None) -> None:
        super().__init__(place)
        self._window = window
        self._uses: dict[int, _Use] = {}
        self._topics: Counter[str] = Counter()
        self._unconfirmed: dict[int, None] = {}
        self._confirmed = 0

    @property
    def window(self) -> int:
        """Return how many publications can be unconfirmed."""
        return super().window if self._window is None else self._window

    def state_size(self) -> Mapping[str, int]:
        """Return the sizes of the client's tables."""
        subscriptions = sum(use.is_subscription for use in self._uses.values())
        return {
            "subscriptions": subscriptions,
            "advertisements": len(self._uses) - subscriptions,
            "unconfirmed": len(self._unconfirmed),
        }

    # ---- calls --------------------------------------------------------------------------------------------

    def _subscribe(self, call: Subscribe) -> None:
        self._begin(call, call.subscription, ClientSubscribe)

    def _advertise(self, call: Advertise) -> None:
        self._begin(call, call.advertisement, ClientAdvertise)

    def _begin(
        self, call: Subscribe | Advertise, name: str, message: type[ClientSubscribe] | type[ClientAdvertise]
    ) -> None:
        if self._find(name, type(call)) is not None:
            self._reject_taken(call, name)
            return
        try:
            topic = topic_of(call.filter)
        except TopicError as error:
            self._reject(call, str(error))
            return
        self._calls += 1
        self._uses[self._calls] = _Use(call, name, topic)
        self._topics[topic] += 1
        self._send(message(self._calls, topic))

    def _unsubscribe(self, call: Unsubscribe) -> None:
        number = self._find(call.subscription, Subscribe)
        if number is None:
            self._reject_unknown(call)
            return
        use = self._end(number)
        self._effects.append(Ended(use.name, use.last()))

    def _unadvertise(self, call: Unadvertise) -> None:
        number = self._find(call.advertisement, Advertise)
        if number is None:
            self._reject_unknown(call)
            return
        self._end(number)

    def _publish(self, call: Publish) -> None:
        topic = call.attributes.get("topic")
        if not isinstance(topic, str):
            self._reject(call, "the event has no topic; give it a string attribute 'topic'")
        elif not self._topics[topic]:
            self._reject(call, f"this client neither subscribes to topic {topic!r} nor advertises it; do so first")
        elif self._window is not None and len(self._unconfirmed) >= self._window:
            self._reject(call, f"{len(self._unconfirmed)} publications are not confirmed yet; try again later")
        else:
            self._send(ClientPublish(topic, self._next_event(call)))
            if self._window is not None:
                self._unconfirmed[self._seq] = None

    def _end(self, number: int) -> _Use:
        use = self._forget(number)
        self._send(ClientEnd(number, use.topic))
        return use

    def _forget(self, number: int) -> _Use:
        use = self._uses.pop(number)
        self._topics[use.topic] -= 1
        if not self._topics[use.topic]:
            del self._topics[use.topic]
        return use

    def _find(self, name: str, kind: type[Subscribe] | type[Advertise]) -> int | None:
        """Return the number of the subscription or advertisement with this name."""
        found = (number for number, use in self._uses.items() if use.name == name and isinstance(use.call, kind))
        return next(found, None)

    # ---- answers ------------------------------------------------------------------------------------------

    def _on_message(self, message: ToClient) -> None:
        match message:
            case Delivery():
                self._deliver(message.event, message.numbers, self._uses)
            case Taken():
                self._on_taken(message)
            case Ready():
                self._on_ready(message)
            case Refused():
                self._on_refused(message)
            case _:
                assert_never(message)

    def _on_ready(self, message: Ready) -> None:
        use = self._uses.get(message.number)
        if use is None:
            return
        if use.is_subscription:
            use.cuts = message.cuts
            self._fix(use.name, message.cuts)
            self._effects.append(Activated(use.name))
        else:
            self._effects.append(Advertised(use.name))

    def _on_refused(self, message: Refused) -> None:
        if message.number in self._uses:
            self._reject(self._forget(message.number).call, message.reason)

    def _on_taken(self, message: Taken) -> None:
        self._unconfirmed.pop(message.seq, None)
        confirmed = next(iter(self._unconfirmed), self._seq + 1) - 1
        if confirmed > self._confirmed:
            self._confirmed = confirmed
            self._effects.append(Confirmed(confirmed))
