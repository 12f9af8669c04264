"""The tree of a topic, and how brokers grow and prune it."""

from collections import deque
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from gapless.events import Event
from gapless.overlay import chain
from gapless.protocol import BrokerPlace, Received, Send, Start
from gapless_papers.protocols.srpt.broker import SrptBroker
from gapless_papers.protocols.srpt.options import SrptOptions
from gapless_papers.protocols.srpt.tree import children, parent_of, root_of
from gapless_papers.protocols.topics.hypercube import branches, cluster_of
from gapless_papers.protocols.topics.messages import (
    ClientAdvertise,
    ClientEnd,
    ClientPublish,
    ClientSubscribe,
    Delivery,
    Ready,
)

ROOT_OF_T = root_of("t", 8)


@given(st.integers(0, 63), st.sets(st.integers(0, 63)))
def test_paths_down_the_tree_are_the_paths_up(root: int, members: set[int]) -> None:
    mask = sum(1 << member for member in members)
    reached = [root]
    for node in reached:
        below = children(node, root, 6, mask)
        assert all(parent_of(child, root) == node for child in below)
        reached += below
    wanted = {root}
    for node in members:
        while node not in wanted:
            wanted.add(node)
            node = parent_of(node, root)
    assert set(reached) == wanted


def test_it_is_the_broadcast_tree_of_the_root() -> None:
    everyone = (1 << 64) - 1
    for root in (0, 21):
        way = [(root, 6)]
        for node, height in way:
            below = [k for k, _ in branches(node, height, (1 << (1 << height)) - 1)]
            assert below == children(node, root, 6, everyone)
            way += [(k, cluster_of(node, k) - 1) for k in below]
        assert len(way) == 64


def test_topics_have_roots_of_their_own() -> None:
    roots = [root_of(f"topic-{number}", 64) for number in range(1000)]
    assert set(roots) == set(range(64))
    assert root_of("topic-7", 64) == roots[7]


class Net:
    """Eight brokers, and FIFO links whose deliveries the test controls. Client `ck` is attached to `bk`."""

    def __init__(self, **options: Any) -> None:
        overlay = chain(8)
        chosen = SrptOptions(**options)
        self.nodes = {name: SrptBroker(BrokerPlace(name, overlay, 0), chosen) for name in overlay.brokers}
        self.links: dict[tuple[str, str], deque[Any]] = {}
        self.sent: list[str] = []
        self.clients: dict[str, list[Any]] = {f"c{number}": [] for number in range(8)}
        self._seq = 0

    def step(self, broker: str, peer: str, message: Any) -> None:
        for effect in self.nodes[broker].step(Received(peer, message), 0):
            assert isinstance(effect, Send)
            if effect.peer in self.nodes:
                self.sent.append(type(effect.message).__name__)
                self.links.setdefault((broker, effect.peer), deque()).append(effect.message)
            else:
                self.clients[effect.peer].append(effect.message)

    def settle(self, slow: tuple[int, int] | None = None) -> None:
        kept = slow and (f"b{slow[0]}", f"b{slow[1]}")
        while ready := [link for link, queue in self.links.items() if queue and link != kept]:
            for sender, receiver in ready:
                self.step(receiver, sender, self.links[sender, receiver].popleft())

    def call(self, number: int, message: Any) -> None:
        self.step(f"b{number}", f"c{number}", message)

    def publish(self, number: int) -> None:
        self._seq += 1
        self.call(number, ClientPublish("t", Event(f"c{number}", self._seq, {"topic": "t"})))

    def got(self, number: int) -> list[int]:
        return [message.event.seq for message in self.clients[f"c{number}"] if isinstance(message, Delivery)]

    def places(self) -> int:
        return sum(node.state_size()["topics"] for node in self.nodes.values())


FAR = ROOT_OF_T ^ 7
"""The node three hops from the root."""


def test_a_subscription_joins_hop_by_hop_and_is_ready_when_the_path_is() -> None:
    net = Net()
    net.call(FAR, ClientSubscribe(1, "t"))
    assert net.clients[f"c{FAR}"] == []
    net.settle()
    assert net.clients[f"c{FAR}"] == [Ready(1, {})]
    assert net.sent == ["Join"] * 3 + ["Joined"] * 3
    assert net.places() == 4


def test_the_next_one_joins_where_the_tree_is_already() -> None:
    net = Net()
    net.call(FAR, ClientSubscribe(1, "t"))
    net.settle()
    net.sent.clear()
    near = parent_of(FAR, ROOT_OF_T)
    net.call(near, ClientSubscribe(1, "t"))
    net.settle()
    assert net.sent == []
    assert net.clients[f"c{near}"] == [Ready(1, {})]


def test_everything_goes_through_the_root_and_forwarders_deliver_nothing() -> None:
    net = Net()
    net.call(FAR, ClientSubscribe(1, "t"))
    net.settle()
    net.sent.clear()
    publisher = ROOT_OF_T ^ 4
    net.call(publisher, ClientAdvertise(1, "t"))
    net.publish(publisher)
    net.publish(ROOT_OF_T)
    net.settle()
    assert net.got(FAR) == [2, 1]  # the root's own event has no way to go to it
    assert net.sent.count("ToRoot") == 1
    assert net.sent.count("Pub") == 6
    assert net.clients[f"c{publisher}"] == [Ready(1, {})]


def test_events_of_a_topic_without_subscribers_end_at_the_root() -> None:
    net = Net()
    net.publish(FAR)
    net.settle()
    assert net.sent == ["ToRoot"]
    assert net.places() == 0


def test_the_tree_is_pruned_up_to_where_it_is_needed() -> None:
    net = Net()
    near = parent_of(FAR, ROOT_OF_T)
    for number in (FAR, near):
        net.call(number, ClientSubscribe(1, "t"))
    net.settle()
    net.call(FAR, ClientEnd(1, "t"))
    net.settle()
    assert net.places() == 3
    net.call(near, ClientEnd(1, "t"))
    net.settle()
    assert net.places() == 0


def test_a_broker_that_unsubscribes_while_joining_leaves_afterwards() -> None:
    net = Net()
    net.call(FAR, ClientSubscribe(1, "t"))
    net.call(FAR, ClientEnd(1, "t"))
    net.settle()
    assert net.clients[f"c{FAR}"] == []
    assert net.places() == 0


def test_events_for_a_former_membership_are_ignored() -> None:
    """Event 1 is in transit to FAR when that leaves and joins again; event 2 passes in between."""
    net = Net()
    parent = parent_of(FAR, ROOT_OF_T)
    net.call(parent, ClientSubscribe(1, "t"))
    net.call(FAR, ClientSubscribe(1, "t"))
    net.settle()
    net.publish(ROOT_OF_T)
    net.settle(slow=(parent, FAR))
    net.call(FAR, ClientEnd(1, "t"))
    net.settle(slow=(parent, FAR))
    net.publish(ROOT_OF_T)
    net.settle(slow=(parent, FAR))
    net.call(FAR, ClientSubscribe(2, "t"))
    net.settle(slow=(parent, FAR))
    net.publish(ROOT_OF_T)
    net.settle()
    assert net.got(parent) == [1, 2, 3]
    assert net.got(FAR) == [3]


def test_one_of_two_subscriptions_of_a_client_can_end() -> None:
    net = Net()
    for number in (1, 2):
        net.call(FAR, ClientSubscribe(number, "t"))
    net.settle()
    net.call(FAR, ClientEnd(1, "t"))
    net.call(FAR, ClientEnd(9, "t"))
    net.publish(FAR)
    net.settle()
    deliveries = [message for message in net.clients[f"c{FAR}"] if isinstance(message, Delivery)]
    assert [message.numbers for message in deliveries] == [(2,)]


def test_the_tree_may_be_there_from_the_start() -> None:
    net = Net(initial_members={"t": (f"b{FAR}",)})
    assert net.places() == 4
    net.call(FAR, ClientSubscribe(1, "t"))
    net.publish(ROOT_OF_T)
    net.settle()
    assert net.got(FAR) == [1]
    assert net.sent == ["Pub"] * 3


def test_only_messages_change_the_state() -> None:
    assert Net().nodes["b0"].step(Start(), 0) == ()
