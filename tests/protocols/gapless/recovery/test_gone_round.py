"""What comes back with a life that the others went round."""

from gapless.overlay import star
from gapless.protocols.gapless.lives import Home
from gapless.protocols.gapless.members.status import alive_status
from gapless.protocols.gapless.messages import Admission, Cuts, Estate
from gapless.protocols.gapless.recovery.gone_round import when_gone_round
from gapless.protocols.gapless.recovery.plan import TakeoverPlan, TakeoverView, plan_takeover
from tests.protocols.gapless.recovery.bench import contribution, event, logged, record, region_at

BACK = {"b0": alive_status(1)}
STAR = star(4)
REGION = region_at(STAR, BACK, "b1")
"""b0, in the middle, has returned; b1, b2 and b3 are there."""


def plan(processed: Cuts | None = None, **gone_round: int) -> TakeoverPlan:
    """b0 brings a session of p, which had published 1 to 3, and subscribed s. b2 has processed 2."""
    admissions = [Admission(seq, event("p", seq), {}, False) for seq in (1, 2, 3)]
    session = record(
        "p",
        admitted=3,
        advertisements={"p/a": ("TRUE", 1, True)},
        subscriptions={"s": "TRUE"},
        cuts={"s": {"q": 1}},
        awaited={"s": []},
        began={"s": 4},
        anew={"s": 1},
    )
    found = Estate("b0", 0, {"p": session}, {}, admissions, 3, True)
    given = {member: contribution(REGION) for member in REGION.group}
    given["b0"] = contribution(REGION, estates=[found], passed=processed or {})
    known = {f"{name}/0": at for name, at in gone_round.items()}
    given["b2"] = contribution(REGION, passed={"p": 2}, gone_round=known)
    given["b3"] = contribution(REGION, gone_round=known)
    return plan_takeover(TakeoverView("b1", STAR, BACK, REGION, {}), given)


def test_what_somebody_has_processed_counts_and_the_rest_is_as_if_it_had_not_been_published() -> None:
    made = plan(b0=7)
    [share] = made.inherited
    assert share.record.admitted == made.estates["b0", 0]["p"].admitted == 2
    assert share.record.advertisements == {"p/a": ("TRUE", 3, True)}
    assert [item.event.seq for item in made.admissions["b0", 0]] == [1, 2]
    assert [item.seq for item in made.events] == [1, 2]


def test_that_one_who_comes_back_has_processed_it_does_not_count() -> None:
    made = plan(b0=7, processed={"p": 3})
    assert [item.seq for item in made.events] == [1, 2]


def test_its_subscriptions_are_lost_and_its_clients_lie_behind() -> None:
    [share] = plan(b0=7).inherited
    lost = share.record
    assert [lost.subscriptions, lost.cuts, lost.awaited, lost.began, lost.anew] == [{}] * 5
    assert lost.behind == 7


def test_what_comes_back_in_time_is_whole() -> None:
    for made in (plan(), plan(b9=7)):
        [share] = made.inherited
        assert share.record.admitted == 3
        assert share.record.subscriptions == {"s": "TRUE"}
        assert share.record.behind == -1
        assert [item.seq for item in made.events] == [1, 2, 3]


def test_the_lowest_position_that_anybody_knows_of_such_a_life_counts() -> None:
    given = {"b1": contribution(REGION, gone_round={"b0/0": 7}), "b2": contribution(REGION, gone_round={"b0/0": 5})}
    assert when_gone_round(given) == {"b0/0": 5}


def test_with_a_life_others_went_round_those_before_it_and_what_had_come_to_it() -> None:
    left = [
        Estate("b0", 0, {}, {}, []),
        Estate("b3", 0, {}, {}, []),
        Estate("b0", -contribution(REGION).tag, {}, {}, []),
    ]
    given = {"b2": contribution(REGION, estates=left)}

    def found(**known: dict[str, object]) -> dict[Home, int]:
        return when_gone_round({**given, "b1": contribution(REGION, **known)})

    assert found(gone_round={"b0/2": 5}) == {"b0/2": 5, "b0/0": 5}, "not what is given back in this hand-over"
    assert found(gone_round={"b0/2": 5}, heirs={"b0/0": "b1/0"}) == {"b0/2": 5}, "it has an heir"
    assert found(gone_round={"b4/0": 5}, heirs={"b3/0": "b4/0"}) == {"b4/0": 5, "b3/0": 5}, "the heir is gone"


def test_what_clients_of_one_who_did_not_know_it_published_counts_as_far_as_others_have_processed_it() -> None:
    published = [event("p", seq) for seq in (1, 2, 3)]
    given = {member: contribution(REGION) for member in REGION.group}
    given["b1"] = contribution(
        REGION, heirs={"b9/0": "b1/0"}, owned={"p": 1}, passed={"p": 3, "q": 1}, log=logged(*published)
    )
    given["b2"] = contribution(REGION, passed_over=["b9/0"], passed={"p": 1})
    made = plan_takeover(TakeoverView("b1", STAR, BACK, REGION, {}), given)
    assert made.unaware == {"b1"}
    assert made.published == {"p": 1}
    assert made.contributions["b1"].passed == {"p": 1, "q": 1}
    assert [item.seq for item in made.events] == [1]
