r"""Which broker answers for which publishers, and with which number; the test plays the other brokers.

The broker is v. S comes from u, the covering X from y, publishers are behind w (and z):

    u - v - w
       / \
      y   z
"""

from typing import Any

import pytest

from gapless.events import Event
from gapless.overlay import Overlay
from gapless.protocol import BrokerPlace, Received, Send
from gapless_papers.protocols.locaps.broker import LocapsBroker
from gapless_papers.protocols.locaps.messages import (
    AddAdvertisement,
    AddSubscription,
    AskPartial,
    ClientAdvertise,
    Marker,
    PartialMarker,
    Publication,
    RemoveAdvertisement,
    RemoveSubscription,
)
from gapless_papers.protocols.locaps.options import LocapsOptions

TREE = Overlay(["u", "v", "w", "y", "z"], [("u", "v"), ("v", "w"), ("v", "y"), ("v", "z")])

Sent = list[tuple[str, Any]]


class Bench:
    """A broker, and the messages that it sends."""

    def __init__(self, f: int = 2, **options: Any) -> None:
        self.node = LocapsBroker(BrokerPlace("v", TREE, f), LocapsOptions(**options))

    def feed(self, peer: str, message: Any) -> Sent:
        effects = self.node.step(Received(peer, message), 0)
        return [(effect.peer, effect.message) for effect in effects if isinstance(effect, Send)]

    def advertise(self, publisher: str, link: str = "w", text: str = "TRUE") -> None:
        self.feed(link, AddAdvertisement(f"{publisher}/1", publisher, text))

    def cover(self, **cuts: int) -> None:
        """Let X arrive from y and receive these markers."""
        self.feed("y", AddSubscription("x/1", "price < 20"))
        for publisher, cut in cuts.items():
            self.feed("w", Marker("x/1", {publisher: cut}))

    def subscribe(self, pivot: str = "", left: int = 0, text: str = "price < 10") -> Sent:
        return self.feed("u", AddSubscription("s/1", text, pivot, left))


def partial(pivot: str = "v", **cuts: int) -> tuple[str, PartialMarker]:
    return "u", PartialMarker("s/1", pivot, "v", cuts)


def forwarded(pivot: str = "", left: int = 0, link: str = "w") -> tuple[str, AddSubscription]:
    return link, AddSubscription("s/1", "price < 10", pivot, left)


def test_the_first_broker_with_a_stable_cover_is_the_pivot_and_names_itself_and_the_f_to_follow() -> None:
    bench = Bench(f=2)
    bench.advertise("p")
    bench.cover(p=5)
    assert bench.subscribe() == [partial(p=5), forwarded("v", 2)]


@pytest.mark.parametrize(("left", "rest"), [(2, 1), (1, 0)])
def test_the_next_f_brokers_answer_for_the_same_pivot(left: int, rest: int) -> None:
    bench = Bench()
    bench.advertise("p")
    bench.cover(p=5)
    assert bench.subscribe("u", left) == [partial("u", p=5), forwarded("u", rest)]


def test_after_a_complete_set_no_broker_answers_again() -> None:
    bench = Bench()
    bench.advertise("p")
    bench.cover(p=5)
    assert bench.subscribe("u", 0) == [forwarded("u", 0)]


def test_a_local_publisher_answers_in_full_and_the_set_continues_without_it() -> None:
    bench = Bench(f=2)
    bench.advertise("p")
    bench.feed("own", ClientAdvertise(1, "TRUE"))
    bench.cover(p=5)
    assert bench.subscribe("u", 2) == [("u", Marker("s/1", {"own": 1})), partial("u", p=5), forwarded("u", 1)]


def test_the_number_is_one_after_the_last_event_passed_on_but_not_before_the_covers_cut() -> None:
    bench = Bench()
    bench.advertise("p")
    bench.advertise("q")
    bench.cover(p=5, q=5)
    bench.feed("w", Publication(Event("p", 8, {"price": 1})))
    assert bench.subscribe()[0] == partial(p=9, q=5)


@pytest.mark.parametrize(
    ("cover_text", "text", "speaks"),
    [("price < 20", "price < 10", True), ("price < 5", "price < 10", False), ("price < 10", "price < 10", True)],
)
def test_only_a_cover_counts(cover_text: str, text: str, speaks: bool) -> None:
    bench = Bench()
    bench.advertise("p")
    bench.feed("y", AddSubscription("x/1", cover_text))
    bench.feed("w", Marker("x/1", {"p": 5}))
    assert (partial(p=5) in bench.subscribe(text=text)) is speaks


def test_without_coverage_every_marker_is_the_publishers() -> None:
    bench = Bench(coverage=False)
    bench.advertise("p")
    bench.cover(p=5)
    assert bench.subscribe() == [forwarded()]


def test_a_broker_answers_for_a_whole_subtree_or_not_at_all() -> None:
    bench = Bench()
    bench.advertise("p")
    bench.advertise("q")
    bench.cover(p=5)
    assert bench.subscribe() == [forwarded()]


def test_publishers_that_do_not_match_or_are_behind_another_link_are_not_waited_for() -> None:
    bench = Bench()
    bench.advertise("p")
    bench.advertise("q", "w", "price > 50")
    bench.advertise("r", "z")
    bench.cover(p=5)
    assert bench.subscribe() == [partial(p=5), forwarded("v", 2), forwarded(link="z")]


def test_the_pseudo_code_handles_each_publisher_separately() -> None:
    bench = Bench(switched_off=("pivots",))
    bench.advertise("p")
    bench.advertise("q")
    bench.cover(p=5)
    assert bench.subscribe() == [partial(p=5), forwarded("v", 2)]
    assert bench.feed("w", Marker("x/1", {"q": 3})) == [("y", Marker("x/1", {"q": 3}))]


def test_a_broker_that_cannot_answer_breaks_the_set_so_that_the_next_may_begin_another() -> None:
    bench = Bench()
    bench.advertise("p")
    bench.cover()
    assert bench.subscribe("u", 2) == [forwarded()]


def test_it_looks_again_when_the_cover_becomes_stable() -> None:
    bench = Bench(f=2)
    bench.advertise("p")
    bench.advertise("q")
    bench.cover(p=5)
    bench.subscribe()
    bench.feed("w", Publication(Event("p", 8, {"price": 1})))
    marker = Marker("x/1", {"q": 3})
    assert bench.feed("w", marker) == [("y", marker), partial(p=9, q=3), ("w", AskPartial("s/1", "v", 2))]
    assert bench.feed("w", marker) == [("y", marker)]


def test_with_f_0_a_late_pivot_asks_no_broker() -> None:
    bench = Bench(f=0)
    bench.advertise("p")
    bench.cover()
    bench.subscribe()
    marker = Marker("x/1", {"p": 3})
    assert bench.feed("w", marker) == [("y", marker), partial(p=3)]


def test_its_own_marker_makes_a_subscription_stable_for_that_publisher() -> None:
    bench = Bench(f=0)
    bench.advertise("p")
    bench.advertise("q")
    bench.cover(p=5)
    bench.subscribe()
    marker = Marker("s/1", {"q": 2})
    assert bench.feed("w", marker) == [("u", marker), partial(p=5)]


def test_a_broker_joins_on_request_and_requests_to_join_at_its_parent() -> None:
    bench = Bench()
    bench.advertise("p")
    bench.cover(p=5)
    bench.subscribe("t", 0)
    assert bench.feed("u", AskPartial("s/1", "t", 2)) == [partial("t", p=5), ("w", AskPartial("s/1", "t", 1))]
    assert bench.feed("u", AskPartial("s/1", "t", 1)) == [partial("t", p=5)]
    assert bench.feed("u", AskPartial("gone/1", "t", 1)) == []


def test_it_does_not_answer_again_after_another_broker() -> None:
    bench = Bench()
    bench.advertise("p")
    bench.cover()
    bench.subscribe()
    partial_marker = PartialMarker("s/1", "w", "w", {"p": 2})
    assert bench.feed("w", partial_marker) == [("u", partial_marker)]
    assert bench.feed("w", Marker("x/1", {"p": 2})) == [("y", Marker("x/1", {"p": 2}))]


def test_a_cover_is_no_longer_stable_when_its_publisher_left_or_it_ended_itself() -> None:
    for message, peer in ((RemoveAdvertisement("p/1"), "w"), (RemoveSubscription("x/1"), "y")):
        bench = Bench()
        bench.advertise("p")
        bench.cover(p=5)
        bench.feed(peer, message)
        bench.feed("w", AddAdvertisement("p/2", "p", "TRUE"))
        assert bench.subscribe() == [forwarded()]
