"""Advertisements, subscriptions and cuts at one broker between u and w."""

import pytest

from gapless.events import Event
from gapless.protocols.gapless.messages import (
    AddAdvertisement,
    AddSubscription,
    AdvertisementStable,
    Cuts,
    Marker,
    RemoveAdvertisement,
    RemoveSubscription,
    TreeBody,
)
from gapless.protocols.gapless.pieces import finish
from gapless.protocols.gapless.routing.records import Link, Subscription
from gapless.protocols.gapless.routing.representation import REMOVED_MAX
from gapless.protocols.gapless.routing.routing_table import SILENT_MAX, RoutingTable

Sent = list[tuple[str, TreeBody]]


class Bench:
    """A table with the links u and w, and what it says."""

    def __init__(self, *switched_off: str) -> None:
        self.sent: Sent = []
        self.told: list[tuple[str, Cuts]] = []
        self.stable: list[str] = []
        self.table = RoutingTable(
            send=lambda link, body: self.sent.append((link.peer, body)),
            tell_client=lambda subscription, cuts: self.told.append((subscription.name, cuts)),
            advertisement_stable=lambda advertisement: self.stable.append(advertisement.name),
            switched_off=frozenset(switched_off),
        )
        self.u = self.table.links["u"] = Link("u", "u", 0)
        self.w = self.table.links["w"] = Link("w", "w", 0)

    def take(self) -> Sent:
        found, self.sent = self.sent, []
        return found

    def advertise(self, name: str, text: str, origin: Link | None, publisher: str = "", first: int = 1) -> None:
        entered = self.table.enter_advertisement(name, publisher or name, text, origin, first)
        finish(self.table.spread_advertisement(entered))

    def subscribe(self, name: str, text: str, origin: Link | None, inherits: str = "", **cuts: int) -> Sent:
        """A subscription over a link, or of a client here; what it causes."""
        self.take()
        if origin is not None:
            self.table.receive_subscription(origin, AddSubscription(name, text, cuts, inherits))
        else:
            subscription = self.table.enter_subscription(name, text, None, {}, "c")
            self.table.spread(subscription)
            self.table.answer(subscription)
        return self.take()

    def marker(self, name: str, link: Link | None = None, **cuts: int) -> Sent:
        """A marker over w; what it causes."""
        self.take()
        self.table.receive_marker(link or self.w, name, cuts)
        return self.take()

    def cuts(self, name: str) -> Cuts:
        return self.table.subscriptions[name].cuts


def publishers_behind_w(bench: Bench, *names: str) -> None:
    for name in names:
        bench.advertise(name, "TRUE", bench.w)
    bench.take()


# ---- subscriptions and covers -----------------------------------------------------------------------------


def test_a_subscription_goes_where_something_may_match_and_not_back() -> None:
    bench = Bench()
    bench.advertise("p", "x = 1", bench.w)
    bench.advertise("q", "TRUE", bench.u)
    assert bench.subscribe("s", "x = 1", bench.u) == [("w", AddSubscription("s", "x = 1", {}))]
    assert bench.subscribe("t", "x = 2", bench.u) == []
    assert bench.subscribe("v", "x = 2", None) == [("u", AddSubscription("v", "x = 2", {}))]


@pytest.mark.parametrize("text", ["x < 10", "x < 5", "x = 7 AND y = 2"])
def test_a_covered_one_is_not_sent(text: str) -> None:
    bench = Bench()
    publishers_behind_w(bench, "p")
    bench.subscribe("wide", "x < 10", bench.u)
    assert bench.subscribe("new", text, bench.u) == []


def test_without_coverage_it_is() -> None:
    bench = Bench("coverage")
    publishers_behind_w(bench, "p")
    bench.subscribe("wide", "x < 10", bench.u)
    assert bench.subscribe("new", "x < 5", bench.u) == [("w", AddSubscription("new", "x < 5", {}))]


def test_a_wider_one_is_sent_and_one_that_came_from_there_covers_nothing() -> None:
    bench = Bench()
    publishers_behind_w(bench, "p")
    bench.subscribe("narrow", "x < 5", bench.u)
    bench.subscribe("theirs", "TRUE", bench.w)
    assert bench.subscribe("new", "x < 10", bench.u) == [("w", AddSubscription("new", "x < 10", {}))]


# ---- cuts -------------------------------------------------------------------------------------------------


def test_where_it_meets_the_publisher_the_cut_is_the_next_number() -> None:
    bench = Bench()
    bench.advertise("p", "TRUE", None)
    bench.advertise("q", "TRUE", None)
    bench.table.passed["p"] = 6
    assert bench.subscribe("s", "TRUE", bench.u) == [("u", Marker("s", {"p": 7, "q": 1}))]
    assert bench.subscribe("own", "TRUE", None) == []
    assert bench.told == [("own", {"p": 7, "q": 1})]


def test_a_marker_is_passed_on_to_the_subscriber_alone() -> None:
    bench = Bench()
    publishers_behind_w(bench, "p")
    bench.subscribe("s", "x = 1", bench.u)
    bench.subscribe("own", "x = 2", None)
    assert bench.marker("s", p=3) == [("u", Marker("s", {"p": 3}))]
    assert bench.marker("s", p=4) == [], "the first one counts"
    assert bench.marker("own", p=5) == []
    assert bench.told == [("own", {"p": 5})]
    assert bench.cuts("s") == {"p": 3}


def test_a_marker_speaks_only_for_publishers_behind_its_link() -> None:
    bench = Bench()
    publishers_behind_w(bench, "p")
    bench.subscribe("s", "TRUE", bench.u)
    assert bench.marker("s", p=3, stranger=9) == [("u", Marker("s", {"p": 3}))]


@pytest.mark.parametrize(("passed", "cover_cut", "expected"), [(0, 4, 4), (3, 4, 4), (4, 4, 5), (9, 4, 10)])
def test_a_pivots_number_is_the_larger_of_the_next_one_and_the_covers_cut(
    passed: int, cover_cut: int, expected: int
) -> None:
    bench = Bench()
    publishers_behind_w(bench, "p")
    bench.subscribe("wide", "TRUE", None)
    bench.marker("wide", p=cover_cut)
    bench.table.passed["p"] = passed
    assert bench.subscribe("new", "x = 1", bench.u) == [("u", Marker("new", {"p": expected}))]


def test_a_pivot_speaks_for_all_that_are_stable_in_one_message_and_for_the_rest_when_the_covers_marker_passes() -> None:
    bench = Bench()
    publishers_behind_w(bench, "p", "q", "r")
    bench.subscribe("wide", "TRUE", bench.u)
    bench.marker("wide", p=2, r=5)
    assert bench.subscribe("new", "x = 1", None) == []
    assert bench.told == [("new", {"p": 2, "r": 5})]
    bench.table.passed["q"] = 3
    assert bench.marker("wide", q=8) == [("u", Marker("wide", {"q": 8}))]
    assert bench.told[1:] == [("new", {"q": 8})]


def test_what_is_covered_by_a_covered_one_is_answered_too() -> None:
    bench = Bench()
    publishers_behind_w(bench, "p")
    bench.subscribe("wide", "TRUE", None)
    bench.subscribe("middle", "x < 10", bench.u)
    bench.subscribe("narrow", "x < 5", bench.u)
    assert bench.marker("wide", p=2) == [("u", Marker("middle", {"p": 2})), ("u", Marker("narrow", {"p": 2}))]


def test_cuts_that_a_subscription_brings_count_for_publishers_further_on() -> None:
    bench = Bench()
    publishers_behind_w(bench, "p")
    bench.advertise("q", "TRUE", bench.u)
    assert bench.subscribe("s", "TRUE", bench.u, p=4, q=9) == [("w", AddSubscription("s", "TRUE", {"p": 4}))]
    assert bench.cuts("s") == {"p": 4}


# ---- make before break ------------------------------------------------------------------------------------


def with_cover(*switched_off: str) -> Bench:
    bench = Bench(*switched_off)
    publishers_behind_w(bench, "p", "q")
    bench.subscribe("wide", "TRUE", bench.u)
    bench.marker("wide", p=2)
    bench.subscribe("one", "x < 5", None)
    bench.subscribe("two", "x > 5", bench.u)
    bench.take()
    return bench


def test_those_it_represented_are_sent_before_a_cover_is_removed() -> None:
    bench = with_cover()
    bench.table.remove_subscription("wide")
    assert bench.take() == [
        ("w", AddSubscription("one", "x < 5", {"p": 2}, "wide")),
        ("w", AddSubscription("two", "x > 5", {"p": 2}, "wide")),
        ("w", RemoveSubscription("wide", True)),
    ]


def test_one_of_them_may_represent_another() -> None:
    bench = with_cover()
    bench.subscribe("small", "x = 1", bench.u)
    bench.table.remove_subscription("wide")
    assert [body for _, body in bench.take()] == [
        AddSubscription("one", "x < 5", {"p": 2}, "wide"),
        AddSubscription("two", "x > 5", {"p": 2}, "wide"),
        RemoveSubscription("wide", True),
    ]
    assert bench.marker("one", q=4) == [("u", Marker("small", {"q": 4}))]


def test_without_the_repair_nobody_takes_its_place() -> None:
    bench = with_cover("make-before-break")
    bench.table.remove_subscription("wide")
    assert bench.take() == [("w", RemoveSubscription("wide", True))]


def test_a_marker_of_the_cover_that_was_on_its_way_still_counts_for_them() -> None:
    bench = with_cover()
    bench.table.remove_subscription("wide")
    assert bench.marker("wide", q=6) == [("u", Marker("two", {"q": 6}))]
    assert bench.cuts("one") == bench.cuts("two") == {"p": 2, "q": 6}


def test_also_for_those_that_one_of_them_represented_and_that_ended_as_well() -> None:
    bench = with_cover()
    bench.subscribe("small", "x = 1", bench.u)
    bench.table.remove_subscription("wide")
    bench.table.remove_subscription("one")
    bench.take()
    assert bench.marker("wide", q=6) == [("u", Marker("two", {"q": 6})), ("u", Marker("small", {"q": 6}))]


def test_it_is_passed_on_even_where_a_cut_is_known_for_it_may_be_of_an_earlier_advertisement() -> None:
    bench = with_cover()
    bench.table.remove_subscription("wide")
    assert bench.marker("wide", p=6) == [("u", Marker("two", {"p": 6}))]
    assert bench.cuts("two") == {"p": 2}


def test_until_the_other_end_says_that_none_will_follow() -> None:
    bench = with_cover()
    bench.table.remove_subscription("wide")
    bench.table.receive_gone(bench.w, "wide")
    assert bench.marker("wide", q=6) == []
    assert bench.cuts("one") == {"p": 2}


def test_a_successor_inherits_the_cuts_that_its_cover_has_further_on() -> None:
    bench = Bench()
    publishers_behind_w(bench, "p", "q")
    bench.subscribe("wide", "TRUE", bench.u)
    bench.marker("wide", p=2, q=3)
    bench.table.passed["q"] = 40  # and all of it has been sent on for the one that ends
    assert bench.subscribe("one", "x < 5", bench.u, "wide", p=2) == [("u", Marker("one", {"q": 3}))]
    assert bench.cuts("one") == {"p": 2, "q": 3}


def test_a_subscription_that_represented_nobody_is_just_removed() -> None:
    bench = Bench()
    publishers_behind_w(bench, "p")
    bench.subscribe("s", "TRUE", bench.u)
    bench.table.remove_subscription("s")
    assert bench.take() == [("w", RemoveSubscription("s", False))]
    bench.subscribe("wide", "TRUE", bench.u)
    bench.subscribe("t", "x = 1", bench.u)
    bench.table.remove_subscription("t")
    assert bench.take() == [], "it was never sent"


# ---- advertisements ---------------------------------------------------------------------------------------


def test_an_advertisement_is_answered_when_all_links_behind_have_and_after_the_subscriptions() -> None:
    bench = Bench()
    bench.subscribe("s", "x = 1", bench.u)
    bench.advertise("p", "TRUE", bench.w)
    assert bench.take() == [
        ("u", AddAdvertisement("p", "p", "TRUE", 1, 1)),
        ("w", AddSubscription("s", "x = 1", {"p": 1})),
    ]
    bench.table.receive_stable(bench.w, "p", 0)
    assert bench.take() == []
    bench.table.receive_stable(bench.u, "p", 0)
    assert bench.take() == [("w", AdvertisementStable("p"))]


def test_ones_own_is_stable_when_all_links_have_answered() -> None:
    bench = Bench()
    bench.advertise("p", "TRUE", None)
    bench.table.receive_stable(bench.u, "p", 0)
    assert bench.stable == []
    bench.table.receive_stable(bench.w, "p", 0)
    assert bench.stable == ["p"]
    bench.table.receive_stable(bench.w, "p", 0)
    assert bench.stable == ["p"]


def test_an_answer_to_an_advertisement_that_was_taken_back_does_not_count_for_the_next_of_its_name() -> None:
    bench = Bench()
    bench.advertise("p", "TRUE", None)
    bench.table.remove_advertisement("p")
    bench.advertise("p", "TRUE", None)
    numbers = [body.number for _, body in bench.take() if isinstance(body, AddAdvertisement)]
    for number in (numbers[0], numbers[-1]):
        assert bench.stable == []
        for link in (bench.u, bench.w):
            bench.table.receive_stable(link, "p", number)
    assert bench.stable == ["p"]


def test_an_answer_has_the_number_that_was_told_last() -> None:
    bench = Bench()
    for number in (7, 8):
        finish(bench.table.receive_advertisement(bench.w, AddAdvertisement("p", "p", "TRUE", 1, number)))
    bench.table.receive_stable(bench.u, "p", 1)
    assert bench.take()[-1] == ("w", AdvertisementStable("p", 8))


def test_nothing_is_answered_while_a_part_of_the_tree_is_handed_over() -> None:
    bench = Bench()
    bench.advertise("p", "TRUE", bench.w)
    bench.advertise("own", "TRUE", None)
    bench.take()
    bench.table.set_intact(False)
    for link, name in ((bench.u, "p"), (bench.u, "own"), (bench.w, "own")):
        bench.table.receive_stable(link, name, 0)
    assert bench.take() == []
    assert bench.stable == []
    bench.table.set_intact(True)
    assert bench.take() == [("w", AdvertisementStable("p"))]
    assert bench.stable == ["own"]
    bench.table.set_intact(True)
    assert bench.take() == []


def test_a_new_advertisement_finds_those_who_subscribed_before() -> None:
    bench = Bench()
    bench.subscribe("s", "x = 1", bench.u)
    bench.advertise("own", "TRUE", None, first=4)
    assert ("u", AddAdvertisement("own", "own", "TRUE", 4, 1)) in bench.take(), "which tells u the cut, too"
    assert bench.cuts("s") == {"own": 4}


def test_with_the_last_publisher_that_needs_it_a_subscription_leaves_the_link() -> None:
    bench = Bench()
    publishers_behind_w(bench, "p")
    bench.advertise("p2", "x = 1", bench.w, publisher="p")
    bench.subscribe("s", "x < 5", bench.u)
    bench.subscribe("t", "x = 1", bench.u)
    bench.marker("s", p=3)
    bench.table.remove_advertisement("p")
    assert bench.take() == [("u", RemoveAdvertisement("p"))]
    assert bench.cuts("s") == {"p": 3}
    bench.table.remove_advertisement("p2")
    assert bench.take() == [("u", RemoveAdvertisement("p2")), ("w", RemoveSubscription("s", False))]
    assert bench.cuts("s") == bench.cuts("t") == {}


def test_a_cut_is_whole_when_every_publisher_that_was_there_has_answered_or_left() -> None:
    bench = Bench()
    publishers_behind_w(bench, "p", "q", "r")
    bench.advertise("elsewhere", "x = 2", bench.u)
    bench.subscribe("s", "x = 1", None)
    subscription = bench.table.subscriptions["s"]
    bench.table.await_cuts(subscription)
    assert subscription.still_awaited() == ["p", "q", "r"]
    bench.marker("s", p=3)
    assert not bench.table.is_whole(subscription)
    bench.advertise("late", "TRUE", bench.u, first=8)
    bench.table.remove_advertisement("q")
    bench.marker("s", r=5)
    assert bench.table.is_whole(subscription)
    assert bench.cuts("s") == {"p": 3, "r": 5, "late": 8}


def test_a_broker_that_does_not_know_all_publishers_calls_no_cut_whole() -> None:
    bench = Bench()
    bench.table.is_complete = False
    bench.subscribe("s", "x = 1", None)
    subscription = bench.table.subscriptions["s"]
    bench.table.await_cuts(subscription)
    assert subscription.still_awaited() is None
    assert not bench.table.is_whole(subscription)
    bench.table.is_complete = True
    bench.table.await_cuts(subscription)
    assert bench.table.is_whole(subscription)


def test_who_was_there_before_an_advertisement_starts_with_its_first_event() -> None:
    bench = Bench()
    bench.subscribe("here", "x = 1", None)
    bench.subscribe("passing", "x = 1", bench.u)
    bench.subscribe("behind", "x = 1", bench.w)
    bench.advertise("p", "TRUE", bench.w, first=7)
    assert bench.told == [("here", {"p": 7})]
    assert (bench.cuts("passing"), bench.cuts("behind")) == ({"p": 7}, {})
    assert not [message for _, message in bench.take() if isinstance(message, Marker)], "they know from the flood"
    bench.advertise("p2", "x < 5", bench.w, publisher="p", first=9)
    assert bench.cuts("here") == {"p": 7}, "it began with the first advertisement"


def test_who_waits_for_a_publisher_goes_on_waiting_when_that_advertises_more() -> None:
    bench = Bench()
    publishers_behind_w(bench, "p")
    bench.subscribe("s", "x = 1", None)
    bench.advertise("p2", "x < 5", bench.w, publisher="p", first=9)
    assert bench.cuts("s") == {}
    bench.marker("s", p=3)
    assert bench.cuts("s") == {"p": 3}


def test_events_find_their_subscriptions() -> None:
    bench = Bench()
    bench.subscribe("s", "x = 1", bench.u)
    bench.subscribe("t", "TRUE", None)

    def names(found: list[Subscription]) -> list[str]:
        return [subscription.name for subscription in found]

    assert names(list(bench.table.match(Event("p", 1, {"x": 1})))) == ["s", "t"]
    assert names(list(bench.table.match(Event("p", 1, {"x": 2})))) == ["t"]
    bench.table.remove_subscription("t")
    assert names(list(bench.table.match(Event("p", 1, {"x": 1})))) == ["s"]


def test_publishers_that_left_are_forgotten_when_there_are_very_many() -> None:
    bench = Bench()
    publishers_behind_w(bench, "stays")
    bench.table.passed.update({"stays": 7, **{f"left{number}": 1 for number in range(SILENT_MAX + 2)}})
    bench.table.forget_silent(lambda: {"left0"})
    assert len(bench.table.passed) == SILENT_MAX + 1
    assert bench.table.passed["stays"] == 7
    assert "left0" in bench.table.passed, "it is a client here"
    assert "left2" not in bench.table.passed
    assert "left3" in bench.table.passed


def test_a_marker_of_what_was_before_does_not_count_for_what_comes_again_under_its_name() -> None:
    bench = Bench()
    publishers_behind_w(bench, "p")
    bench.subscribe("s", "x = 1", bench.u)
    bench.table.remove_subscription("s")
    assert bench.take() == [("w", RemoveSubscription("s", False))]
    assert bench.subscribe("s", "x = 1", bench.u) == [
        ("w", RemoveSubscription("s", True)),
        ("w", AddSubscription("s", "x = 1", {})),
    ]
    assert bench.marker("s", p=3) == [], "given before w heard of the removal"
    assert bench.cuts("s") == {}
    bench.table.receive_gone(bench.w, "s")
    assert bench.marker("s", p=7) == [("u", Marker("s", {"p": 7}))]


def test_so_many_removed_subscriptions_are_remembered_and_no_more() -> None:
    bench = Bench()
    publishers_behind_w(bench, "p")
    for number in range(REMOVED_MAX + 5):
        bench.subscribe(f"s{number}", "x = 1", bench.u)
        bench.table.remove_subscription(f"s{number}")
    assert len(bench.w.removed) == REMOVED_MAX


def test_ends_of_what_comes_again_and_again_are_answered_in_order() -> None:
    bench = Bench()
    publishers_behind_w(bench, "p")
    bench.subscribe("s", "x = 1", bench.u)
    bench.table.remove_subscription("s")
    bench.subscribe("s", "TRUE", bench.u)
    assert bench.subscribe("t", "x = 2", bench.u) == [], "s represents it"
    bench.table.remove_subscription("s")
    assert bench.marker("s", p=3) == [], "of the first s"
    bench.table.receive_gone(bench.w, "s")
    assert bench.marker("s", p=7) == [("u", Marker("t", {"p": 7}))], "of the second"
    bench.table.receive_gone(bench.w, "s")
    assert bench.w.ghosts == {}
