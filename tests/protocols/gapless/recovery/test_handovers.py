"""When hand-overs begin, are dropped, are complete; and who is settled or doubted."""

from gapless.overlay import chain, star
from gapless.protocols.gapless.client_messages import Attach
from gapless.protocols.gapless.clients.sessions import Session
from gapless.protocols.gapless.epochs import epoch_of
from gapless.protocols.gapless.members.status import FIRST, alive_status, excluded_status, next_phase
from gapless.protocols.gapless.messages import Completed, Publication, Sync
from gapless.protocols.gapless.options import GaplessOptions
from gapless.protocols.gapless.recovery.handovers import CALMING_MAX, CALMING_US, RETURN_US, Missing
from tests.protocols.gapless.recovery.bench import Bench, contribution, event, region_at

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
    assert list(bench.handovers.under_way[REGION.tag].syncs) == ["b1"]


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
    assert bench.learned == [{"b1": next_phase(alive_status(1))}]


def test_nobody_is_told_of_completion_where_nobody_returned() -> None:
    bench = begun()
    hear(bench, "b2", "b3")
    assert [body for _, body in bench.sent if isinstance(body, Completed)] == []


def test_who_is_settled_beside_a_link_that_is_not_used_is_doubted() -> None:
    overlay = chain(3)
    bench = Bench("b0", overlay)
    returning = {"b1": alive_status(1)}
    bench.learn(returning)
    settled = {"b1": next_phase(alive_status(1))}
    bench.state.membership.merge(settled)
    assert bench.handovers.doubt(settled) == {"b1": alive_status(1) + 2}


def test_who_is_settled_after_the_hand_over_was_completed_is_not_doubted() -> None:
    overlay = chain(3)
    bench = Bench("b0", overlay)
    returning = {"b1": alive_status(1)}
    bench.learn(returning)
    region = region_at(overlay, returning, "b0")
    hear(bench, *[member for member in region.group if member != "b0"], region=region)
    settled = {"b1": next_phase(alive_status(1))}
    bench.state.membership.merge(settled)
    assert bench.handovers.doubt(settled) == {}


def test_who_has_only_just_returned_and_has_no_links_doubts_nobody() -> None:
    bench = Bench("b0", chain(3), life=1)
    bench.learn({"b1": alive_status(1)})
    assert set(next(iter(bench.handovers.under_way.values())).region.core) == {"b0", "b1"}
    settled = {"b1": next_phase(alive_status(1))}
    bench.state.membership.merge(settled)
    assert bench.handovers.doubt(settled) == {}


def test_waves_that_the_members_have_seen_are_void() -> None:
    bench = begun()
    for member in ("b2", "b3"):
        sync = contribution(REGION, wave=7 if member == "b2" else 3)
        bench.handovers.receive(member, sync)
    bench.work()
    assert bench.state.waves.number == 7


def test_who_is_not_settled_anyway_is_not_doubted() -> None:
    bench = Bench("b1", chain(3))
    bench.learn({"b0": alive_status(1), "b2": alive_status(1)})
    settled = next_phase(alive_status(1))
    news = {"b0": settled, "b2": alive_status(2)}
    bench.state.membership.merge(news)
    assert bench.handovers.doubt(news) == {"b0": next_phase(settled)}


def test_journals_that_nobody_has_are_waited_for_only_where_more_than_f_are_dead() -> None:
    for dead, is_waiting in ((["b0"], False), (["b0", "b3"], True)):
        bench = Bench("b1", STAR)
        bench.handovers._options = GaplessOptions(partition="wait")
        status = {name: excluded_status(0) for name in dead}
        bench.learn(status)
        region = region_at(STAR, status, "b1")
        hear(bench, *[member for member in region.group if member != "b1"], region=region)
        assert (region.tag in bench.handovers.under_way) == is_waiting


def away_from_home() -> tuple[Bench, Session]:
    """A broker in the middle of five, with a client that began at a neighbour."""
    bench = Bench("b2", chain(5))
    session = bench.state.clients.sessions["c"] = Session("c", epoch_of(0))
    session.claim(Attach(1, "b3/0", [], {}, [], 1), [])
    session.place = "b3"
    return bench, session


def test_clients_are_sent_home_only_while_nothing_else_is_handed_over() -> None:
    for status, learned in (({}, [{"b3": next_phase(FIRST)}]), ({"b1": excluded_status(0)}, [])):
        bench, _ = away_from_home()
        bench.learn(status)
        bench.handovers.send_home("b3")
        assert bench.learned == learned


def test_clients_that_do_not_calm_down_go_on_and_are_asked_again_later() -> None:
    bench, session = away_from_home()
    session.in_flight = 1
    for _ in range(CALMING_MAX):
        bench.handovers.send_home("b3")
        assert session.is_still
    bench.handovers.send_home("b3")
    assert not session.is_still
    assert [timer.delay_us for timer in bench.timers] == [CALMING_US] * CALMING_MAX + [RETURN_US]
    assert bench.learned == []


def test_a_session_that_is_given_back_is_named_after_the_hand_over() -> None:
    bench, _ = away_from_home()
    status = {"b3": alive_status(1)}
    bench.learn(status)
    region = region_at(chain(5), status, "b2")
    [(peer, sync), *_] = bench.syncs()
    assert peer == "b3"
    assert [(item.broker, item.life, list(item.records)) for item in sync.estates] == [("b3", -region.tag, ["c"])]


def test_what_was_told_in_a_hand_over_that_was_dropped_concerns_only_those_that_touch_it() -> None:
    bench = Bench("b3", chain(7))
    bench.state.table.enter_subscription("s", "x = 1", None, {}, "c")
    bench.learn({"b2": excluded_status(0)})
    bench.state.table.remove_subscription("s")
    bench.learn({"b1": excluded_status(0)})
    bench.syncs()
    bench.learn({"b4": excluded_status(0)})
    told = {peer: [item.subscription for item in sync.subscriptions] for peer, sync in bench.syncs()}
    assert told == {"b5": []}
