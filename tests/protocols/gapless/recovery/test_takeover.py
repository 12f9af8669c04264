"""Carrying out a plan: markers before subscriptions, these before events, and links last."""

from gapless.events import Event
from gapless.overlay import star
from gapless.protocols.gapless.client_messages import Attach, Redirect
from gapless.protocols.gapless.clients.sessions import Session
from gapless.protocols.gapless.epochs import Epoch
from gapless.protocols.gapless.members.status import excluded_status
from gapless.protocols.gapless.messages import (
    AddAdvertisement,
    AddSubscription,
    Admission,
    AdvertisementStable,
    Estate,
    Marker,
    Publication,
    RemoveAdvertisement,
    RemoveSubscription,
    SideAdvertisement,
    SideSubscription,
    Sync,
)
from tests.protocols.gapless.recovery.bench import Bench, contribution, event, logged, record, region_at

OUT = {"b0": excluded_status(0)}
STAR = star(4)
REGION = region_at(STAR, OUT, "b1")


def subscribed(bench: Bench, name: str, text: str, client: str = "me") -> None:
    """A client of this broker subscribes."""
    desk, table = bench.state.clients, bench.state.table
    session = desk.sessions.setdefault(client, Session(client, Epoch(1)))
    session.subscriptions[name] = table.enter_subscription(name, text, None, {}, client)
    table.spread(session.subscriptions[name])


def complete(bench: Bench, **contributions: Sync) -> None:
    """Begin at the death of b0, and hear the others."""
    if not bench.handovers.under_way:
        bench.learn(OUT)
    for member in REGION.group:
        if member != bench.state.name:
            bench.handovers.receive(member, contributions.get(member, contribution(REGION)))
    bench.work()


def along(bench: Bench, kind: type) -> list[tuple[str, object]]:
    return [(peer, body) for peer, body in bench.along if isinstance(body, kind)]


def test_the_others_subscriptions_and_advertisements_are_known_afterwards_behind_their_links() -> None:
    bench = Bench("b1", STAR)
    complete(
        bench,
        b2=contribution(REGION, subscriptions=[SideSubscription("s", "x = 1", {}, "c")]),
        b3=contribution(REGION, advertisements=[SideAdvertisement("a", "p", "x > 0", 1, False)]),
    )
    table = bench.state.table
    assert table.subscriptions["s"].origin is table.links["b2"]
    assert table.advertisements["a"].origin is table.links["b3"]
    assert list(table.links["b3"].sent) == ["s"], "both ends know it from the contributions"
    assert along(bench, AddSubscription) == []
    assert along(bench, AddAdvertisement) == []


def test_a_member_that_is_not_the_stand_in_has_all_others_behind_it() -> None:
    bench = Bench("b3", STAR)
    complete(bench, b2=contribution(REGION, subscriptions=[SideSubscription("s", "x = 1", {}, "c")]))
    table = bench.state.table
    assert list(table.links) == ["b1"]
    assert table.subscriptions["s"].origin is table.links["b1"]


def test_what_was_behind_the_dead_and_nobody_has_any_more_is_gone() -> None:
    bench = Bench("b1", STAR)
    table = bench.state.table
    link = table.links["b0"]
    table.enter_subscription("old", "x = 1", link, {})
    table.enter_advertisement("older", "p", "x > 0", link, 1)
    complete(bench)
    assert table.subscriptions == {}
    assert table.advertisements == {}


def test_known_cuts_come_before_the_events_that_they_let_in() -> None:
    bench = Bench("b1", STAR)
    table = bench.state.table
    table.enter_advertisement("a", "p", "x >= 0", table.links["b0"], 1)
    subscribed(bench, "mine", "x >= 0")
    cuts: list[dict[str, int]] = []
    process = bench.outlets.process

    def note(item: Event, *rest: object) -> None:
        cuts.append(dict(table.subscriptions["mine"].cuts))
        process(item, *rest)  # type: ignore[arg-type]

    object.__setattr__(bench.outlets, "process", note)
    complete(
        bench,
        b2=contribution(
            REGION,
            advertisements=[SideAdvertisement("a", "p", "x >= 0", 1, False)],
            known_cuts={"mine": {"p": 2}},
            log=logged(event("p", 2)),
            passed={"p": 2},
        ),
    )
    assert cuts == [{"p": 2}]


def test_the_merged_log_is_processed_in_order_from_where_each_event_came_in() -> None:
    bench = Bench("b1", STAR)
    complete(
        bench,
        b2=contribution(REGION, log=logged(event("p", 1))),
        b3=contribution(REGION, log=[*logged(event("p", 1), entered=False), *logged(event("q", 1))]),
    )
    assert [(item.id, via, after) for item, via, after, _ in bench.processed] == [
        ("p:1", "b0", {"p": 1}), ("q:1", "b0", {"p": 1, "q": 1}),
    ]  # fmt: skip


def test_no_link_is_there_before_the_logs_are_processed() -> None:
    bench = Bench("b1", STAR)
    links: list[list[str]] = []
    process = bench.outlets.process

    def note(item: Event, *rest: object) -> None:
        links.append(list(bench.state.table.links))
        process(item, *rest)  # type: ignore[arg-type]

    object.__setattr__(bench.outlets, "process", note)
    complete(bench, b2=contribution(REGION, log=logged(event("p", 1))))
    assert links == [[]]
    assert list(bench.state.table.links) == ["b2", "b3"]


def test_late_events_go_on_over_the_new_links_and_only_to_who_wants_them() -> None:
    bench = Bench("b1", STAR)
    bench.learn(OUT)
    bench.handovers.note([event("p", 1, 1), event("p", 2, 2)], "")
    complete(bench, b2=contribution(REGION, subscriptions=[SideSubscription("s", "x = 1", {}, "c")]))
    assert along(bench, Publication) == [("b2", Publication([event("p", 1, 1)]))]


def test_cuts_fixed_since_the_contribution_are_told_over_the_new_link() -> None:
    bench = Bench("b1", STAR)
    table = bench.state.table
    theirs = table.enter_subscription("theirs", "x = 1", table.links["b0"], {})
    theirs.cuts["told"] = 1
    bench.learn(OUT)
    theirs.cuts["since"] = 5
    complete(bench, b2=contribution(REGION, subscriptions=[SideSubscription("theirs", "x = 1", {}, "c")]))
    assert along(bench, Marker) == [("b2", Marker("theirs", {"since": 5}))]


def test_what_ended_since_the_contribution_is_removed_only_over_the_new_links() -> None:
    bench = Bench("b1", STAR)
    subscribed(bench, "mine", "x = 1")
    bench.state.table.enter_advertisement("a", "me", "x > 0", None, 1)
    bench.learn(OUT)
    bench.state.table.remove_subscription("mine")
    bench.state.table.remove_advertisement("a")
    complete(bench)
    assert along(bench, RemoveSubscription) == [
        ("b2", RemoveSubscription("mine", False)), ("b3", RemoveSubscription("mine", False)),
    ]  # fmt: skip
    assert along(bench, RemoveAdvertisement) == [("b2", RemoveAdvertisement("a")), ("b3", RemoveAdvertisement("a"))]


def test_an_advertisement_that_came_since_the_contribution_is_flooded_and_awaited() -> None:
    bench = Bench("b1", STAR)
    bench.learn(OUT)
    bench.state.table.enter_advertisement("a", "me", "x > 0", None, 1)
    complete(bench)
    assert [peer for peer, _ in along(bench, AddAdvertisement)] == ["b2", "b3"]
    assert list(bench.state.table.advertisements["a"].waiting) == ["b2", "b3"]


# ---- heirs ------------------------------------------------------------------------------------------------------


def lost(*seqs: int) -> Estate:
    kept = record(
        "c", 4, subscriptions={"s": "x >= 0"}, cuts={"s": {"p": 3}}, awaited={"s": []},
        advertisements={"a": ("x >= 0", 1, True)}, admitted=max(seqs, default=0),
    )  # fmt: skip
    return Estate("b0", 0, {"c": kept}, {}, [Admission(seq, event("c", seq), {}, False) for seq in seqs])


def test_the_heir_holds_the_session_with_its_cuts_until_the_client_comes() -> None:
    bench = Bench("b1", STAR)
    complete(bench, b2=contribution(REGION, estates=[lost(1)], passed={"c": 1}))
    session = bench.state.clients.sessions["c"]
    assert session.is_orphan
    assert session.epoch == 5
    assert session.subscriptions["s"].cuts["p"] == 3
    assert session.subscriptions["s"].origin is None
    assert list(session.stable) == ["a"]
    assert bench.state.journal.copy.records["c"].epoch == 5, "its own backups get it"


def test_others_know_the_inherited_client_behind_the_heir() -> None:
    bench = Bench("b2", STAR)
    complete(bench, b3=contribution(REGION, estates=[lost(1)]))
    table = bench.state.table
    assert "c" not in bench.state.clients.sessions
    assert table.subscriptions["s"].origin is table.links["b1"]
    assert table.advertisements["a"].origin is table.links["b1"]


def test_what_the_dead_had_admitted_is_in_the_journal_of_the_heir() -> None:
    bench = Bench("b1", STAR)
    complete(bench, b2=contribution(REGION, estates=[lost(1, 2)], passed={"c": 1}))
    assert [(item.id, number) for item, _, _, number in bench.processed] == [("c:1", 1), ("c:2", 2)]
    assert len(bench.state.journal.copy) == 2
    session = bench.state.clients.sessions["c"]
    assert session.admitted == 2, "no backups are left to wait for"


def test_what_is_doubtful_waits_for_the_backups_of_the_heir() -> None:
    bench = Bench("b1", STAR)
    bench.state.journal.choose_backups({"b2": 0})
    complete(bench, b2=contribution(REGION, estates=[lost(1, 2)], passed={"c": 1}))
    session = bench.state.clients.sessions["c"]
    assert session.admitted == 1
    assert session.in_flight == 1


def test_a_client_that_came_back_in_the_meantime_keeps_its_newer_session() -> None:
    bench = Bench("b1", STAR)
    bench.learn(OUT)
    bench.state.clients.sessions["c"] = Session("c", Epoch(9))
    complete(bench, b2=contribution(REGION, estates=[lost(1)]))
    assert bench.state.clients.sessions["c"].epoch == 9
    assert "s" not in bench.state.clients.sessions["c"].subscriptions


def test_the_older_session_is_given_up_and_its_client_sent_away() -> None:
    bench = Bench("b1", STAR)
    subscribed(bench, "s", "x = 1", "c")
    bench.state.clients.sessions["c"].claim(Attach(3, "b1/0", [], {}, [], 1), [])
    side = SideSubscription("s", "x = 1", {}, "c")
    complete(bench, b2=contribution(REGION, owned={"c": 9_000}, subscriptions=[side]))
    table = bench.state.table
    assert "c" not in bench.state.clients.sessions
    assert ("c", Redirect(3, "b2")) in bench.to_clients
    assert table.subscriptions["s"].origin is table.links["b2"]
    assert "s@b1" not in table.subscriptions, "it went on only until the links were there"


OFFER = SideAdvertisement("a", "p", "x >= 0", 1, False)


def test_who_knew_all_stable_advertisements_starts_with_the_first_event_of_a_new_one() -> None:
    bench = Bench("b1", STAR)
    subscribed(bench, "mine", "x >= 0")
    log = logged(event("p", 1))
    offered = contribution(REGION, advertisements=[OFFER], known_cuts={"mine": {"p": 4}}, log=log, passed={"p": 1})
    complete(bench, b2=offered)
    assert bench.state.table.subscriptions["mine"].cuts == {"p": 1}


def test_or_with_the_next_if_that_came_by_and_is_in_no_log_any_more() -> None:
    """Then it was found on an old disk."""
    bench = Bench("b1", STAR)
    subscribed(bench, "mine", "x >= 0")
    complete(bench, b2=contribution(REGION, advertisements=[OFFER], passed={"p": 9}))
    assert bench.state.table.subscriptions["mine"].cuts == {"p": 10}


def test_a_subscription_that_was_not_told_takes_the_cuts_of_what_covers_it() -> None:
    bench = Bench("b1", STAR)
    table = bench.state.table
    table.is_complete = False
    subscribed(bench, "wide", "x >= 0")
    subscribed(bench, "narrow", "x = 1")
    table.passed["p"] = 6
    complete(bench, b2=contribution(REGION, advertisements=[OFFER], known_cuts={"wide": {"p": 4}}, passed={"p": 6}))
    assert table.subscriptions["wide"].cuts == {"p": 4}
    assert table.subscriptions["narrow"].cuts == {"p": 7}, "from what this broker passes from now on"
    assert table.is_complete


def test_cuts_are_fixed_before_the_log_moves_on() -> None:
    bench = Bench("b1", STAR)
    table = bench.state.table
    table.is_complete = False
    subscribed(bench, "wide", "x >= 0")
    subscribed(bench, "narrow", "x = 1")
    table.passed["p"] = 6
    theirs = contribution(
        REGION, advertisements=[OFFER], known_cuts={"wide": {"p": 4}}, log=logged(event("p", 7, 1)), passed={"p": 7}
    )
    complete(bench, b2=theirs)
    assert table.subscriptions["narrow"].cuts == {"p": 7}, "what the log brings is for it, too"


def test_who_was_represented_by_one_that_ended_takes_the_cuts_that_others_know_of_that_one() -> None:
    bench = Bench("b1", STAR)
    table = bench.state.table
    table.enter_advertisement("a", "p", "x >= 0", table.links["b0"], 1)
    subscribed(bench, "mine", "x = 1")
    table.links["b0"].ghosts["gone"] = [{"mine": None}]
    complete(bench, b2=contribution(REGION, advertisements=[OFFER], known_cuts={"gone": {"p": 4}}))
    assert table.subscriptions["mine"].cuts == {"p": 4}


def test_what_a_subscription_represented_when_it_ended_in_a_hand_over_inherits_from_it() -> None:
    bench = Bench("b1", STAR)
    subscribed(bench, "wide", "x >= 0")
    subscribed(bench, "narrow", "x = 1")
    bench.learn(OUT)
    bench.state.table.remove_subscription("wide")
    complete(bench, b2=contribution(REGION, advertisements=[OFFER]))
    sent = [(peer, body.subscription, body.inherits) for peer, body in bench.along if isinstance(body, AddSubscription)]
    assert sent == [("b2", "narrow", "wide")]


def test_an_advertisement_that_is_awaited_is_answered_when_all_behind_have() -> None:
    awaited = SideAdvertisement("a", "p", "x >= 0", 1, True)
    middle = Bench("b1", STAR)
    complete(middle, b3=contribution(REGION, advertisements=[awaited]))
    assert list(middle.state.table.advertisements["a"].waiting) == ["b2"]
    assert along(middle, AdvertisementStable) == []
    end = Bench("b2", STAR)
    complete(end, b3=contribution(REGION, advertisements=[awaited]))
    assert along(end, AdvertisementStable) == [("b1", AdvertisementStable("a"))]


def test_what_a_client_ended_elsewhere_is_over_where_its_session_is_inherited_again() -> None:
    bench = Bench("b1", STAR)
    subscribed(bench, "s", "x >= 0", "c")
    subscribed(bench, "ended", "x = 1", "c")
    complete(bench, b2=contribution(REGION, estates=[lost()]))
    assert list(bench.state.table.subscriptions) == ["s"]
    assert list(bench.state.clients.sessions["c"].subscriptions) == ["s"]
    assert bench.state.clients.sessions["c"].epoch == 5


def test_who_came_back_with_the_same_state_is_not_inherited_over() -> None:
    bench = Bench("b1", STAR)
    bench.learn(OUT)
    bench.state.clients.sessions["c"] = Session("c", Epoch(4))
    complete(bench, b2=contribution(REGION, estates=[lost(1)]))
    assert bench.state.clients.sessions["c"].epoch == 4


def test_what_never_came_by_the_heir_though_later_ones_did_is_in_its_log() -> None:
    bench = Bench("b1", STAR)
    bench.state.table.passed["c"] = 1
    complete(bench, b2=contribution(REGION, estates=[lost(1)], passed={"c": 1}))
    assert len(bench.state.log) == 1


def test_what_is_in_no_journal_is_noted_by_the_first_member_alone() -> None:
    for name, number in (("b1", 1), ("b2", 0)):
        bench = Bench(name, STAR)
        complete(bench, b3=contribution(REGION, log=logged(event("p", 1), entered=False)))
        assert [noted for _, _, _, noted in bench.processed] == [number], name


def test_an_inherited_subscription_without_any_cut_has_delivered_nothing_unless_it_had_all() -> None:
    for awaited, untold in ((None, ["s"]), (["p"], ["s"]), ([], [])):
        bench = Bench("b1", STAR)
        kept = record("c", 4, subscriptions={"s": "x >= 0"}, awaited={"s": awaited})
        complete(bench, b2=contribution(REGION, estates=[Estate("b0", 0, {"c": kept}, {}, [])]))
        assert list(bench.state.clients.sessions["c"].untold) == untold


def test_what_passed_any_member_has_passed_afterwards() -> None:
    bench = Bench("b1", STAR)
    complete(bench, b2=contribution(REGION, passed={"q": 7}), b3=contribution(REGION, passed={"q": 5}))
    assert bench.state.table.passed == {"q": 7}


def test_an_inherited_subscription_does_not_take_the_cuts_of_one_that_covers_it_at_the_heir() -> None:
    bench = Bench("b1", STAR)
    table = bench.state.table
    table.enter_advertisement("a", "p", "x >= 0", table.links["b0"], 1)
    subscribed(bench, "mine", "x >= 0")
    table.subscriptions["mine"].cuts["p"] = 3
    kept = record("c", 4, subscriptions={"s": "x > 1"}, cuts={"s": {"q": 1}}, awaited={"s": ["p"]})
    lost_with_it = Estate("b0", 0, {"c": kept}, {}, [])
    complete(bench, b2=contribution(REGION, advertisements=[OFFER], estates=[lost_with_it]))
    assert "p" not in table.subscriptions["s"].cuts
