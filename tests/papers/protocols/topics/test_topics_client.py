"""A client of topics: its own checks, its requests, and its handling of the answers."""

from collections.abc import Sequence
from typing import Any

import pytest

from gapless.events import Event
from gapless.protocol import (
    Activated,
    Advertise,
    Advertised,
    ClientPlace,
    Confirmed,
    CutFixed,
    Deliver,
    Effect,
    Ended,
    Publish,
    Published,
    Received,
    Rejected,
    Send,
    Start,
    Subscribe,
    Unadvertise,
    Unsubscribe,
)
from gapless_papers.protocols.topics.client import TopicClient
from gapless_papers.protocols.topics.messages import (
    ClientAdvertise,
    ClientEnd,
    ClientPublish,
    ClientSubscribe,
    Delivery,
    Ready,
    Refused,
    Taken,
)


class ClientBench:
    """A client, and its broker's end of the connection."""

    def __init__(self, window: int | None = 3) -> None:
        self.client = TopicClient(ClientPlace("ann", "b0", ("b0",)), window)

    def call(self, item: Any) -> Sequence[Effect]:
        return self.client.step(item, 0)

    def receive(self, message: Any) -> Sequence[Effect]:
        return self.client.step(Received("b0", message), 0)

    def subscribed(self) -> "ClientBench":
        self.call(Subscribe("s", "topic = 'news'"))
        self.receive(Ready(1, {"bob": 4}))
        return self


def news(seq: int, publisher: str = "bob") -> Event:
    return Event(publisher, seq, {"topic": "news"})


def test_a_topic_filter_can_be_written_in_either_order() -> None:
    bench = ClientBench()
    assert bench.call(Subscribe("s", "topic = 'news'")) == [Send("b0", ClientSubscribe(1, "news"))]
    assert bench.call(Advertise("a", "'it''s' = (topic)")) == [Send("b0", ClientAdvertise(2, "it's"))]


@pytest.mark.parametrize(
    "text",
    [
        "TRUE",
        "topic = 'a' OR topic = 'b'",
        "topic <> 'a'",
        "topic LIKE 'a%'",
        "other = 'a'",
        "topic = 1",
        "topic = other",
    ],
)
def test_any_other_filter_is_rejected_with_a_hint(text: str) -> None:
    call = Subscribe("s", text)
    reason = f"the filter {text!r} is not a topic, but this protocol supports only topics; write topic = 'name'"
    assert ClientBench().call(call) == [Rejected(call, reason)]


def test_unreadable_input_is_rejected_with_its_place() -> None:
    [rejected] = ClientBench().call(Advertise("a", "topic = "))
    assert isinstance(rejected, Rejected)
    assert "^" in rejected.reason


def test_a_name_is_unique_among_its_kind() -> None:
    bench = ClientBench()
    bench.call(Subscribe("x", "topic = 'news'"))
    assert isinstance(bench.call(Advertise("x", "topic = 'news'"))[0], Send)
    again = Subscribe("x", "topic = 'other'")
    assert bench.call(again) == [Rejected(again, "the name 'x' is in use; choose another name")]


def test_a_subscription_is_active_with_its_cuts_when_the_broker_is_a_member() -> None:
    bench = ClientBench()
    bench.call(Subscribe("s", "topic = 'news'"))
    assert bench.receive(Ready(1, {"bob": 4, "eve": 1})) == [
        CutFixed("s", "bob", 4),
        CutFixed("s", "eve", 1),
        Activated("s"),
    ]


def test_an_advertisement_is_stable_when_the_broker_is_a_member() -> None:
    bench = ClientBench()
    bench.call(Advertise("a", "topic = 'news'"))
    assert bench.receive(Ready(1, {})) == [Advertised("a")]


def test_an_event_is_delivered_for_each_of_its_subscriptions() -> None:
    bench = ClientBench().subscribed()
    bench.call(Subscribe("s2", "topic = 'news'"))
    assert bench.receive(Delivery(news(4), (1, 2))) == [Deliver(news(4), "s"), Deliver(news(4), "s2")]


def test_the_end_is_exact_and_what_comes_later_is_dropped() -> None:
    bench = ClientBench()
    bench.call(Subscribe("s", "topic = 'news'"))
    bench.receive(Ready(1, {"bob": 4, "eve": 1}))
    bench.receive(Delivery(news(4), (1,)))
    bench.receive(Delivery(news(9, "zoe"), (1,)))
    ended = bench.call(Unsubscribe("s"))
    assert ended == [Send("b0", ClientEnd(1, "news")), Ended("s", {"bob": 4, "eve": 0, "zoe": 9})]
    assert bench.receive(Delivery(news(5), (1,))) == []
    assert bench.receive(Ready(1, {})) == []


def test_ends_of_nothing_are_rejected() -> None:
    bench = ClientBench().subscribed()
    for call, what in (
        (Unsubscribe("x"), "subscription 'x' to end"),
        (Unadvertise("s"), "advertisement 's' to withdraw"),
    ):
        assert bench.call(call) == [Rejected(call, f"there is no {what}")]


@pytest.mark.parametrize("use", [Subscribe("u", "topic = 'news'"), Advertise("u", "topic = 'news'")])
def test_subscribers_and_advertisers_may_publish(use: Subscribe | Advertise) -> None:
    bench = ClientBench()
    bench.call(use)
    event = Event("ann", 1, {"topic": "news", "x": 1}, b"!")
    assert bench.call(Publish(event.attributes, b"!")) == [Published(event), Send("b0", ClientPublish("news", event))]


def test_publishing_without_a_subscription_or_advertisement_is_rejected() -> None:
    bench = ClientBench()
    call = Publish({"topic": "news"})
    reason = "this client neither subscribes to topic 'news' nor advertises it; do so first"
    assert bench.call(call) == [Rejected(call, reason)]
    bench.call(Advertise("a", "topic = 'news'"))
    bench.call(Unadvertise("a"))
    assert bench.call(call) == [Rejected(call, reason)]


@pytest.mark.parametrize("attributes", [{}, {"topic": 7}])
def test_an_event_needs_a_topic(attributes: dict[str, Any]) -> None:
    call = Publish(attributes)
    reason = "the event has no topic; give it a string attribute 'topic'"
    assert ClientBench().subscribed().call(call) == [Rejected(call, reason)]


def test_publications_are_confirmed_in_order_whatever_the_order_of_their_topics() -> None:
    bench = ClientBench().subscribed()
    for _ in range(3):
        bench.call(Publish({"topic": "news"}))
    assert bench.receive(Taken(2)) == []
    assert bench.receive(Taken(1)) == [Confirmed(2)]
    assert bench.receive(Taken(3)) == [Confirmed(3)]


def test_the_window_is_a_bound() -> None:
    bench = ClientBench(window=2).subscribed()
    call = Publish({"topic": "news"})
    bench.call(call)
    bench.call(call)
    assert bench.call(call) == [Rejected(call, "2 publications are not confirmed yet; try again later")]
    bench.receive(Taken(1))
    assert isinstance(bench.call(call)[0], Published)
    assert bench.client.state_size() == {"subscriptions": 1, "advertisements": 0, "unconfirmed": 2}


def test_without_a_window_nothing_is_counted() -> None:
    bench = ClientBench(window=None).subscribed()
    for _ in range(10):
        bench.call(Publish({"topic": "news"}))
    assert bench.client.state_size()["unconfirmed"] == 0


def test_calls_refused_by_the_broker_are_rejected_and_removed() -> None:
    bench = ClientBench()
    call = Subscribe("s", "topic = 'news'")
    bench.call(call)
    assert bench.receive(Refused(1, "too many")) == [Rejected(call, "too many")]
    assert bench.client.state_size()["subscriptions"] == 0
    assert bench.receive(Refused(1, "too many")) == []


def test_other_inputs_do_nothing() -> None:
    assert ClientBench().call(Start()) == []
