"""Publishers that wait, leave and return; subscriptions that follow them; messages to clients."""

from typing import Any

from gapless.events import Event
from gapless.overlay import Overlay
from gapless.protocol import BrokerPlace, Connected, Received, Send, Start
from gapless_papers.protocols.locaps.broker import LocapsBroker
from gapless_papers.protocols.locaps.messages import (
    AddAdvertisement,
    AddSubscription,
    AdvertisementStable,
    ClientAdvertise,
    ClientPublish,
    ClientSubscribe,
    ClientUnadvertise,
    ClientUnsubscribe,
    Delivery,
    Marker,
    PartialMarker,
    Publication,
    RemoveAdvertisement,
    RemoveSubscription,
    Stable,
    Started,
)
from gapless_papers.protocols.locaps.options import LocapsOptions

TREE = Overlay(["u", "v", "w"], [("u", "v"), ("v", "w")])

Sent = list[tuple[str, Any]]


class Bench:
    """The broker v between u and w, and the messages that it sends."""

    def __init__(self, f: int = 0, **options: Any) -> None:
        self.node = LocapsBroker(BrokerPlace("v", TREE, f), LocapsOptions(**options))

    def feed(self, peer: str, message: Any) -> Sent:
        effects = self.node.step(Received(peer, message), 0)
        return [(effect.peer, effect.message) for effect in effects if isinstance(effect, Send)]

    def stable_publisher(self) -> None:
        self.feed("p", ClientAdvertise(1, "TRUE"))
        self.feed("u", AdvertisementStable("p/1"))
        self.feed("w", AdvertisementStable("p/1"))


def event(seq: int, **attributes: str | int) -> Event:
    return Event("p", seq, dict(attributes))


def test_events_wait_until_everyone_has_answered_the_advertisement() -> None:
    bench = Bench()
    ad = AddAdvertisement("p/1", "p", "TRUE")
    assert bench.feed("p", ClientAdvertise(1, "TRUE")) == [("u", ad), ("w", ad)]
    assert bench.feed("p", ClientPublish(event(1))) == []
    bench.feed("u", AddSubscription("s/1", "TRUE"))
    assert bench.feed("u", AdvertisementStable("p/1")) == []
    assert bench.node.state_size()["buffered"] == 1
    assert bench.feed("w", AdvertisementStable("p/1")) == [("p", Stable(1)), ("u", Publication(event(1)))]
    assert bench.node.state_size()["buffered"] == 0


def test_without_the_repair_they_do_not_wait() -> None:
    bench = Bench(switched_off=("late-publishers",))
    bench.feed("p", ClientAdvertise(1, "TRUE"))
    bench.feed("u", AddSubscription("s/1", "TRUE"))
    assert bench.feed("p", ClientPublish(event(1))) == [("u", Publication(event(1)))]


def test_an_event_that_another_stable_advertisement_allows_leaves_but_never_overtakes() -> None:
    bench = Bench()
    bench.stable_publisher()
    bench.feed("u", AddSubscription("s/1", "TRUE"))
    assert bench.feed("p", ClientPublish(event(1))) == [("u", Publication(event(1)))]
    bench.feed("q", ClientAdvertise(1, "x = 1"))
    bench.feed("q", ClientAdvertise(2, "x = 2"))
    late, early = Event("q", 1, {"x": 1}), Event("q", 2, {"x": 2})
    bench.feed("q", ClientPublish(late))
    for peer in ("u", "w"):
        bench.feed(peer, AdvertisementStable("q/2"))
    assert bench.feed("q", ClientPublish(early)) == []
    bench.feed("u", AdvertisementStable("q/1"))
    assert bench.feed("w", AdvertisementStable("q/1"))[1:] == [("u", Publication(late)), ("u", Publication(early))]


def test_an_advertisement_is_withdrawn_after_the_events_that_rely_on_it() -> None:
    bench = Bench()
    bench.feed("p", ClientAdvertise(1, "TRUE"))
    bench.feed("u", AddSubscription("s/1", "TRUE"))
    bench.feed("p", ClientPublish(event(1)))
    assert bench.feed("p", ClientUnadvertise(1)) == []
    bench.feed("u", AdvertisementStable("p/1"))
    gone = RemoveAdvertisement("p/1")
    assert bench.feed("w", AdvertisementStable("p/1"))[1:] == [("u", Publication(event(1))), ("u", gone), ("w", gone)]


def test_a_marker_counts_from_the_next_event_that_leaves_also_after_a_return() -> None:
    bench = Bench()
    bench.stable_publisher()
    for seq in (1, 2, 3):
        bench.feed("p", ClientPublish(event(seq)))
    bench.feed("p", ClientUnadvertise(1))
    bench.feed("p", ClientAdvertise(2, "TRUE"))
    bench.feed("p", ClientPublish(event(4)))
    assert bench.feed("u", AddSubscription("s/1", "TRUE")) == [("u", Marker("s/1", {"p": 4}))]


def test_an_advertisement_is_answered_after_the_subscriptions_that_may_match() -> None:
    bench = Bench()
    bench.feed("u", AddSubscription("s/1", "x = 1"))
    bench.feed("u", AddSubscription("s/2", "x = 2"))
    bench.feed("w", AddAdvertisement("q/1", "q", "x = 1"))
    assert bench.feed("u", AdvertisementStable("q/1")) == [("w", AdvertisementStable("q/1"))]
    sent = Bench()
    sent.feed("u", AddSubscription("s/1", "x = 1"))
    assert sent.feed("w", AddAdvertisement("q/1", "q", "x = 1")) == [
        ("u", AddAdvertisement("q/1", "q", "x = 1")),
        ("w", AddSubscription("s/1", "x = 1")),
    ]


def test_a_subscription_is_removed_from_a_link_with_the_last_publisher_behind_it() -> None:
    bench = Bench()
    for number in (1, 2):
        bench.feed("w", AddAdvertisement(f"q/{number}", "q", "TRUE"))
    bench.feed("u", AddSubscription("s/1", "TRUE"))
    assert bench.feed("w", RemoveAdvertisement("q/1")) == [("u", RemoveAdvertisement("q/1"))]
    assert bench.feed("w", RemoveAdvertisement("q/2")) == [
        ("u", RemoveAdvertisement("q/2")),
        ("w", RemoveSubscription("s/1")),
    ]


def test_a_subscription_without_publishers_is_active_at_once_or_when_the_last_one_left() -> None:
    bench = Bench()
    assert bench.feed("c", ClientSubscribe(1, "TRUE")) == [("c", Started(1, {}))]
    bench.feed("w", AddAdvertisement("q/1", "q", "TRUE"))
    assert bench.feed("c", ClientSubscribe(2, "TRUE")) == [("w", AddSubscription("c/2", "TRUE"))]
    assert ("c", Started(2, {})) in bench.feed("w", RemoveAdvertisement("q/1"))


def test_a_publisher_at_the_same_broker_answers_at_once() -> None:
    bench = Bench()
    bench.stable_publisher()
    assert bench.feed("c", ClientSubscribe(1, "TRUE")) == [("c", Started(1, {"p": 1}))]
    assert bench.feed("p", ClientPublish(event(1))) == [("c", Delivery(event(1), [1]))]


def test_clients_get_an_event_once_for_all_subscriptions_that_have_started() -> None:
    bench = Bench(coverage=False)
    bench.feed("w", AddAdvertisement("p/1", "p", "TRUE"))
    for number in (1, 2, 3):
        bench.feed("c", ClientSubscribe(number, "TRUE"))
    for number in (1, 3):
        bench.feed("w", Marker(f"c/{number}", {"p": 1}))
    assert bench.feed("w", Publication(event(1))) == [("c", Delivery(event(1), [1, 3]))]
    assert bench.feed("c", ClientUnsubscribe(1)) == [("w", RemoveSubscription("c/1"))]
    assert bench.feed("w", Publication(event(2))) == [("c", Delivery(event(2), [3]))]


def test_kept_events_are_delivered_after_the_start() -> None:
    bench = Bench(f=1)
    bench.feed("w", AddAdvertisement("p/1", "p", "TRUE"))
    bench.feed("c", ClientSubscribe(1, "TRUE"))
    bench.feed("w", PartialMarker("c/1", "w", "w", {"p": 1}))
    bench.feed("w", Publication(event(1)))
    bench.feed("w", Publication(event(2)))
    assert bench.node.state_size() == {"subscriptions": 1, "advertisements": 1, "buffered": 2}
    assert bench.feed("w", PartialMarker("c/1", "w", "x", {"p": 2})) == [
        ("c", Started(1, {"p": 2})),
        ("c", Delivery(event(2), [1])),
    ]


def test_a_marker_for_a_removed_subscription_is_dropped() -> None:
    bench = Bench()
    bench.feed("w", AddAdvertisement("p/1", "p", "TRUE"))
    bench.feed("c", ClientSubscribe(1, "TRUE"))
    bench.feed("c", ClientUnsubscribe(1))
    assert bench.feed("w", Marker("c/1", {"p": 1})) == []
    assert bench.feed("w", PartialMarker("c/1", "w", "w", {"p": 1})) == []


def test_an_answer_to_a_withdrawn_advertisement_is_dropped() -> None:
    bench = Bench()
    bench.feed("p", ClientAdvertise(1, "TRUE"))
    bench.feed("p", ClientUnadvertise(1))
    assert bench.feed("u", AdvertisementStable("p/1")) == []


def test_only_messages_matter() -> None:
    bench = Bench()
    assert bench.node.step(Start(), 0) == ()
    assert bench.node.step(Connected("u"), 0) == ()
