"""Plans of hand-overs: a function of the contributions, against rules that are restated here as dumbly as can be."""

import random

import msgspec
import pytest

from gapless.events import Event
from gapless.overlay import chain, star
from gapless.protocols.gapless.members.status import alive_status, excluded_status
from gapless.protocols.gapless.messages import Admission, Estate, SideAdvertisement, SideSubscription, Sync
from gapless.protocols.gapless.pieces import Pieces, finish
from gapless.protocols.gapless.recovery.plan import TakeoverPlan, TakeoverView, plan_in_pieces, plan_takeover
from tests.protocols.gapless.recovery.bench import contribution, event, logged, record, region_at

OUT = {"b0": excluded_status(0)}
STAR = star(4)
REGION = region_at(STAR, OUT, "b1")
"""b0, in the middle, is dead; b1, b2 and b3 are left, and b1 stands in."""


def plan(name: str = "b1", /, **contributions: Sync) -> TakeoverPlan:
    given = {member: contributions.get(member, contribution(REGION)) for member in REGION.group}
    return plan_takeover(TakeoverView(name, STAR, OUT, REGION, {}), given)


def estate(*admissions: Admission, life: int = 0, **records: object) -> Estate:
    return Estate("b0", life, records, {}, list(admissions))  # type: ignore[arg-type]


def admission(number: int, publisher: str, seq: int, **after: int) -> Admission:
    return Admission(number, event(publisher, seq), after, False)


# ---- the tree -------------------------------------------------------------------------------------------------


def test_the_lowest_in_rank_is_linked_to_all_others_and_they_to_it_alone() -> None:
    assert plan("b1").links == {"b2": "b0", "b3": "b0"}
    assert plan("b3").links == {"b1": "b0"}
    assert plan("b3").towards == {"b1": "b1", "b2": "b1"}
    assert plan("b3").via == "b0"


def test_one_who_has_returned_takes_its_own_place_again() -> None:
    status = {"b1": alive_status(1)}
    overlay = chain(3)
    region = region_at(overlay, status, "b1")
    given = {member: contribution(region) for member in region.group}
    made = plan_takeover(TakeoverView("b1", overlay, status, region, {}), given)
    assert made.links == {"b0": "b0", "b2": "b2"}
    assert made.via == "*"


# ---- sessions -------------------------------------------------------------------------------------------------


def test_the_stand_in_inherits_the_clients_of_the_dead() -> None:
    made = plan(b2=contribution(REGION, estates=[estate(c=record("c"))]))
    assert [(share.record.client, share.heir, share.broker) for share in made.inherited] == [("c", "b1", "b0")]
    assert made.heirs == {("b0", 0): "b1"}
    assert made.owners == {}


def test_who_took_a_life_over_before_does_so_again() -> None:
    made = plan(
        b2=contribution(REGION, estates=[estate(c=record("c"))]),
        b3=contribution(REGION, heirs={"b0/0": "b3/0"}),
    )
    assert made.heirs == {("b0", 0): "b3"}
    hearsay = plan(
        b2=contribution(REGION, estates=[estate(c=record("c"))], heirs={"b0/0": "b3/0"}),
    )
    assert hearsay.heirs == {("b0", 0): "b1"}, "only its own word counts"


def test_of_several_copies_the_newest_state_of_a_session_counts() -> None:
    old, new = record("c", 1, version=2, subscriptions={"s": "x = 1"}), record("c", 1, version=3)
    made = plan(b2=contribution(REGION, estates=[estate(c=new)]), b3=contribution(REGION, estates=[estate(c=old)]))
    assert [share.record for share in made.inherited] == [new]


def test_a_session_that_somebody_holds_in_a_newer_state_is_not_inherited() -> None:
    made = plan(
        b2=contribution(REGION, estates=[estate(c=record("c", 5), d=record("d", 5))]),
        b3=contribution(REGION, owned={"c": 5, "d": 4}),
    )
    assert [share.record.client for share in made.inherited] == ["d"]
    assert made.holders == {"c": "b3", "d": "b3"}


def test_a_client_that_lives_elsewhere_stays_there() -> None:
    estates = [estate(c=record("c"), d=record("d"))]
    made = plan(b2=contribution(REGION, estates=estates, homes={"c": "b9/0", "d": "b3/0"}))
    assert [share.record.client for share in made.inherited] == ["d"], "b3 takes part and speaks for itself"


def test_the_older_of_two_sessions_is_given_up_and_its_subscriptions_go_on_under_another_name() -> None:
    side = SideSubscription("s", "x = 1", {}, "c")
    offer = SideAdvertisement("a", "c", "x > 0", 1, False)
    made = plan(
        b1=contribution(REGION, owned={"c": 3}, subscriptions=[side], advertisements=[offer]),
        b2=contribution(REGION, owned={"c": 7}, subscriptions=[side], advertisements=[offer]),
    )
    assert made.owners == {"c": "b2"}
    assert [item.subscription for item in made.contributions["b1"].subscriptions] == ["s@b1"]
    assert [item.subscription for item in made.contributions["b2"].subscriptions] == ["s"]
    assert made.contributions["b1"].advertisements == []
    assert made.contributions["b2"].advertisements == [offer]


def test_what_is_inherited_anew_takes_the_place_of_what_was_held() -> None:
    offer = SideAdvertisement("a", "c", "x > 0", 1, False)
    made = plan(
        b1=contribution(REGION, owned={"c": 3}, advertisements=[offer]),
        b2=contribution(REGION, estates=[estate(c=record("c", 7))]),
    )
    assert made.owners == {"c": "b1"}
    assert made.contributions["b1"].advertisements == [], "the inherited record says what it advertises now"


@pytest.mark.parametrize("seed", range(30))
def test_each_client_is_where_its_newest_session_is(seed: int) -> None:
    dice = random.Random(seed)
    owned = {member: {c: dice.randint(1, 9) for c in "cdefg" if dice.random() < 0.4} for member in REGION.group}
    estates = {
        member: [
            estate(life=life, **{c: record(c, dice.randint(1, 9)) for c in "cdefg" if dice.random() < 0.4})
            for life in (0,)
        ]
        for member in REGION.group
    }
    given = {
        member: contribution(REGION, owned=owned[member], estates=estates[member], subscriptions=[])
        for member in REGION.group
    }
    made = plan("b1", **given)
    for client in "cdefg":
        held = [(epochs[client], member) for member, epochs in owned.items() if client in epochs]
        left = [item.records[client].epoch for items in estates.values() for item in items if client in item.records]
        newest_held = max((epoch for epoch, _ in held), default=-1)
        shares = [share for share in made.inherited if share.record.client == client]
        if left and max(left) > newest_held:
            assert [share.record.epoch for share in shares] == [max(left)]
            assert made.owners.get(client, "b1") == "b1"
        else:
            assert shares == []
            if len(held) > 1:
                assert (newest_held, made.owners[client]) in held


# ---- cuts -----------------------------------------------------------------------------------------------------


def test_the_latest_cut_that_anybody_knows_counts() -> None:
    made = plan(
        b1=contribution(REGION, known_cuts={"s": {"p": 3, "q": 4}}),
        b2=contribution(REGION, known_cuts={"s": {"p": 5}, "t": {"q": 1}}),
    )
    assert made.known_cuts == {"s": {"p": 5, "q": 4}, "t": {"q": 1}}


def test_what_goes_on_after_its_end_has_the_cuts_that_were_known_of_it() -> None:
    side = SideSubscription("s~b1", "x = 1", {}, "", ended="s")
    made = plan(b1=contribution(REGION, subscriptions=[side]), b2=contribution(REGION, known_cuts={"s": {"p": 5}}))
    assert made.known_cuts["s~b1"] == {"p": 5}


def test_an_inherited_subscription_starts_with_the_first_event_of_publishers_that_came_after_it() -> None:
    lost = record("c", subscriptions={"s": "x >= 0"}, cuts={"s": {"known": 4}}, awaited={"s": ["awaited"]})
    offers = [
        SideAdvertisement(f"a {name}", name, text, 6, False)
        for name, text in (("known", "x > 0"), ("awaited", "x > 0"), ("later", "x > 0"), ("other", "x < 0"))
    ]
    made = plan(b2=contribution(REGION, estates=[estate(c=lost)], advertisements=offers))
    assert made.known_cuts == {"s": {"later": 6}}
    unsure = msgspec.structs.replace(lost, awaited={"s": None})
    made = plan(b2=contribution(REGION, estates=[estate(c=unsure)], advertisements=offers))
    assert made.known_cuts == {}, "its broker did not know all that there were"


def test_after_a_blackout_an_inherited_subscription_starts_where_an_inherited_publisher_began_after_it() -> None:
    """No disk has the cut that the subscription was given; but what it was there before has larger stamps."""
    stamps = {1: 5, 2: 20, 3: 30}
    admitted = [Admission(seq, Event("p", seq, {"x": 1}, b"", stamp), {}, False) for seq, stamp in stamps.items()]
    lost = record("c", subscriptions={"s": "x > 0"}, awaited={"s": []}, began={"s": 10})
    ann = record("p", advertisements={"a": ("x > 0", 1, True)}, admitted=3)
    for is_found, cut in ((True, 2), (False, 4)):
        brought = msgspec.structs.replace(estate(*admitted, c=lost, p=ann), is_found=is_found)
        made = plan(b2=contribution(REGION, estates=[brought]))
        assert made.known_cuts["s"] == {"p": cut}


# ---- events ---------------------------------------------------------------------------------------------------


def test_logs_are_merged_and_it_is_known_where_each_event_came_in() -> None:
    p1, q1 = event("p", 1), event("q", 1)
    made = plan(
        b2=contribution(REGION, log=logged(p1)),
        b3=contribution(REGION, log=[*logged(p1, entered=False), *logged(q1)]),
    )
    assert made.events == [p1, q1]
    assert made.pasts == {("p", 1): {"p": 1}, ("q", 1): {"p": 1, "q": 1}}
    assert made.entered == {("p", 1): "b2", ("q", 1): "b3"}


def test_what_nobody_is_known_to_have_processed_is_doubtful() -> None:
    admitted = [admission(1, "c", 1), admission(2, "d", 1), admission(3, "c", 2), admission(4, "d", 2)]
    lost = estate(*admitted, c=record("c"), d=record("d"))
    nobody = plan(b2=contribution(REGION, estates=[lost]))
    assert nobody.doubtful == {"c": 1, "d": 1}
    somebody = plan(b2=contribution(REGION, estates=[lost]), b3=contribution(REGION, passed={"c": 2}))
    assert somebody.doubtful == {"d": 2}, "all before it was admitted, too"
    assert [item.number for item in somebody.admissions["b0", 0]] == [1, 2, 3, 4]


def test_what_is_in_the_past_of_an_admission_was_processed() -> None:
    one = estate(admission(1, "c", 1), c=record("c"))
    other = Estate("b9", 0, {"d": record("d")}, {}, [admission(1, "d", 1, c=1)])
    made = plan(b2=contribution(REGION, estates=[one, other]))
    assert made.doubtful == {"d": 1}


def test_copies_of_a_journal_that_lack_some_at_either_end_make_up_the_whole() -> None:
    items = [admission(number, "c", number) for number in range(1, 6)]
    made = plan(
        b1=contribution(REGION, estates=[estate(*items[:3], c=record("c"))]),
        b2=contribution(REGION, estates=[estate(*items[2:], c=record("c"))]),
    )
    assert [item.event.seq for item in made.admissions["b0", 0]] == [1, 2, 3, 4, 5]
    assert [item.seq for item in made.events] == [1, 2, 3, 4, 5]


# ---- the plan itself ------------------------------------------------------------------------------------------


def full() -> dict[str, Sync]:
    lost = estate(admission(1, "c", 1), c=record("c", subscriptions={"s": "x >= 0"}))
    return {
        "b1": contribution(REGION, known_cuts={"t": {"p": 2}}, log=logged(event("p", 1), event("p", 2))),
        "b2": contribution(REGION, estates=[lost], subscriptions=[SideSubscription("t", "x = 1", {}, "e")]),
        "b3": contribution(REGION, owned={"e": 1}),
    }


def test_members_come_to_the_same_plan_but_for_their_own_links() -> None:
    plans = [plan(name, **full()) for name in REGION.group]
    same = [msgspec.structs.replace(made, links={}, towards={}, via="") for made in plans]
    assert same[0] == same[1] == same[2]


def test_a_plan_changes_nothing_that_it_reads() -> None:
    given = full()
    before = msgspec.msgpack.encode(given)
    plan("b1", **given)
    assert msgspec.msgpack.encode(given) == before


def test_a_plan_made_in_pieces_is_the_same() -> None:
    units: list[int] = []

    def counted() -> Pieces[TakeoverPlan]:
        pieces = plan_in_pieces(TakeoverView("b1", STAR, OUT, REGION, {}), full())
        while True:
            try:
                units.append(next(pieces))
            except StopIteration as end:
                made: TakeoverPlan = end.value
                return made
            yield units[-1]

    assert finish(counted()) == plan("b1", **full())
    assert len(units) > 5
    assert min(units) >= 0


def test_a_plan_can_be_read() -> None:
    assert list(plan("b1", **full()).describe()) == [
        "b1, b2, b3 take over from b0",
        "b1 is the heir of b0/0, which had admitted 1 events",
        "b1 inherits c from b0",
        "3 events are merged; doubtful from c:1 on",
    ]
    with pytest.raises(AttributeError):
        plan().via = "b9"  # type: ignore[misc]


def test_only_the_first_member_adopts_what_is_in_no_journal() -> None:
    passed_by = contribution(REGION, log=logged(event("p", 1), entered=False))
    assert plan("b1", b3=passed_by).adopted == {("p", 1)}
    assert plan("b2", b3=passed_by).adopted == set()


def test_after_a_blackout_what_has_the_stamp_with_which_a_subscription_began_was_there_before_it() -> None:
    admitted = [Admission(seq, Event("p", seq, {"x": 1}, b"", 10 * seq), {}, False) for seq in (1, 2)]
    lost = record("c", subscriptions={"s": "x > 0"}, awaited={"s": []}, began={"s": 10})
    ann = record("p", advertisements={"a": ("x > 0", 1, True)}, admitted=2)
    brought = msgspec.structs.replace(estate(*admitted, c=lost, p=ann), is_found=True)
    assert plan(b2=contribution(REGION, estates=[brought])).known_cuts["s"] == {"p": 2}
