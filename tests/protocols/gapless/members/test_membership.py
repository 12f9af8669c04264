"""Who lives: opinions that merge, and who may exclude whom.

          b0
        /    \\
      b1      b2
     /  \\    /  \\
    b3   b4 b5   b6
"""

import random

from hypothesis import given
from hypothesis import strategies as st

from gapless.overlay import binary, chain
from gapless.protocols.gapless.lives import LIFE_STEP, Status
from gapless.protocols.gapless.members.membership import Membership
from gapless.protocols.gapless.members.status import (
    FIRST,
    Statuses,
    alive_status,
    excluded_status,
    is_excluded,
    is_unsettled,
    life_of,
    next_phase,
)

TREE = binary(2)
F = 1
OUT = excluded_status(0)
UNSETTLED = Status(3)


def make(name: str, life: int = 0, f: int = F) -> Membership:
    return Membership(name, life, TREE, f)


def suspect(member: Membership, *names: str, witness: str = "") -> Membership:
    """The failure detector suspects these; so does the witness."""
    for name in names:
        member.suspect(name)
        if witness:
            member.accuse(witness, name, member.life(name), True)
    return member


# ---- opinions ---------------------------------------------------------------------------------------------


def test_only_what_is_larger_is_news() -> None:
    member = make("b1")
    assert member.merge({"b0": OUT, "b2": FIRST}) == {"b0": OUT}
    assert member.merge({"b0": FIRST, "b2": UNSETTLED}) == {"b2": UNSETTLED}
    assert member.merge({"b0": alive_status(1)}) == {"b0": alive_status(1)}
    assert member.status == {"b0": alive_status(1), "b2": UNSETTLED}


@given(
    st.lists(st.dictionaries(st.sampled_from(TREE.brokers), st.integers(0, 5).map(Status)), max_size=6), st.randoms()
)
def test_news_in_any_order_gives_the_same_view(news: list[Statuses], dice: random.Random) -> None:
    one, other = make("b1"), make("b1")
    for status in news:
        one.merge(status)
    shuffled = list(news)
    dice.shuffle(shuffled)
    for status in (*shuffled, *news):
        other.merge(status)
    assert one.status == other.status
    assert all(value == max(s.get(name, 0) for s in news) for name, value in one.status.items())


def test_a_status_is_a_life_and_whether_it_is_settled_or_out() -> None:
    for life in range(3):
        begins, out = alive_status(life), excluded_status(life)
        assert life_of(begins) == life_of(next_phase(begins)) == life_of(out) == life
        assert is_excluded(out)
        assert not is_excluded(begins)
        assert not is_excluded(next_phase(begins))
        assert begins < next_phase(begins) < out < alive_status(life + 1)
        assert is_unsettled(out)
    assert not is_unsettled(alive_status(0)), "a first life is settled from the beginning"
    assert is_unsettled(alive_status(1))
    assert not is_unsettled(next_phase(alive_status(1)))
    assert is_unsettled(next_phase(next_phase(alive_status(1)))), "and may have to be taken in again"


def test_lives_that_begin_by_the_clock_fit_into_a_message() -> None:
    milliseconds_of_the_year_2100 = 4_102_444_800_000
    assert excluded_status((milliseconds_of_the_year_2100 + 1) * LIFE_STEP) < 1 << 63


def test_an_excluded_life_stays_excluded() -> None:
    member = make("b1")
    member.merge({"b0": OUT})
    member.merge({"b0": alive_status(0)})
    assert not member.lives("b0", 0)
    member.merge({"b0": alive_status(1)})
    assert member.lives("b0", 1)


# ---- who may exclude whom ---------------------------------------------------------------------------------


def test_the_parent_judges_on_the_word_of_its_own_detector_and_a_witness() -> None:
    assert suspect(make("b1"), "b3", witness="b4").verdicts() == {"b3": OUT}
    assert suspect(make("b0"), "b3", witness="b4").verdicts() == {}
    assert suspect(make("b4"), "b3", witness="b1").verdicts() == {}
    assert suspect(make("b5"), "b3", witness="b4").verdicts() == {}


def test_a_suspicion_that_nobody_shares_counts_only_when_it_is_overdue() -> None:
    member = suspect(make("b1"), "b3")
    assert member.verdicts() == {}
    member.grow_overdue("b3")
    assert member.verdicts() == {"b3": OUT}


def test_what_is_taken_back_in_time_does_no_harm() -> None:
    member = suspect(make("b1"), "b3", witness="b4")
    member.accuse("b4", "b3", 0, False)
    assert member.verdicts() == {}
    member.grow_overdue("b3")
    member.trust("b3")
    member.suspect("b3")
    assert member.verdicts() == {}
    member.trust("b3")
    member.accuse("b4", "b3", 0, True)
    assert member.verdicts() == {}, "another's suspicion is not enough"


def test_a_broken_link_excludes_only_its_lower_end() -> None:
    upper, lower = suspect(make("b1"), "b3"), suspect(make("b3"), "b1")
    upper.grow_overdue("b3")
    lower.grow_overdue("b1")
    assert upper.verdicts() == {"b3": OUT}
    assert lower.verdicts() == {}


def test_the_nearest_ancestor_that_is_left_judges() -> None:
    member = make("b0")
    member.merge({"b1": OUT})
    assert suspect(member, "b3", witness="b4").verdicts() == {"b3": OUT}


def test_one_verdict_may_make_the_judge_of_the_next() -> None:
    assert suspect(make("b0", f=2), "b3", "b1", witness="b4").verdicts() == {"b1": OUT, "b3": OUT}


def test_the_root_needs_every_neighbour_that_can_be_heard() -> None:
    member = suspect(make("b1"), "b0", witness="b3")
    member.grow_overdue("b0")
    assert member.verdicts() == {}
    member.accuse("b2", "b0", 0, True)
    assert member.verdicts() == {"b0": OUT}


def test_of_those_who_cannot_be_heard_no_word_is_needed() -> None:
    member = suspect(make("b1", f=2), "b0", witness="b3")
    member.suspect("b2")
    assert member.verdicts()["b0"] == OUT


def test_who_suspects_more_than_f_and_more_than_it_hears_excludes_nobody() -> None:
    member = suspect(make("b1"), "b0", "b2", "b3", witness="b4")
    for name in ("b0", "b2", "b3"):
        member.grow_overdue(name)
    assert member.verdicts() == {}
    member.trust("b0")
    assert member.verdicts() == {"b3": OUT}


def test_who_is_out_already_is_not_counted() -> None:
    member = suspect(make("b1"), "b4", witness="b3")
    assert member.verdicts() == {"b4": OUT}
    assert suspect(member, "b3", witness="b0").verdicts() == {"b3": OUT}


def test_an_accusation_against_an_earlier_life_does_not_count() -> None:
    member = make("b1")
    member.accuse("b2", "b0", 0, True)
    member.merge({"b0": alive_status(1)})
    member.merge({"b0": next_phase(alive_status(1))})
    member.suspect("b0")
    assert member.verdicts() == {}
    member.accuse("b2", "b0", 1, True)
    assert member.verdicts() == {"b0": excluded_status(1)}


def test_a_suspicion_counts_against_the_life_that_was_known_when_it_arose() -> None:
    member = suspect(make("b1"), "b3", witness="b4")
    member.grow_overdue("b3")
    member.merge({"b3": alive_status(1)})
    assert member.verdicts() == {}
    assert member.suspects("b3")


def test_an_ancestor_that_is_too_far_away_to_watch_it_judges_nobody() -> None:
    line = chain(9)
    member = Membership("b7", LIFE_STEP, line, 2)
    member.merge({name: alive_status(LIFE_STEP) for name in ("b5", "b6")})
    assert line.root == "b4"
    assert line.distance("b4", "b8") > member.watch
    assert suspect(member, "b8", witness="b6").verdicts() == {"b8": OUT}
    near = Membership("b7", LIFE_STEP, line, 2)
    near.merge({"b6": alive_status(LIFE_STEP)})
    assert suspect(near, "b8", witness="b6").verdicts() == {}, "b5 watches it"


# ---- those who return -------------------------------------------------------------------------------------


def test_a_broker_that_was_not_taken_in_yet_judges_nobody() -> None:
    member = suspect(make("b1", life=1), "b3", witness="b4")
    member.grow_overdue("b3")
    assert member.verdicts() == {}
    member.merge({"b1": next_phase(alive_status(1))})
    assert member.verdicts() == {"b3": OUT}


def test_and_the_others_judge_in_its_place() -> None:
    member = make("b0")
    member.merge({"b1": alive_status(1)})
    suspect(member, "b3", witness="b4")
    assert member.verdicts() == {"b3": OUT}
    settled = make("b0")
    settled.merge({"b1": alive_status(1)})
    settled.merge({"b1": next_phase(alive_status(1))})
    assert suspect(settled, "b3", witness="b4").verdicts() == {}


def test_who_was_taken_in_once_goes_on_judging_while_it_is_taken_in_again() -> None:
    member = suspect(make("b1", life=1), "b3", witness="b4")
    assert not member.was_taken_in
    member.merge({"b1": next_phase(next_phase(alive_status(1)))})
    assert member.was_taken_in
    assert member.verdicts() == {"b3": OUT}
    assert make("b1").was_taken_in, "a first life always was"


def test_who_hears_nobody_knows_it() -> None:
    member = make("b3", f=0)
    assert member.hears_somebody()
    suspect(member, "b1")
    assert not member.hears_somebody()


# ---- after a blackout ---------------------------------------------------------------------------------------


def returned(name: str, f: int = F) -> Membership:
    member = make(name, LIFE_STEP, f)
    member.has_disk = True
    return member


def test_who_returns_with_a_disk_and_misses_more_than_f_waits_for_them() -> None:
    member = returned("b1")
    assert not suspect(member, "b0").is_cut_off()
    assert suspect(member, "b2").is_cut_off()
    assert member.missing() == ["b0", "b2"]
    assert member.verdicts() == {}
    member.trust("b2")
    assert member.hear("b2")
    assert not member.is_cut_off()


def test_who_is_out_on_the_disk_is_missed_as_well() -> None:
    member = returned("b1")
    member.merge({"b0": OUT})
    assert not member.is_cut_off()
    assert suspect(member, "b2").is_cut_off()


def test_for_a_while_it_waits_for_any_of_them() -> None:
    member = returned("b1")
    member.is_patient = True
    assert not member.is_cut_off()
    assert suspect(member, "b0", witness="b3").is_cut_off()
    member.is_patient = False
    assert not member.is_cut_off()


def test_who_was_taken_in_again_judges_as_ever() -> None:
    member = returned("b1", f=2)
    member.is_patient = True
    suspect(member, "b0")
    member.merge({"b1": next_phase(alive_status(LIFE_STEP))})
    assert not member.is_cut_off()


def stood_still(name: str, f: int) -> Membership:
    """One that was there all the time."""
    member = make(name, f=f)
    member.has_disk = True
    return member


def test_who_was_there_all_the_time_misses_for_a_while_who_has_just_come_back() -> None:
    member = suspect(stood_still("b3", 1), "b0", witness="b4")  # it watches b0, b1 and b4
    member.merge({"b1": alive_status(LIFE_STEP), "b4": alive_status(LIFE_STEP)})
    assert not member.is_cut_off()
    member.is_patient = True
    assert member.is_cut_off()
    assert member.verdicts() == {}
    member.merge({name: next_phase(alive_status(LIFE_STEP)) for name in ("b1", "b4")})
    assert not member.is_cut_off(), "they were taken in"


def test_who_is_trusted_again_is_missed_until_it_has_said_something() -> None:
    member = suspect(stood_still("b3", 1), "b0", "b1", "b4")
    assert member.is_cut_off()
    member.trust("b1")
    member.trust("b4")
    assert member.is_cut_off()
    assert member.hear("b1")
    assert member.hear("b4")
    assert not member.is_cut_off()
