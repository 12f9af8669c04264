"""When hand-overs begin, are dropped, are complete; and who is settled or doubted."""

from gapless.overlay import chain, star
from gapless.protocols.gapless.members.status import alive_status, excluded_status
from gapless.protocols.gapless.messages import Completed, Publication, Sync
from gapless.protocols.gapless.recovery.handovers import Missing
from tests.protocols.gapless.recovery_bench import Bench, contribution, event, region_at

OUT = {"b0": excluded_status(0)}
STAR = star(4)
REGION = region_at(STAR, OUT, "b1")


def begun(name: str = "b1") -> Bench:
    """A neighbour of the dead b0 that has contributed."""
    bench = Bench(name, STAR)
    bench.learn(OUT)
    return bench


def hear(bench: Bench, *members: str, region: object = REGION) -> None:
    for member in members:
        bench.handovers.receive(member, contribution(REGION if region is REGION else region))  # type: ignore[arg-type]
    bench.work()


def test_nothing_is_handed_over_while_all_live() -> None:
    bench = Bench("b1", STAR)
    bench.learn({})
    assert bench.handovers.under_way == {}
    assert bench.sent == []
    assert bench.state.table.is_intact


def test_one_that_begins_stops_using_the_link_and_tells_all_members_once() -> None:
    bench = begun()
    assert list(bench.state.table.links) == []
    assert [peer for peer, _ in bench.syncs()] == ["b2", "b3"]
    assert not bench.state.table.is_intact
    bench.learn(OUT)
    assert bench.syncs() == []
    assert bench.handovers.missing() == [Missing(("b0",), "contribution", ("b2", "b3"))]


def test_it_is_complete_when_every_member_has_contributed() -> None:
    bench = begun()
    hear(bench, "b2")
    assert REGION.tag in bench.handovers.under_way
    hear(bench, "b2")
    assert REGION.tag in bench.handovers.under_way, "the same member twice is one"
    hear(bench, "b3")
    assert bench.handovers.under_way == {}
    assert {peer: link.tag for peer, link in bench.state.table.links.items()} == {"b2": REGION.tag, "b3": REGION.tag}
    assert bench.state.table.is_intact


def test_what_is_no_contribution_of_a_member_is_ignored() -> None:
    bench = begun()
    bench.handovers.receive("b9", contribution(REGION))
    bench.handovers.receive("b2", Sync(4711, [], {}, [], [], {}, [], {}, 0, [], {}, {}, {}))
    assert bench.handovers.missing() == [Missing(("b0",), "contribution", ("b2", "b3"))]


def test_one_that_has_become_another_is_dropped_and_told_again() -> None:
    bench = Bench("b1", STAR)
    bench.state.table.enter_subscription("s", "x = 1", None, {}, "c")
    bench.learn(OUT)
    bench.syncs()
    bench.state.table.remove_subscription("s")
    bench.learn({"b3": excluded_status(0)})
    [(peer, sync)] = bench.syncs()
    assert peer == "b2"
    assert REGION.tag not in bench.handovers.under_way
    assert [(item.subscription, item.ended) for item in sync.subscriptions] == [("s~b1", "s")]
    larger = region_at(STAR, bench.state.membership.status, "b1")
    hear(bench, "b2", region=larger)
    assert bench.handovers.under_way == {}
    bench.learn({"b0": alive_status(1)})
    assert all(sync.subscriptions == [] for _, sync in bench.syncs()), "others have completed it: it is over"


def test_events_from_the_own_side_that_come_after_the_log_was_sent_are_late() -> None:
    bench = begun()
    handover = bench.handovers.under_way[REGION.tag]
    bench.handovers.note([event("p", 1)], "")
    bench.handovers.note([event("q", 1)], "b0")
    assert handover.late == [event("p", 1)]


def test_what_was_in_the_log_that_was_sent_is_not_late() -> None:
    bench = Bench("b1", STAR)
    bench.state.membership.merge(OUT)
    bench.handovers.follow()
    bench.handovers.note([event("p", 1)], "")
    bench.work()
    assert bench.handovers.under_way[REGION.tag].late == []


def test_what_came_early_over_a_new_link_is_taken_when_it_is_installed() -> None:
    bench = begun()
    early = Publication([event("p", 1)])
    bench.handovers.under_way[REGION.tag].early += [("b2", early), ("b9", Publication([]))]
    hear(bench, "b2", "b3")
    assert bench.replayed == [early]


def test_who_returned_is_settled_when_all_have_completed() -> None:
    overlay = chain(3)
    status = {"b1": alive_status(1)}
    bench = Bench("b1", overlay, life=1)
    bench.learn(status)
    region = region_at(overlay, status, "b1")
    hear(bench, "b0", "b2", region=region)
    assert [(peer, body) for peer, body in bench.sent if isinstance(body, Completed)] == [
        ("b0", Completed(region.tag)), ("b2", Completed(region.tag)),
    ]  # fmt: skip
    assert bench.handovers.missing() == [Missing(("b1",), "completion", ("b0", "b2"))]
    bench.handovers.receive_completed("b0", Completed(region.tag))
    assert bench.learned == []
    bench.handovers.receive_completed("b2", Completed(region.tag))
    assert bench.learned == [{"b1": alive_status(1) + 1}]


def test_nobody_is_told_of_completion_where_nobody_returned() -> None:
    bench = begun()
    hear(bench, "b2", "b3")
    assert [body for _, body in bench.sent if isinstance(body, Completed)] == []


def test_who_is_settled_beside_a_link_that_is_not_used_is_doubted() -> None:
    overlay = chain(3)
    bench = Bench("b0", overlay)
    returning = {"b1": alive_status(1)}
    bench.learn(returning)
    settled = {"b1": alive_status(1) + 1}
    bench.state.membership.merge(settled)
    assert bench.handovers.doubt(settled) == {"b1": alive_status(1) + 2}


def test_who_is_settled_after_the_hand_over_was_completed_is_not_doubted() -> None:
    overlay = chain(3)
    bench = Bench("b0", overlay)
    returning = {"b1": alive_status(1)}
    bench.learn(returning)
    region = region_at(overlay, returning, "b0")
    hear(bench, *[member for member in region.group if member != "b0"], region=region)
    settled = {"b1": alive_status(1) + 1}
    bench.state.membership.merge(settled)
    assert bench.handovers.doubt(settled) == {}


def test_who_has_only_just_returned_and_has_no_links_doubts_nobody() -> None:
    bench = Bench("b0", chain(3), life=1)
    bench.learn({"b1": alive_status(1)})
    assert set(next(iter(bench.handovers.under_way.values())).region.core) == {"b0", "b1"}
    settled = {"b1": alive_status(1) + 1}
    bench.state.membership.merge(settled)
    assert bench.handovers.doubt(settled) == {}


def test_waves_that_the_members_have_seen_are_void() -> None:
    bench = begun()
    for member in ("b2", "b3"):
        sync = contribution(REGION, wave=7 if member == "b2" else 3)
        bench.handovers.receive(member, sync)
    bench.work()
    assert bench.state.waves.number == 7
