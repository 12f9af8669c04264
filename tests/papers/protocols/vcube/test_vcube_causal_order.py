"""Causal order within a topic: the paper's example, omitted events, and any order of arrival."""

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from gapless.events import Event
from gapless_papers.protocols.vcube.causal_order import CausalOrder, stamp_of
from gapless_papers.protocols.vcube.messages import Pub
from gapless_papers.protocols.vcube.view import View


def pub(source: int, number: int, *causes: tuple[int, int]) -> Pub:
    barrier = frozenset(stamp_of(*cause) for cause in causes)
    return Pub(source, "t", number, Event(f"p{source}", number, {"topic": "t"}), barrier, b"")


def ids(messages: list[Pub]) -> list[tuple[int, int]]:
    return [(message.source, message.number) for message in messages]


def test_the_barriers_of_figure_2() -> None:
    p0, p1, p2 = CausalOrder(), CausalOrder(), CausalOrder()
    first = Pub(0, "t", 1, Event("p0", 1, {}), p0.publish(0, 1), b"")
    p1.receive(first)
    second = Pub(1, "t", 1, Event("p1", 1, {}), p1.publish(1, 1), b"")
    other = Pub(2, "t", 1, Event("p2", 1, {}), p2.publish(2, 1), b"")
    assert second.barrier == {stamp_of(0, 1)}
    p1.receive(other)
    assert p1.publish(1, 2) == {stamp_of(1, 1), stamp_of(2, 1)}


def test_an_effect_waits_for_its_cause() -> None:
    order = CausalOrder()
    assert order.receive(pub(1, 1, (0, 1))) == []
    assert order.waiting == 1
    assert ids(order.receive(pub(0, 1))) == [(0, 1), (1, 1)]
    assert order.waiting == 0


def test_a_causal_chain_is_delivered_when_its_first_event_arrives() -> None:
    order = CausalOrder()
    for number in range(5, 0, -1):
        assert order.receive(pub(number, 1, (number - 1, 1))) == []
    assert ids(order.receive(pub(0, 1))) == [(source, 1) for source in range(6)]


def test_messages_before_the_first_one_of_a_source_are_not_awaited() -> None:
    order = CausalOrder()
    assert order.receive(pub(1, 1, (0, 6))) == []
    assert ids(order.receive(pub(0, 7))) == [(0, 7), (1, 1)]


def test_events_delivered_by_others_are_omitted() -> None:
    order = CausalOrder()
    order.adopt({0: stamp_of(0, 6)})
    assert ids(order.receive(pub(1, 1, (0, 6)))) == [(1, 1)]
    assert order.receive(pub(0, 6)) == []
    assert order.receive(pub(1, 2, (0, 7))) == []
    assert ids(order.receive(pub(0, 7))) == [(0, 7), (1, 2)]


def test_older_news_changes_nothing() -> None:
    order = CausalOrder()
    order.adopt({0: stamp_of(0, 6)})
    order.adopt({0: stamp_of(0, 4)})
    assert order.settled == {0: stamp_of(0, 6)}


def test_the_barrier_holds_one_message_of_a_source() -> None:
    order = CausalOrder()
    order.receive(pub(0, 5))
    order.adopt({0: stamp_of(0, 8)})
    order.receive(pub(0, 9))
    order.receive(pub(1, 1))
    assert order.barrier_size == 2
    assert order.publish(2, 1) == {stamp_of(0, 9), stamp_of(1, 1)}
    assert order.barrier_size == 1


@given(st.integers(0, 2**32), st.integers(2, 6), st.integers(1, 40))
@settings(max_examples=60)
def test_causes_are_delivered_first_in_any_order_of_arrival(seed: int, brokers: int, count: int) -> None:
    """Brokers publish at random after having received some events of others; another broker receives all in random
    order.
    """
    rng = random.Random(seed)
    orders = [CausalOrder() for _ in range(brokers)]
    pasts: dict[tuple[int, int], set[tuple[int, int]]] = {}
    known: list[set[tuple[int, int]]] = [set() for _ in range(brokers)]
    inboxes: list[list[Pub]] = [[] for _ in range(brokers)]
    numbers = [0] * brokers
    messages = []
    for _ in range(count):
        reader = rng.randrange(brokers)
        rng.shuffle(inboxes[reader])
        inboxes[reader].sort(key=lambda message: message.number)  # a source is heard in order
        for message in inboxes[reader][: rng.randint(0, 5)]:
            inboxes[reader].remove(message)
            for delivered in orders[reader].receive(message):
                name = (delivered.source, delivered.number)
                assert pasts[name] <= known[reader]
                known[reader].add(name)
        source = rng.randrange(brokers)
        numbers[source] += 1
        name = (source, numbers[source])
        barrier = orders[source].publish(*name)
        pasts[name] = set(known[source])
        known[source].add(name)
        messages.append(Pub(source, "t", numbers[source], Event(f"p{source}", numbers[source], {}), barrier, b""))
        for other in range(brokers):
            if other != source:
                inboxes[other].append(messages[-1])
    listener = CausalOrder()
    received: set[tuple[int, int]] = set()
    queues = [[message for message in messages if message.source == source] for source in range(brokers)]
    while any(queues):
        queue = rng.choice([queue for queue in queues if queue])
        for delivered in listener.receive(queue.pop(0)):
            name = (delivered.source, delivered.number)
            assert pasts[name] <= received
            received.add(name)
    assert len(received) == count
    assert listener.waiting == 0


def test_the_latest_news_of_each_broker_counts() -> None:
    view = View(0b0001)
    view.update([(3, 5, True), (2, 1, True)])
    assert view.members == 0b1101
    view.update([(3, 9, False), (2, 1, False)])
    assert view.members == 0b0101
    view.update([(3, 5, True)])
    assert view.members == 0b0101
    view.update([(3, 10, True)])
    assert view.members == 0b1101
