"""What a life puts on its disk, and what it lets wait until the disk has it."""

from dataclasses import replace

import msgspec

from gapless.disk import Append, Delete, Put, Snapshot
from gapless.events import Event
from gapless.overlay import chain
from gapless.protocol import Keep
from gapless.protocols.gapless.disk import FORMAT_KEY, INTERVAL_KEYS, STATUS_KEY, Disk
from gapless.protocols.gapless.history.index import Index
from gapless.protocols.gapless.history.store import History
from gapless.protocols.gapless.lives import name_life
from gapless.protocols.gapless.members.status import Statuses, alive_status, excluded_status, next_phase
from gapless.protocols.gapless.messages import Backup, BackupAll, Interval
from gapless.protocols.gapless.recovery import persistence as keeping
from gapless.protocols.gapless.recovery.found import Found
from gapless.protocols.gapless.retention.journal import JournalCopy
from tests.protocols.gapless.recovery.bench import Bench, event, record


class Kept:
    """A life of b1 with its disk, and whom it has answered."""

    def __init__(
        self, *, has_disk: bool = True, life: int = 0, journal_bytes: int = 1 << 20, is_synced: bool = True
    ) -> None:
        self.bench = Bench("b1", chain(3), life)
        self.disk = self.bench.state.estates._disk = Disk(has_disk, journal_bytes)
        self.told: list[tuple[str, int, int]] = []
        off = () if is_synced else ("synced",)
        options = msgspec.convert({"switched_off": off}, type(self.bench.state.options))
        self.state = replace(self.bench.state, options=options)
        self.persistence = keeping.Persistence(
            self.state, self.bench.library, self.disk, life, lambda *answer: self.told.append(answer)
        )

    def step(self) -> Keep:
        """A step in which something is kept."""
        [batch] = self.persistence.end_step()
        return batch

    def admit(self, *events: Event) -> None:
        self.state.journal.admit(list(events), {})


def puts(batch: Keep) -> dict[str, bytes]:
    return {change.key: change.blob for change in batch.changes if isinstance(change, Put)}


# ---- what waits -------------------------------------------------------------------------------------------


def test_without_a_disk_nothing_waits_and_nothing_is_kept() -> None:
    kept = Kept(has_disk=False)
    kept.persistence.answer("b0", 0, 7)
    assert kept.told == [("b0", 0, 7)]
    kept.admit(event("p", 1))
    assert kept.persistence.end_step() == []
    assert kept.state.journal.held == 1, "no disk is waited for"
    assert not kept.state.journal.is_on_disk


def test_an_answer_waits_until_the_disk_has_the_batch_that_it_is_about() -> None:
    kept = Kept()
    kept.persistence.answer("b0", 0, 7)
    assert kept.step().number == 1
    kept.disk.put("more", 1)
    kept.persistence.answer("b0", 0, 8)
    assert kept.step().number == 2
    assert kept.told == []
    kept.persistence.persisted(1)
    assert kept.told == [("b0", 0, 7)]
    kept.persistence.persisted(2)
    assert kept.told == [("b0", 0, 7), ("b0", 0, 8)]
    kept.persistence.persisted(2)
    assert len(kept.told) == 2, "each is told once"


def test_of_several_answers_to_one_life_the_last_is_told() -> None:
    kept = Kept()
    for peer, life, number in (("b0", 0, 7), ("b2", 0, 3), ("b0", 0, 8), ("b0", 1, 1)):
        kept.persistence.answer(peer, life, number)
    kept.persistence.persisted(1)
    assert kept.told == [("b0", 0, 8), ("b2", 0, 3), ("b0", 1, 1)]


def test_who_keeps_its_journal_elsewhere_is_not_answered() -> None:
    kept = Kept()
    kept.persistence.answer("b0", 0, 7)
    kept.persistence.answer("b2", 0, 3)
    kept.persistence.end("b0")
    kept.persistence.persisted(1)
    assert kept.told == [("b2", 0, 3)]


def test_the_own_journal_is_held_when_the_own_disk_has_it() -> None:
    kept = Kept()
    assert kept.state.journal.is_on_disk
    kept.admit(event("p", 1))
    first = kept.step()
    kept.admit(event("p", 2), event("p", 3))
    second = kept.step()
    assert [change.number for change in (*first.changes, *second.changes) if isinstance(change, Append)] == [1, 3]
    assert kept.state.journal.held == 0
    kept.persistence.persisted(first.number)
    assert kept.state.journal.held == 1
    kept.persistence.persisted(second.number)
    assert kept.state.journal.held == 3


def test_a_step_that_adds_nothing_to_the_journal_does_not_count_for_it() -> None:
    kept = Kept()
    kept.admit(event("p", 1))
    first = kept.step()
    kept.disk.put("more", 1)
    second = kept.step()
    kept.persistence.persisted(first.number)
    assert kept.state.journal.held == 1
    kept.persistence.persisted(second.number)
    assert kept.state.journal.held == 1


def test_steps_that_keep_nothing_leave_nothing_to_wait_for() -> None:
    kept = Kept()
    kept.admit(event("p", 1))
    kept.step()
    assert kept.persistence.end_step() == kept.persistence.end_step() == []
    assert len(kept.persistence._entries) == 1


def test_without_the_rule_about_disks_nobody_waits_but_all_is_kept() -> None:
    kept = Kept(is_synced=False)
    kept.persistence.answer("b0", 0, 7)
    assert kept.told == [("b0", 0, 7)]
    kept.admit(event("p", 1))
    assert kept.state.journal.held == 1
    assert any(isinstance(change, Append) for change in kept.step().changes)


def test_history_hears_how_far_the_disk_is() -> None:
    kept = Kept()
    kept.persistence.persisted(5)
    assert kept.bench.library.history.persisted == 5


# ---- what is put on it ------------------------------------------------------------------------------------


def test_statuses_are_put_when_they_have_changed() -> None:
    kept = Kept()
    assert msgspec.msgpack.decode(puts(kept.step())[STATUS_KEY]) == {}
    assert kept.persistence.end_step() == []
    kept.state.membership.merge({"b2": excluded_status(0)})
    assert msgspec.msgpack.decode(puts(kept.step())[STATUS_KEY], type=Statuses) == {"b2": excluded_status(0)}


def test_the_index_of_history_is_put_and_taken_off() -> None:
    kept = Kept()
    kept.step()
    kept.bench.library.index.kept(Interval(0, 9, {}))
    assert list(puts(kept.step())) == [f"{INTERVAL_KEYS}9"]
    kept.bench.library.index.forgotten(Interval(0, 9, {}))
    assert kept.step().changes == [Delete(f"{INTERVAL_KEYS}9")]


def test_a_journal_of_which_much_has_gathered_is_written_as_a_whole_whosever_it_is() -> None:
    kept = Kept(journal_bytes=0)
    estates = kept.state.estates
    estates.restore("b0", 0, BackupAll(0, [record("c")], [], {}))
    kept.step()
    for number in range(1, 9):
        kept.admit(event("p", number))
        estates.note("b0", 0, Backup(number, 0, {}, [], [event("c", number)], None))
    wholes = [change for change in kept.step().changes if isinstance(change, Snapshot)]
    assert [change.journal for change in wholes] == [name_life("b1", 0), name_life("b0", 0)]
    own, other = (msgspec.msgpack.decode(change.blob, type=BackupAll) for change in wholes)
    assert {item.event.publisher for item in own.admissions} == {"p"}
    assert {item.event.publisher for item in other.admissions} == {"c"}


# ---- earlier and later lives ------------------------------------------------------------------------------


def found(**copies: JournalCopy) -> Found:
    index = Index()
    index.learn([Interval(0, 30, {})])
    status = {"b0": excluded_status(0), "b1": excluded_status(1)}
    over = {name_life("b2", 0): name_life("b0", 0)}
    return Found(status, {(name, 0): copy for name, copy in copies.items()}, over, History(1 << 20), index)


def test_what_an_earlier_life_left_is_taken_over_but_not_its_opinion_of_itself() -> None:
    kept = Kept(life=1)
    kept.persistence.take_over(found(b0=JournalCopy()))
    assert kept.state.membership.status == {"b0": excluded_status(0), "b1": alive_status(1)}
    assert [key for key, copy in kept.state.estates.all_copies().items() if copy.is_found] == [("b0", 0)]
    assert kept.state.estates.over() == {name_life("b2", 0): name_life("b0", 0)}
    assert kept.state.waves.final == 30
    assert kept.state.journal.clock.next() > 30


def test_only_a_later_life_has_to_wait_for_what_may_be_on_disks() -> None:
    waits = {}
    for life in (0, 1):
        for has_disk in (False, True):
            membership = Kept(life=life, has_disk=has_disk).state.membership
            assert membership.has_disk == has_disk
            membership.is_patient = True
            membership.suspect("b0")
            waits[life, has_disk] = membership.is_cut_off()
    assert waits == {(0, False): False, (0, True): False, (1, False): False, (1, True): True}


def test_what_was_found_is_dropped_once_this_life_is_taken_in() -> None:
    kept = Kept(life=1)
    kept.persistence.take_over(found(b0=JournalCopy()))
    kept.step()
    assert kept.state.estates.all_copies()
    kept.state.membership.merge({"b1": next_phase(alive_status(1))})
    kept.step()
    assert not kept.state.estates.all_copies()


def test_the_next_life_gets_the_copies_and_the_own_journal_if_there_is_one() -> None:
    kept = Kept()
    kept.state.estates.restore("b0", 0, BackupAll(0, [record("c")], [], {}))
    assert list(kept.persistence.give_up(0).copies) == [("b0", 0)]
    kept.admit(event("p", 1))
    left = kept.persistence.give_up(0)
    assert left.copies["b1", 0] is kept.state.journal.copy
    assert left.history is kept.bench.library.history
    assert left.index is kept.bench.library.index


def test_a_disk_begins_with_its_format() -> None:
    assert list(puts(Kept().step())) == [FORMAT_KEY, STATUS_KEY]
