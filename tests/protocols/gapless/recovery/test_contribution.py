"""What a member contributes: its own side, without what others of it cover; and what it knows of the others."""

import random

import pytest

from gapless.filters import parse
from gapless.overlay import chain, star
from gapless.protocols.gapless.members.contraction import Region
from gapless.protocols.gapless.members.status import excluded_status
from gapless.protocols.gapless.messages import SideSubscription
from gapless.protocols.gapless.pieces import finish
from gapless.protocols.gapless.recovery.contribution import (
    MERGED,
    is_inside,
    side_advertisements,
    side_known_cuts,
    side_subscriptions,
)
from gapless.protocols.gapless.routing.records import Link
from gapless.protocols.gapless.routing.routing_table import RoutingTable
from tests.protocols.gapless.recovery.bench import Bench, region_at

INSIDE = Link("b1", "b1", 0)
BESIDE = Link("b2", "b2", 0)


def is_own(link: Link | None) -> bool:
    return link is not INSIDE


def told(table: RoutingTable, coverage: bool = True, /, **before: SideSubscription) -> list[SideSubscription]:
    return finish(side_subscriptions("b0", table, is_own, coverage, before, 10))


def table_of(*subscriptions: tuple[str, str, Link | None]) -> RoutingTable:
    table = Bench("b0", chain(1)).state.table
    for name, text, origin in subscriptions:
        table.enter_subscription(name, text, origin, {}, "" if origin else f"client of {name}")
    return table


def test_what_comes_from_the_dead_or_through_a_merged_log_is_inside() -> None:
    region = Region(("b1",), ("b0", "b2"), 1)
    assert is_inside(region, "b0", "b1")
    assert is_inside(region, "b0", MERGED)
    assert not is_inside(region, "b0", "b3")
    assert not is_inside(region, "b0", "")
    returned = Region(("b0", "b1"), ("b0", "b2"), 1)
    assert is_inside(returned, "b0", "b3"), "all that leads away from one who has returned is inside"
    assert not is_inside(returned, "b0", ""), "but its own clients are not"


def test_only_the_own_side_is_told_with_the_cuts_it_has() -> None:
    table = table_of(("own", "x = 1", None), ("beside", "x = 2", BESIDE), ("inside", "x = 3", INSIDE))
    table.subscriptions["own"].cuts["p"] = 4
    table.subscriptions["beside"].former["q"] = 2
    assert told(table) == [
        SideSubscription("own", "x = 1", {"p": 4}, "client of own"),
        SideSubscription("beside", "x = 2", {"q": 2}, ""),
    ]


def test_it_is_told_what_passed_before_a_subscription_came() -> None:
    table = table_of(("old", "x = 1", None), ("new", "x = 2", None))
    table.subscriptions["old"].entered_at = 7
    table.subscriptions["new"].entered_at = 13
    assert [item.log_from for item in told(table)] == [0, 3], "the log that is kept begins with place 10"


def test_what_was_told_before_is_told_again_also_if_it_has_ended_or_is_covered_by_now() -> None:
    table = table_of(("wide", "x > 0", None), ("narrow", "x = 1", None))
    narrow = SideSubscription("narrow", "x = 1", {}, "client of narrow")
    gone = SideSubscription("gone", "x < 9", {"p": 3}, "c")
    assert [item.subscription for item in told(table)] == ["wide"]
    assert [item.subscription for item in told(table, narrow=narrow)] == ["wide", "narrow"]
    assert told(table, gone=gone)[0] == SideSubscription("gone~b0", "x < 9", {"p": 3}, "", "gone")
    again = told(table, gone=gone)[0]
    assert told(table, gone=again)[0] is again, "it keeps the name that it got"


def test_what_has_ended_represents_those_it_covers_until_they_took_its_place() -> None:
    table = table_of(("narrow", "x = 1", None))
    gone = SideSubscription("gone", "x < 9", {}, "c")
    assert [item.subscription for item in told(table, gone=gone)] == ["gone~b0"]


@pytest.mark.parametrize("seed", range(20))
def test_each_is_told_or_covered_by_one_that_is_and_came_before(seed: int) -> None:
    dice = random.Random(seed)
    table = table_of()
    for number in range(40):
        low = dice.randint(0, 9)
        text = f"x BETWEEN {low} AND {low + dice.randint(0, 5)}"
        table.enter_subscription(f"s{number}", text, dice.choice([None, BESIDE, INSIDE]), {})
    before = {
        item.name: SideSubscription(item.name, item.filter.text, {}, "")
        for item in table.subscriptions.values()
        if is_own(item.origin) and dice.random() < 0.1
    }
    expected: list[str] = []
    for name, subscription in table.subscriptions.items():
        covers = [other for other in expected if table.subscriptions[other].filter.covers(subscription.filter)]
        if is_own(subscription.origin) and (name in before or not covers):
            expected.append(name)
    assert [item.subscription for item in told(table, True, **before)] == expected
    everything = [name for name, item in table.subscriptions.items() if is_own(item.origin)]
    assert [item.subscription for item in told(table, False)] == everything


def test_an_advertisement_is_awaited_if_the_region_or_a_hand_over_owes_its_answer() -> None:
    table = table_of()
    for name, origin in (("answered", None), ("asked", None), ("deferred", None), ("beside", BESIDE), ("in", INSIDE)):
        table.enter_advertisement(name, f"publisher of {name}", "x > 0", origin, 3)
    table.advertisements["asked"].waiting["b1"] = None
    table.advertisements["beside"].waiting["b3"] = None
    table.advertisements["deferred"].is_deferred = True
    found = side_advertisements(table, is_own, {"b1"})
    assert [(item.advertisement, item.awaited) for item in found] == [
        ("answered", False), ("asked", True), ("deferred", True), ("beside", False),
    ]  # fmt: skip
    assert {item.first for item in found} == {3}


def test_the_cuts_of_the_others_subscriptions_are_told_and_none_of_the_own_side() -> None:
    table = table_of(("own", "x = 1", None), ("inside", "x = 2", INSIDE), ("without", "x = 3", INSIDE))
    for name in ("own", "inside"):
        table.subscriptions[name].cuts["p"] = 4
        table.subscriptions[name].former["q"] = 2
    assert side_known_cuts(table, is_own) == {"inside": {"p": 4, "q": 2}}


def test_a_contribution_holds_all_of_it() -> None:
    bench = Bench("b1", star(3))
    state = bench.state
    state.table.enter_subscription("own", "x = 1", None, {}, "c")
    state.table.enter_advertisement("a", "c", "x > 0", None, 1)
    state.table.passed["p"] = 7
    bench.learn({"b0": excluded_status(0)})
    [(peer, sync)] = bench.syncs()
    region = region_at(state.membership.overlay, state.membership.status, "b1")
    assert peer == "b2"
    assert sync.tag == region.tag
    assert sync.core == ["b0"]
    assert sync.status == {"b0": excluded_status(0), "b1": 0, "b2": 0}
    assert [item.subscription for item in sync.subscriptions] == ["own"]
    assert [item.advertisement for item in sync.advertisements] == ["a"]
    assert sync.passed == {"p": 7}
    assert parse(sync.subscriptions[0].filter).matches({"x": 1})


def test_of_a_publisher_that_left_and_came_back_the_cut_that_counts_now_is_told() -> None:
    table = table_of(("s", "x = 1", None))
    table.subscriptions["s"].former = {"p": 3, "q": 4}
    table.subscriptions["s"].cuts = {"p": 9}
    [item] = told(table)
    assert item.cuts == {"p": 9, "q": 4}
