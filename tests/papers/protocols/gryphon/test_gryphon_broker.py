"""One broker between two others: where events flood, where subscriptions start, and which peers must wait."""

from typing import Any

import msgspec
import pytest

from gapless.events import Event
from gapless.overlay import Overlay
from gapless.protocol import BrokerPlace, Connected, Received, Send, Start, Suspected, TimerFired, Trusted
from gapless_papers.protocols.gryphon.broker import GryphonBroker
from gapless_papers.protocols.gryphon.messages import (
    Acknowledgement,
    AddAdvertisement,
    AddSubscription,
    Answered,
    ClientAdvertise,
    ClientPublish,
    ClientSubscribe,
    ClientUnadvertise,
    ClientUnsubscribe,
    Delivery,
    Missing,
    Offered,
    Packet,
    PathStable,
    Publication,
    RemoveAdvertisement,
    RemoveSubscription,
    Started,
)
from gapless_papers.protocols.gryphon.options import GryphonOptions

TREE = Overlay(["u", "v", "w"], [("u", "v"), ("v", "w")])

Said = list[tuple[str, Any]]


class Bench:
    """The broker v between u and w, and the messages that it sends."""

    def __init__(self, **options: Any) -> None:
        self.node = GryphonBroker(BrokerPlace("v", TREE, 0), GryphonOptions(**options))
        self.numbers: dict[str, int] = {}

    def give(self, item: Any) -> Said:
        effects = self.node.step(item, 0)
        return [(effect.peer, effect.message) for effect in effects if isinstance(effect, Send)]

    def feed(self, peer: str, body: Any, received: int = 0) -> Said:
        """Deliver the next packet of a peer; return the broker's messages, without their packets."""
        self.numbers[peer] = self.numbers.get(peer, 0) + 1
        said = self.give(Received(peer, Packet(self.numbers[peer], received, body)))
        return [(to, message.body) for to, message in said if isinstance(message, Packet)]


def advertisement(number: int = 1, publisher: str = "p", text: str = "TRUE", since: int = 1) -> AddAdvertisement:
    return AddAdvertisement(f"{publisher}/{number}", publisher, text, since)


def event(seq: int, publisher: str = "p", **attributes: str | int) -> Event:
    return Event(publisher, seq, dict(attributes))


# ---- flooding


def test_events_flood_over_a_link_until_it_has_answered() -> None:
    bench = Bench()
    assert bench.feed("p", ClientAdvertise(1, "TRUE")) == [("u", advertisement()), ("w", advertisement())]
    one = Publication(event(1))
    assert bench.feed("p", ClientPublish(event(1))) == [("u", one), ("w", one)]
    assert bench.feed("u", Answered("p/1")) == []
    two = Publication(event(2))
    assert bench.feed("p", ClientPublish(event(2))) == [("w", two)]
    assert bench.feed("w", Answered("p/1")) == [("p", Offered(1))]
    assert bench.feed("p", ClientPublish(event(3))) == []


def test_events_flood_on_at_brokers_on_the_path_but_not_back() -> None:
    bench = Bench()
    assert bench.feed("u", advertisement()) == [("w", advertisement())]
    assert bench.feed("u", Publication(event(1))) == [("w", Publication(event(1)))]
    assert bench.feed("w", Answered("p/1")) == [("u", Answered("p/1"))]
    assert bench.feed("u", Publication(event(2))) == []


def test_one_answered_advertisement_that_allows_the_event_suffices() -> None:
    bench = Bench()
    bench.feed("u", advertisement(1, text="x = 1"))
    bench.feed("w", Answered("p/1"))
    bench.feed("u", advertisement(2, since=5))
    assert bench.feed("u", Publication(event(5, x=1))) == []
    assert bench.feed("u", Publication(event(6, x=2))) == [("w", Publication(event(6, x=2)))]


def test_no_node_receives_a_flooded_event_twice() -> None:
    bench = Bench()
    bench.feed("u", advertisement())
    bench.feed("w", AddSubscription("s/1", "TRUE"))
    assert bench.feed("u", Publication(event(1))) == [("w", Publication(event(1)))]


def test_without_flooding_events_keep_to_what_is_known() -> None:
    bench = Bench(switched_off=("flooding",))
    bench.feed("u", advertisement())
    assert bench.feed("u", Publication(event(1))) == []


# ---- starts


def test_a_subscription_starts_when_the_publisher_has_answered() -> None:
    bench = Bench()
    bench.feed("w", advertisement())
    bench.feed("u", Answered("p/1"))
    assert bench.feed("c", ClientSubscribe(1, "TRUE")) == [("w", AddSubscription("c/1", "TRUE"))]
    assert bench.feed("w", Publication(event(6))) == []
    assert bench.feed("w", PathStable("c/1", {"p": 7})) == [("c", Started(1, {"p": 7}))]
    assert bench.feed("w", Publication(event(7))) == [("c", Delivery(event(7), (1,)))]


def test_a_covered_subscription_is_not_faster() -> None:
    bench = Bench()
    bench.feed("w", advertisement())
    bench.feed("c", ClientSubscribe(1, "TRUE"))
    bench.feed("w", PathStable("c/1", {"p": 1}))
    assert bench.feed("c", ClientSubscribe(2, "x = 1")) == [("w", AddSubscription("c/2", "x = 1"))]


def test_the_publishers_broker_answers_with_the_next_number() -> None:
    bench = Bench()
    bench.feed("p", ClientAdvertise(1, "TRUE"))
    bench.feed("p", ClientPublish(event(1)))
    assert bench.feed("u", AddSubscription("s/1", "TRUE")) == [("u", PathStable("s/1", {"p": 2}))]
    assert bench.feed("c", ClientSubscribe(1, "TRUE")) == [("c", Started(1, {"p": 2}))]
    assert bench.feed("w", PathStable("c/1", {"p": 5})) == []


def test_answers_are_passed_on_towards_the_subscriber() -> None:
    bench = Bench()
    bench.feed("w", advertisement())
    bench.feed("u", AddSubscription("s/1", "TRUE"))
    assert bench.feed("w", PathStable("s/1", {"p": 3})) == [("u", PathStable("s/1", {"p": 3}))]
    bench.feed("u", RemoveSubscription("s/1"))
    assert bench.feed("w", PathStable("s/1", {"p": 3})) == []


def test_a_subscription_that_was_there_first_starts_with_the_first_event() -> None:
    bench = Bench()
    assert bench.feed("c", ClientSubscribe(1, "x = 1")) == [("c", Started(1, {}))]
    said = bench.feed("w", advertisement(since=4))
    assert said[0] == ("c", Started(1, {"p": 4}))
    assert set(said[1:]) == {("u", advertisement(since=4)), ("w", AddSubscription("c/1", "x = 1"))}
    assert bench.feed("w", Publication(event(4, x=1))) == [
        ("u", Publication(event(4, x=1))),
        ("c", Delivery(event(4, x=1), (1,))),
    ]
    assert bench.feed("w", PathStable("c/1", {"p": 5})) == []


def test_an_advertisement_does_not_start_a_subscription_waiting_for_its_publisher() -> None:
    bench = Bench()
    bench.feed("w", advertisement(1))
    bench.feed("c", ClientSubscribe(1, "x = 1"))
    assert ("c", Started(1, {"p": 9})) not in bench.feed("w", advertisement(2, text="x = 1", since=9))
    assert bench.feed("w", PathStable("c/1", {"p": 8})) == [("c", Started(1, {"p": 8}))]


def test_a_start_stays_when_the_publisher_leaves_and_returns() -> None:
    bench = Bench()
    bench.feed("w", advertisement(1))
    bench.feed("c", ClientSubscribe(1, "TRUE"))
    bench.feed("w", PathStable("c/1", {"p": 2}))
    assert ("w", RemoveSubscription("c/1")) in bench.feed("w", RemoveAdvertisement("p/1"))
    again = bench.feed("w", advertisement(2, since=7))
    assert [to for to, _ in again] == ["u", "w"]
    assert ("c", Delivery(event(7), (1,))) in bench.feed("w", Publication(event(7)))


def test_a_subscription_without_publishers_left_is_active() -> None:
    bench = Bench()
    bench.feed("w", advertisement())
    bench.feed("c", ClientSubscribe(1, "TRUE"))
    assert ("c", Started(1, {})) in bench.feed("w", RemoveAdvertisement("p/1"))


def test_an_advertisement_is_answered_after_the_subscriptions_that_may_match() -> None:
    bench = Bench()
    bench.feed("u", AddSubscription("s/1", "x = 1"))
    bench.feed("u", AddSubscription("s/2", "x = 2"))
    said = bench.feed("w", advertisement(text="x = 1"))
    assert said == [("u", advertisement(text="x = 1")), ("w", AddSubscription("s/1", "x = 1"))]
    assert bench.feed("u", Answered("p/1")) == [("w", Answered("p/1"))]


def test_ended_subscriptions_are_removed_from_their_path_and_not_answered() -> None:
    bench = Bench()
    bench.feed("w", advertisement())
    bench.feed("c", ClientSubscribe(1, "TRUE"))
    assert bench.feed("c", ClientUnsubscribe(1)) == [("w", RemoveSubscription("c/1"))]
    bench.feed("q", ClientAdvertise(1, "TRUE"))
    gone = RemoveAdvertisement("q/1")
    assert bench.feed("q", ClientUnadvertise(1)) == [("u", gone), ("w", gone)]
    assert bench.feed("u", Answered("q/1")) == []
    assert bench.node.state_size()["advertisements"] == 1
    assert bench.node.state_size()["subscriptions"] == 0


# ---- links


def test_a_new_connection_and_a_request_make_the_sender_repeat_kept_packets() -> None:
    bench = Bench()
    bench.feed("w", advertisement())
    kept = Packet(1, 0, advertisement())
    assert bench.give(Connected("u")) == [("u", kept)]
    assert bench.give(Received("u", Missing(1, 1))) == [("u", kept)]
    assert bench.give(TimerFired("repeat/u")) == [("u", kept)]
    assert bench.node.state_size()["unacknowledged"] == 1
    bench.give(Received("u", Acknowledgement(1)))
    assert bench.node.state_size()["unacknowledged"] == 0


def test_other_inputs_have_no_effect() -> None:
    bench = Bench()
    for item in (Start(), Connected("c"), Suspected("u"), Trusted("u")):
        assert bench.give(item) == []


def test_while_a_link_is_full_only_its_own_peer_is_read() -> None:
    bench = Bench(buffer=2)
    bench.feed("w", AddSubscription("s/1", "TRUE"))
    bench.feed("u", advertisement())
    assert bench.feed("u", Publication(event(1))) == [("w", Publication(event(1)))]
    for _ in range(2):
        assert bench.give(Received("u", Packet(3, 0, Publication(event(2))))) == []
    assert bench.feed("w", AddSubscription("s/2", "TRUE"))
    bench.give(Received("w", Acknowledgement(2)))
    again = bench.give(Received("u", Packet(3, 0, Publication(event(2)))))
    assert [(to, message.body) for to, message in again] == [("w", Publication(event(2)))]


@pytest.mark.parametrize(
    "options", [{"buffer": 0}, {"acknowledge_ms": 0}, {"repeat_ms": -1}, {"switched_off": ["floods"]}, {"buffers": 1}]
)
def test_bad_options_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(options, GryphonOptions)
