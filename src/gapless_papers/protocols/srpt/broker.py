"""A broker of the `srpt` protocol: a node of the trees of all topics.

Every event of a topic goes to its root and from there down the tree, to every broker below which there is a subscriber.
All links are FIFO, so every broker gets the events of a topic in the root's order. That order is causal: a publisher
that answers an event has received it from the root, so the answer reaches the root after it.

A broker joins the tree at its parent, which first joins at its own parent if needed; each is notified when it has
joined, and gets all later events. So it starts somewhere in the root's order and misses nothing after. Before it is
notified it ignores events: they belong to its former membership. It leaves when neither a client nor a child needs it,
but not before it has been notified that it has joined: a `Joined` always answers the latest `Join`.

The only state is the neighbours in the trees: a broker on no path to a subscriber knows nothing of a topic.
"""

from collections.abc import Mapping, Sequence
from typing import Any, assert_never

from gapless.events import Event
from gapless.protocol import BrokerNode, BrokerPlace, Effect, Input, Received, Send
from gapless_papers.protocols.srpt.messages import FromBroker, Join, Joined, Leave, Pub, ToRoot
from gapless_papers.protocols.srpt.options import SrptOptions
from gapless_papers.protocols.srpt.tree import children, parent_of, root_of
from gapless_papers.protocols.topics.hypercube import cluster_of, mask_of, numbering
from gapless_papers.protocols.topics.messages import (
    ClientAdvertise,
    ClientEnd,
    ClientPublish,
    ClientSubscribe,
    Delivery,
    FromClient,
    Ready,
)  # fmt: skip

__all__ = ["SrptBroker"]


class _Place:
    """The broker's place in the tree of one topic."""

    __slots__ = ("children", "has_joined", "subscribers")

    def __init__(self, has_joined: bool) -> None:
        self.has_joined = has_joined
        self.children: dict[int, None] = {}
        """The children that have sent `Join`; they are notified when this broker has joined itself."""
        self.subscribers: dict[str, tuple[int, ...]] = {}
        """By client, the numbers of its subscriptions."""

    def is_needed(self) -> bool:
        return bool(self.children or self.subscribers)


class SrptBroker(BrokerNode):
    """A broker node."""

    def __init__(self, place: BrokerPlace, options: SrptOptions) -> None:
        self._names = place.overlay.brokers
        self._numbers = numbering(self._names)
        self._own = self._numbers[place.name]
        self._places: dict[str, _Place] = {}
        self._effects: list[Effect] = []
        for topic, members in options.initial_members.items():
            self._begin_with(topic, mask_of(self._names, members), options.first == "largest")

    def step(self, item: Input, now: int) -> Sequence[Effect]:
        """Process one input. Only messages matter, because this protocol supports no failures."""
        if not isinstance(item, Received):
            return ()
        self._effects = []
        sender = self._numbers.get(item.peer)
        if sender is not None:
            self._on_neighbour_message(sender, item.message)
        else:
            self._on_asked(item.peer, item.message)
        return self._effects

    def _on_neighbour_message(self, sender: int, message: FromBroker) -> None:
        match message:
            case Pub():
                self._on_pub(message)
            case ToRoot():
                self._pass_on(message.topic, message.event)
            case Join():
                self._on_join(sender, message.topic)
            case Joined():
                self._on_joined(message.topic)
            case Leave():
                self._on_leave(sender, message.topic)
            case _:
                assert_never(message)

    def _on_asked(self, client: str, call: FromClient) -> None:
        match call:
            case ClientPublish():
                self._on_client_publish(call)
            case ClientSubscribe():
                self._on_client_subscribe(client, call)
            case ClientAdvertise():
                self._send_client(client, Ready(call.number, {}))
            case ClientEnd():
                self._on_client_end(client, call)
            case _:
                assert_never(call)

    def state_size(self) -> Mapping[str, int]:
        """Return how much the broker keeps: the topics that it serves or forwards, and the children in their trees."""
        return {
            "topics": len(self._places),
            "children": sum(len(place.children) for place in self._places.values()),
        }

    def _begin_with(self, topic: str, members: int, largest_first: bool) -> None:
        dimension = cluster_of(0, len(self._names) - 1)
        root = root_of(topic, len(self._names))
        below = children(self._own, root, dimension, members, largest_first=largest_first)
        if below or members >> self._own & 1:
            place = self._places[topic] = _Place(has_joined=True)
            place.children = dict.fromkeys(below)

    def _send(self, broker: int, message: Any) -> None:
        self._effects.append(Send(self._names[broker], message))

    def _send_client(self, client: str, message: Any) -> None:
        self._effects.append(Send(client, message))

    # ---- events -------------------------------------------------------------------------------------------

    def _on_client_publish(self, call: ClientPublish) -> None:
        root = root_of(call.topic, len(self._names))
        if root == self._own:
            self._pass_on(call.topic, call.event)
        else:
            self._send(root, ToRoot(call.topic, call.event))

    def _on_pub(self, message: Pub) -> None:
        place = self._places.get(message.topic)
        if place is not None and place.has_joined:
            self._pass_on(message.topic, message.event)

    def _pass_on(self, topic: str, event: Event) -> None:
        place = self._places.get(topic)
        if place is None:
            return
        message = Pub(topic, event)
        for child in place.children:
            self._send(child, message)
        for client, numbers in place.subscribers.items():
            self._send_client(client, Delivery(event, numbers))

    # ---- the tree -----------------------------------------------------------------------------------------

    def _place(self, topic: str) -> _Place:
        """Return the broker's place in the topic's tree, which is created if needed."""
        place = self._places.get(topic)
        if place is None:
            root = root_of(topic, len(self._names))
            place = self._places[topic] = _Place(has_joined=root == self._own)
            if root != self._own:
                self._send(parent_of(self._own, root), Join(topic))
        return place

    def _on_join(self, child: int, topic: str) -> None:
        place = self._place(topic)
        place.children[child] = None
        if place.has_joined:
            self._send(child, Joined(topic))

    def _on_joined(self, topic: str) -> None:
        place = self._places[topic]
        place.has_joined = True
        for child in place.children:
            self._send(child, Joined(topic))
        for client, numbers in place.subscribers.items():
            for number in numbers:
                self._send_client(client, Ready(number, {}))
        self._leave_if_idle(topic, place)

    def _on_leave(self, child: int, topic: str) -> None:
        place = self._places[topic]
        del place.children[child]
        self._leave_if_idle(topic, place)

    def _leave_if_idle(self, topic: str, place: _Place) -> None:
        if place.has_joined and not place.is_needed():
            del self._places[topic]
            root = root_of(topic, len(self._names))
            if root != self._own:
                self._send(parent_of(self._own, root), Leave(topic))

    # ---- clients ------------------------------------------------------------------------------------------

    def _on_client_subscribe(self, client: str, call: ClientSubscribe) -> None:
        place = self._place(call.topic)
        place.subscribers[client] = (*place.subscribers.get(client, ()), call.number)
        if place.has_joined:
            self._send_client(client, Ready(call.number, {}))

    def _on_client_end(self, client: str, call: ClientEnd) -> None:
        place = self._places.get(call.topic)
        if place is None or call.number not in place.subscribers.get(client, ()):
            return
        rest = tuple(number for number in place.subscribers.pop(client) if number != call.number)
        if rest:
            place.subscribers[client] = rest
        self._leave_if_idle(call.topic, place)
