"""What of publishers that were lost with their brokers nobody holds any more, and what stands in its place."""

import msgspec
import pytest

from gapless.events import Event
from gapless.overlay import star
from gapless.protocols.gapless.lives import name_life
from gapless.protocols.gapless.members.status import alive_status, excluded_status
from gapless.protocols.gapless.messages import Admission, Cuts, Estate, LogEntry, SideAdvertisement, Sync
from gapless.protocols.gapless.recovery.holes import adopted, fill_holes, gone_publishers, holes_in_history
from gapless.protocols.gapless.tombstones import is_lost
from tests.protocols.gapless.recovery.bench import contribution, event, logged, region_at

STAR = star(4)
REGION = region_at(STAR, {"b0": excluded_status(0)}, "b1")
RETURNED = region_at(STAR, {"b0": alive_status(1)}, "b1")


def told(**fields: object) -> Sync:
    """A member's contribution: it knows p from inside the region."""
    return contribution(REGION, **{"inside": {"p": 2}, **fields})


def others(**second: object) -> dict[str, Sync]:
    return {"b1": told(), "b2": contribution(REGION, **second)}


def stamped(publisher: str, seq: int, stamp: int) -> Event:
    return msgspec.structs.replace(event(publisher, seq), stamp=stamp)


def shown(events: list[Event]) -> list[str]:
    return [f"{'lost ' if is_lost(item.attributes) else ''}{item.id}" for item in events]


# ---- who is gone ------------------------------------------------------------------------------------------


def test_who_advertised_inside_and_is_known_to_nobody_is_gone_with_its_broker() -> None:
    assert gone_publishers(others(), {}) == {"p": 2}


def test_what_any_member_knows_to_have_reached_everyone_counts() -> None:
    assert gone_publishers(others(inside={"p": 5}), {}) == {"p": 5}
    assert gone_publishers(others(inside={"p": 1}), {}) == {"p": 2}


@pytest.mark.parametrize(
    "known",
    [
        {"owned": {"p": 1}},
        {"homes": {"p": name_life("b3", 0)}},
        {"advertisements": [SideAdvertisement("p/a", "p", "TRUE", 1, False)]},
    ],
    ids=["held", "inherited before", "on a member's side"],
)
def test_who_is_known_to_a_member_is_not_gone(known: dict[str, object]) -> None:
    assert gone_publishers(others(**known), {}) == {}


def test_whose_last_event_came_in_from_outside_is_not_gone() -> None:
    entered = [LogEntry(event("p", 3), True, None)]
    assert gone_publishers({"b1": told(log=entered, passed={"p": 3})}, {}) == {}
    assert gone_publishers({"b1": told(log=entered, passed={"p": 3}), "b2": told(passed={"p": 4})}, {}) == {"p": 2}
    inside = [LogEntry(event("p", 3), False, None)]
    assert gone_publishers({"b1": told(log=inside, passed={"p": 3})}, {}) == {"p": 2}


@pytest.mark.parametrize(
    "has",
    [{"estates": [Estate("b0", 0, {}, {}, [])]}, {"heirs": {name_life("b0", 0): name_life("b2", 0)}}],
    ids=["its journal", "its heir"],
)
def test_nobody_is_gone_where_a_member_has_the_journal_or_knows_the_heir(has: dict[str, object]) -> None:
    assert gone_publishers(others(**has), {}) == {}


def test_the_journal_of_another_broker_does_not_help() -> None:
    assert gone_publishers(others(estates=[Estate("b9", 0, {}, {}, [])]), {}) == {"p": 2}


@pytest.mark.parametrize("memory", [{"passed": {"q": 1}}, {"log": logged(event("q", 1))}], ids=["passed", "log"])
def test_nobody_is_gone_with_a_broker_that_is_there_with_its_memory(memory: dict[str, object]) -> None:
    without = {"b0": contribution(RETURNED), "b1": contribution(RETURNED, inside={"p": 2})}
    assert gone_publishers(without, {}) == {"p": 2}, "it has returned without it"
    assert gone_publishers({**without, "b0": contribution(RETURNED, **memory)}, {}) == {}


def test_who_is_inherited_as_it_was_when_it_last_passed_is_not_gone() -> None:
    assert gone_publishers(others(inside={"p": 2}, passed={"p": 4}), {"p": 4}) == {}


def test_who_is_inherited_from_an_old_disk_lacks_what_passed_since() -> None:
    passed = {"b1": told(passed={"p": 5})}
    assert gone_publishers(passed, {"p": 4}) == {"p": 4}, "up to 4 the disk has it"
    assert gone_publishers({"b1": told(passed={"p": 5}, inside={"p": 5})}, {"p": 4}) == {"p": 5}
    copy = told(passed={"p": 5}, estates=[Estate("b0", 0, {}, {}, [])])
    assert gone_publishers({"b1": copy}, {"p": 4}) == {"p": 4}, "an old copy of the journal is there, and does not help"


# ---- what stands in the place -----------------------------------------------------------------------------


def filled(
    events: list[Event], gone: Cuts, passed: int, wave: int = 0
) -> tuple[list[Event], dict[tuple[str, int], Cuts]]:
    pasts: dict[tuple[str, int], Cuts] = {}
    found = fill_holes(events, pasts, gone, {"b1": told(passed={"p": passed}, wave=wave), "b2": told()})
    return found, pasts


def test_a_tombstone_stands_right_after_the_event_before_it_and_before_every_effect() -> None:
    events = [event("p", 1), event("q", 1), event("p", 4), event("q", 2)]
    found, _ = filled(events, {"p": 1}, passed=5)
    assert shown(found) == ["p:1", "lost p:2", "lost p:3", "q:1", "p:4", "lost p:5", "q:2"]


def test_where_nothing_before_it_is_held_a_tombstone_comes_first() -> None:
    found, _ = filled([event("q", 1), event("p", 3)], {"p": 1}, passed=3)
    assert shown(found) == ["lost p:2", "q:1", "p:3"]


def test_what_has_reached_everyone_is_no_hole_and_nothing_is_known_beyond_what_passed() -> None:
    found, _ = filled([event("p", 5)], {"p": 4}, passed=5)
    assert shown(found) == ["p:5"]
    found, _ = filled([], {"p": 4}, passed=5)
    assert shown(found) == ["lost p:5"]
    found, _ = filled([], {"p": 4}, passed=4)
    assert found == []


def test_what_came_before_something_that_a_journal_holds_is_lost_with_its_publisher() -> None:
    held = Admission(1, event("x", 1), {"p": 3}, False, None)
    telling = told(estates=[Estate("b2", 0, {}, {}, [held])])
    assert shown(fill_holes([event("x", 1)], {}, {"p": 1}, {"b1": telling})) == ["lost p:2", "lost p:3", "x:1"]


def test_holes_begin_after_the_last_held_event_that_has_reached_everyone() -> None:
    found, _ = filled([event("p", 1), event("p", 2), event("q", 1), event("p", 4)], {"p": 2}, passed=4)
    assert shown(found) == ["p:1", "p:2", "lost p:3", "q:1", "p:4"]


def test_holes_of_those_who_are_not_gone_stay() -> None:
    events = [event("q", 1), event("q", 5)]
    assert filled(events, {"p": 4}, passed=4)[0] is events


def test_a_tombstone_has_the_stamp_of_the_next_that_is_held() -> None:
    events = [stamped("p", 1, 10), stamped("p", 4, 40), stamped("p", 6, 60), stamped("q", 1, 70)]
    found, _ = filled(events, {"p": 1}, passed=7, wave=50)
    assert {item.seq: item.stamp for item in found if is_lost(item.attributes)} == {2: 40, 3: 40, 5: 60, 7: 71}


def test_the_last_tombstones_come_after_every_wave() -> None:
    found, _ = filled([stamped("p", 1, 10)], {"p": 1}, passed=2, wave=50)
    assert [item.stamp for item in found] == [10, 51]


def test_the_past_of_a_tombstone_is_what_its_publisher_said_before() -> None:
    _, pasts = filled([], {"p": 0}, passed=2)
    assert pasts == {("p", 1): {}, ("p", 2): {"p": 1}}


# ---- what has to be in a journal --------------------------------------------------------------------------


def test_what_is_in_no_journal_is_adopted() -> None:
    events = [event("p", seq) for seq in range(1, 6)]
    log = [
        LogEntry(events[0], True, None),
        LogEntry(events[1], False, None, is_noted=True),
        LogEntry(events[2], False, None),
    ]
    admissions = [[Admission(1, events[3], {}, False)]]
    assert adopted(events, {"b1": told(log=log)}, admissions) == {("p", 3), ("p", 5)}


def test_what_is_only_in_journals_and_not_merged_is_not_adopted() -> None:
    assert adopted([], {"b1": told()}, [[Admission(1, event("p", 1), {}, False)]]) == set()


# ---- what history alone lacks -----------------------------------------------------------------------------


def buried(events: list[Event], gone: Cuts, window: int = 100, **fields: object) -> dict[tuple[str, int], list[str]]:
    adopts = {(item.publisher, item.seq) for item in events}
    found = holes_in_history(events, adopts, gone, {"b1": told(**fields)}, window)
    return {key: shown(items) for key, items in found.items()}


def test_what_stood_in_the_lost_journal_before_an_event_that_is_left_is_noted_for_history() -> None:
    events = [stamped("q", 3, 30), stamped("q", 5, 50)]
    assert buried(events, {}) == {("q", 3): ["lost q:1", "lost q:2"], ("q", 5): ["lost q:4"]}
    found = holes_in_history(events, {("q", 3)}, {}, {"b1": told()}, 100)
    assert [item.stamp for item in found["q", 3]] == [30, 30]


def test_history_lacks_nothing_that_has_reached_everyone_or_is_older_than_a_window() -> None:
    assert buried([event("q", 4)], {}, done={"q": 2}) == {("q", 4): ["lost q:3"]}
    assert buried([event("q", 9)], {}, window=1) == {("q", 9): ["lost q:8"]}


def test_who_is_gone_has_tombstones_already_and_a_journal_that_is_there_has_everything() -> None:
    assert buried([event("q", 2)], {"q": 0}) == {}
    assert buried([event("q", 2)], {}, estates=[Estate("b0", 0, {}, {}, [])]) == {}
