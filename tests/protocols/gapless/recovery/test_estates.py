"""Copies of others' journals, and where the clients of lives that are over have gone."""

import pytest

from gapless.disk import Snapshot
from gapless.events import Event
from gapless.overlay import star
from gapless.protocols.gapless.disk import Disk
from gapless.protocols.gapless.lives import name_life
from gapless.protocols.gapless.members.status import alive_status, excluded_status
from gapless.protocols.gapless.messages import Admission, Backup, BackupAll, Cuts, Estate, Resolved, Sync
from gapless.protocols.gapless.recovery.estates import REMEMBERED_MAX
from gapless.protocols.gapless.recovery.plan import TakeoverView, plan_takeover
from gapless.protocols.gapless.retention.journal import JournalCopy
from gapless.protocols.gapless.tombstones import tombstone
from tests.protocols.gapless.recovery.bench import Bench, contribution, event, record, region_at

OUT = {"b0": excluded_status(0)}
STAR = star(4)
REGION = region_at(STAR, OUT, "b1")


def backup(number: int, *seqs: int, forget: int = 0, gone: str = "") -> Backup:
    return Backup(number, forget, {}, [], [event("c", seq) for seq in seqs], None, gone)


def backed_up(name: str = "b2") -> Bench:
    """A broker that is a backup of b0, and of b3."""
    bench = Bench(name, STAR)
    for broker in ("b0", "b3"):
        bench.state.estates.restore(broker, 0, BackupAll(0, [record("c")], [], {}))
        assert bench.state.estates.note(broker, 0, backup(1, 1))
    return bench


def divide(bench: Bench, **contributions: Sync) -> None:
    name = bench.state.name
    given = {member: contributions.get(member, contribution(REGION)) for member in REGION.group}
    made = plan_takeover(TakeoverView(name, STAR, OUT, REGION, {}), given)
    bench.state.estates.divided(made, name, {"b0": "b1"})


def test_what_is_secured_before_this_broker_has_completed_is_not_kept_on_its_disk() -> None:
    bench = backed_up()
    estates = bench.state.estates
    estates._disk = Disk(True, 1000)
    estates.resolved("b1", Resolved("b0", 0, True))
    held = len(estates)
    divide(bench, b2=contribution(REGION, estates=[LOST]))
    assert len(estates) == held
    batch = estates._disk.take()
    assert batch is not None
    assert [change for change in batch.changes if isinstance(change, Snapshot)] == []


LOST = Estate("b0", 0, {"c": record("c")}, {}, [Admission(1, event("c", 1), {}, False)])


def test_a_backup_notes_and_forgets_as_the_life_says() -> None:
    estates = backed_up().state.estates
    assert len(estates) == 2
    assert estates.note("b0", 0, backup(3, 2, 3))
    assert estates.note("b0", 0, backup(4, forget=2))
    assert len(estates) == 2, "1 and 2 of b0 are forgotten, 3 and that of b3 are there"
    assert not estates.note("b0", 1000, backup(1, 1)), "it is no backup of that life"
    estates.end("b3", 0)
    assert len(estates) == 1
    assert not estates.note("b3", 0, backup(2, 2))


def test_only_estates_of_the_dead_of_the_region_are_shared() -> None:
    bench = backed_up()
    assert bench.state.estates.share(REGION) == []
    bench.state.membership.merge(OUT)
    [found] = bench.state.estates.share(REGION)
    assert (found.broker, found.life) == ("b0", 0)
    assert [item.event.seq for item in found.admissions] == [1]


def test_an_estate_is_shared_where_its_heir_dies() -> None:
    bench = backed_up()
    bench.state.membership.merge({"b3": excluded_status(0)})
    bench.state.estates.learn({name_life("b3", 0): name_life("b0", 0)})
    bench.state.membership.merge(OUT)
    assert sorted(item.broker for item in bench.state.estates.share(REGION)) == ["b0", "b3"]


def test_all_keep_an_estate_until_its_heir_has_secured_it() -> None:
    bench = Bench("b2", STAR)
    bench.state.membership.merge(OUT)
    divide(bench, b3=contribution(REGION, estates=[LOST]))
    assert len(bench.state.estates) == 1
    bench.state.estates.resolved("b1", Resolved("b0", 0, False))
    assert len(bench.state.estates) == 1
    bench.state.estates.resolved("b1", Resolved("b0", 0, True))
    assert len(bench.state.estates) == 0


def test_the_heir_says_so_at_once_and_again_when_its_backups_hold_it() -> None:
    bench = Bench("b1", STAR)
    bench.state.membership.merge(OUT)
    bench.state.journal.choose_backups({"b2": 0})
    bench.state.journal.write([record("c", 2)])
    bench.sent.clear()
    divide(bench, b3=contribution(REGION, estates=[LOST]))
    assert bench.sent == [("*", Resolved("b0", 0, False))]
    bench.state.estates.resolve()
    assert len(bench.state.estates) == 1, "its backup has not answered"
    bench.state.journal.answered("b2", 0, bench.state.journal.number)
    bench.state.estates.resolve()
    assert bench.sent[-1] == ("*", Resolved("b0", 0, True))
    assert len(bench.state.estates) == 0


def test_a_client_is_sent_to_the_heir_of_its_broker() -> None:
    bench = Bench("b2", STAR)
    estates = bench.state.estates
    assert estates.find_home("c", name_life("b0", 0)) == "b0/0", "it lives"
    bench.state.membership.merge(OUT)
    assert estates.find_home("c", name_life("b0", 0)) is None, "who inherits it is not known yet"
    divide(bench, b3=contribution(REGION, estates=[LOST]))
    assert estates.find_home("c", name_life("b0", 0)) == "b1/0"
    assert estates.find_home("new", name_life("b0", 0)) == "b1/0", "it may begin afresh with the heir"


def test_who_held_a_session_in_a_hand_over_is_remembered() -> None:
    bench = Bench("b2", STAR)
    bench.state.membership.merge(OUT)
    divide(bench, b3=contribution(REGION, owned={"mine": 1}))
    assert bench.state.estates.find_elsewhere("mine") == "b3/0"
    assert bench.state.estates.find_elsewhere("c") is None
    bench.state.membership.merge({"b3": excluded_status(0)})
    assert bench.state.estates.find_elsewhere("mine") is None, "it is nowhere any more"


def test_heirs_of_heirs_are_followed_and_circles_end() -> None:
    bench = Bench("b2", STAR)
    estates = bench.state.estates
    bench.state.membership.merge({"b0": excluded_status(0), "b1": excluded_status(0)})
    estates.learn({name_life("b0", 0): name_life("b1", 0), name_life("b1", 0): name_life("b3", 0)})
    assert estates.find_home("c", name_life("b0", 0)) == "b3/0"
    bench.state.membership.merge({"b3": excluded_status(0)})
    estates.learn({name_life("b3", 0): name_life("b0", 0)})
    assert estates.find_home("c", name_life("b0", 0)) is None


def test_where_heirs_lead_back_it_counts_who_has_succeeded() -> None:
    bench = Bench("b2", STAR)
    bench.state.membership.merge(OUT)
    divide(bench, b3=contribution(REGION, estates=[LOST]))
    bench.state.estates.learn({name_life("b1", 0): name_life("b0", 0)})
    bench.state.membership.merge({"b0": alive_status(1), "b1": excluded_status(0)})
    bench.state.estates.divided(
        plan_takeover(TakeoverView("b2", STAR, OUT, REGION, {}), {m: contribution(REGION) for m in REGION.group}),
        "b2",
        {"b0": "b0"},
    )
    assert bench.state.estates.find_home("new", name_life("b0", 0)) == "b0/1"
    assert bench.state.estates.find_home("new", name_life("b1", 0)) == "b0/1"


def test_a_client_that_was_inherited_is_with_its_heir_or_unknown_if_that_died() -> None:
    bench = Bench("b2", STAR)
    bench.state.membership.merge(OUT)
    divide(bench, b3=contribution(REGION, estates=[LOST]))
    assert bench.state.estates.homes() == {"c": "b1/0"}
    bench.state.membership.merge({"b1": excluded_status(0)})
    assert bench.state.estates.homes() == {}
    assert bench.state.estates.find_home("c", name_life("b3", 0)) is None


def test_who_holds_a_client_already_is_remembered_for_the_next_division() -> None:
    bench = Bench("b2", STAR)
    bench.state.membership.merge(OUT)
    divide(bench, b2=contribution(REGION, estates=[LOST]), b3=contribution(REGION, owned={"c": 9}))
    assert bench.state.estates.homes() == {"c": "b3/0"}


def test_what_a_broker_took_part_in_counts_more_than_what_it_is_told() -> None:
    bench = Bench("b2", STAR)
    bench.state.membership.merge(OUT)
    divide(bench, b3=contribution(REGION, estates=[LOST]))
    bench.state.estates.learn({name_life("b0", 0): name_life("b3", 0), name_life("b9", 0): name_life("b3", 0)})
    assert bench.state.estates.heirs == {"b0/0": "b1/0", "b9/0": "b3/0"}


def test_a_returned_life_is_another_one() -> None:
    bench = backed_up()
    bench.state.membership.merge({"b0": alive_status(1)})
    assert bench.state.estates.find_home("c", name_life("b0", 1)) == "b0/1"
    assert bench.state.estates.find_home("c", name_life("b0", 0)) is None


def test_memory_of_heirs_is_bounded() -> None:
    estates = Bench("b2", STAR).state.estates
    estates.learn({name_life("b9", life): name_life("b1", 0) for life in range(REMEMBERED_MAX + 5)})
    assert len(estates.heirs) == REMEMBERED_MAX
    assert "b9/4" not in estates.heirs
    assert "b9/5" in estates.heirs


def test_it_is_known_what_had_reached_everyone_when_a_life_was_over() -> None:
    bench = Bench("b2", STAR)
    estates = bench.state.estates
    bench.state.membership.merge(OUT)
    estates.note_end("b0", 50)
    assert estates.lost_at(name_life("b0", 0)) == 50
    assert estates.lost_at(name_life("b0", 1)) == 0, "nothing is known of that one"
    bench.state.membership.merge({"b0": alive_status(3)})
    estates.note_end("b0", 70)
    assert [estates.lost_at(name_life("b0", life)) for life in range(4)] == [50, 70, 70, 0]
    estates.note_end("b0", 90)
    assert estates.lost_at(name_life("b0", 2)) == 70, "it was over then already"
    assert estates.ended_at("b0") == 70
    assert estates.agreed(name_life("b0", 3), 95) == 95, "it lives"
    assert estates.agreed(name_life("b0", 2), 95) == 70, "it may have gone on by itself"
    assert estates.agreed(name_life("b0", 2), 60) == 60
    bench.state.membership.merge({"b1": excluded_status(0)})
    assert estates.agreed(name_life("b1", 0), 60) == 60, "nobody knows"
    bench.state.membership.needs_majority = True
    assert estates.agreed(name_life("b0", 2), 95) == 95, "where brokers wait, it cannot have"
    later = Bench("b2", STAR).state.estates
    later.learn_ends(estates)
    assert later.lost_at(name_life("b0", 2)) == 70


def test_what_a_hand_over_found_to_be_lost_is_told_once() -> None:
    bench = Bench("b2", STAR)
    bench.state.membership.merge(OUT)
    divide(bench, b3=contribution(REGION, inside={"p": 1}, passed={"p": 3}))
    assert bench.state.estates.tell_lost("q", 9) == []
    assert bench.state.estates.tell_lost("p", 9) == [(2, 3)]
    assert bench.state.estates.tell_lost("p", 9) == []


def test_what_another_member_knows_to_be_lost_is_told_here_too() -> None:
    bench = Bench("b2", STAR)
    bench.state.membership.merge(OUT)
    divide(bench, b3=contribution(REGION, lost={"p": [(2, 3), (5, 9)]}))
    assert bench.state.estates.tell_lost("p", 7) == [(2, 3), (5, 7)], "a client of that name may have begun anew"


def test_who_passes_a_tombstone_on_remembers_whom_to_tell() -> None:
    estates = Bench("b2", STAR).state.estates
    estates.bury([Event("p", 1, {"x": 1}), tombstone("p", 2), tombstone("p", 3)])
    assert estates.lost == {"p": [(2, 3)]}


def test_a_session_that_is_held_here_is_not_elsewhere() -> None:
    bench = Bench("b2", STAR)
    bench.state.membership.merge(OUT)
    divide(bench, b2=contribution(REGION, owned={"mine": 1}))
    assert bench.state.estates.find_elsewhere("mine") is None


@pytest.mark.parametrize(("has_disk", "original", "way"), [
    (True, {}, "keep_inherited"), (True, None, "keep"), (False, {}, "keep"),
])  # fmt: skip
def test_what_a_life_had_inherited_is_told_apart_in_history_where_there_are_disks(
    monkeypatch: pytest.MonkeyPatch, has_disk: bool, original: Cuts | None, way: str
) -> None:
    bench = backed_up()
    bench.state.estates._disk = Disk(has_disk, 1000)
    ways: list[str] = []
    for name in ("keep", "keep_inherited"):
        monkeypatch.setattr(bench.library.history, name, lambda broker, events, name=name: ways.append(name))
    assert bench.state.estates.note("b0", 0, Backup(2, 0, {}, [], [event("c", 2)], original))
    assert ways == [way]


def test_what_was_found_of_the_region_and_is_not_in_the_plan_is_over() -> None:
    bench = Bench("b2", STAR)
    bench.state.membership.merge(OUT)
    bench.state.estates.find({("b0", 0): JournalCopy(), ("b3", 0): JournalCopy()}, {})
    divide(bench)
    assert list(bench.state.estates.all_copies()) == [("b3", 0)]
