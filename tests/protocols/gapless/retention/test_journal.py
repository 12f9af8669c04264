"""The journal: what the backups hold, who they are, and what they may forget."""

from gapless.events import Event, Events
from gapless.protocols.gapless.clients.sessions import Session
from gapless.protocols.gapless.epochs import epoch_of
from gapless.protocols.gapless.messages import Backup, BackupAll, BackupEnd, Body, Cuts, SessionRecord
from gapless.protocols.gapless.recovery.handover import expand
from gapless.protocols.gapless.retention.journal import PAST_MAX, WEIGHED, Journal, JournalCopy
from gapless.protocols.parts.clock import Clock

Sent = list[tuple[str, Body]]


def make() -> tuple[Journal, Sent]:
    sent: Sent = []
    return Journal(lambda name, body: sent.append((name, body)), Clock()), sent


def event(publisher: str, seq: int) -> Event:
    return Event(publisher, seq, {})


def record(client: str, admitted: int = 0) -> SessionRecord:
    session = Session(client, epoch_of(1))
    session.admitted = admitted
    return session.record()


def held(copy: JournalCopy) -> list[tuple[Event, Cuts]]:
    """What a copy would contribute: each admission with all that preceded it."""
    estate = copy.estate("b", 0)
    publishers = {*estate.before, *(name for item in estate.admissions for name in item.after)}
    return [(item.event, item.after) for item in expand(estate, publishers)]


def entries(sent: Sent) -> list[tuple[str, int, Cuts, Events]]:
    """What went to which backup: number, what is new in the past, and the publications."""
    return [(name, body.number, body.after, body.events) for name, body in sent if isinstance(body, Backup)]


def restored(body: Body) -> JournalCopy:
    assert isinstance(body, BackupAll)
    copy = JournalCopy()
    copy.restore(body)
    return copy


def test_without_backups_everything_is_held() -> None:
    journal, sent = make()
    assert journal.write([record("c")]) == journal.held == journal.number == 1
    assert sent == []


def test_admissions_weigh_by_number_and_by_bytes_until_they_are_forgotten() -> None:
    journal, _ = make()
    journal.admit([event("p", 1), event("p", 2)])
    assert journal.weight == 2
    journal.admit([Event("p", 3, {"text": "x" * 5 * WEIGHED}, bytes(5 * WEIGHED))])
    journal.write([record("c")])
    assert journal.weight == 2 + 1 + 10
    journal.forget([(1, 1)])
    assert journal.weight == 2 + 1 + 10, "a batch weighs until all of it is forgotten"
    journal.forget([(2, 2)])
    assert journal.weight == 1 + 10
    journal.forget([(3, 3)])
    assert journal.weight == 0


def test_as_much_is_held_as_the_slowest_backup_holds() -> None:
    journal, _ = make()
    journal.choose_backups({"u": 0, "w": 0})
    for _ in range(3):
        journal.write([])
    assert journal.held == 0
    journal.answered("u", 0, 3)
    assert journal.held == 0
    journal.answered("w", 0, 2)
    assert journal.held == 2
    journal.answered("w", 0, 1)
    assert journal.held == 2, "answers may be repeated, but what is held stays held"


def test_answers_of_others_and_of_other_lives_do_not_count() -> None:
    journal, _ = make()
    journal.choose_backups({"u": 4})
    journal.write([])
    journal.answered("w", 0, 1)
    journal.answered("u", 3, 1)
    assert journal.held == 0
    journal.answered("u", 4, 1)
    assert journal.held == 1


def test_entries_go_to_all_backups_with_what_was_processed_since_the_entry_before() -> None:
    journal, sent = make()
    journal.choose_backups({"u": 0})
    journal.processed("q", 1)
    journal.processed("q", 2)
    journal.write([record("c")])
    journal.admit([event("p", 1)])
    journal.processed("r", 1)
    journal.admit([event("p", 2)])
    assert entries(sent) == [
        ("u", 1, {}, []),
        ("u", 2, {"q": 2}, [event("p", 1)]),
        ("u", 3, {"r": 1}, [event("p", 2)]),
    ]


def test_a_replaced_backup_is_dismissed_and_the_new_one_gets_everything_first() -> None:
    journal, sent = make()
    journal.choose_backups({"u": 0, "w": 0})
    journal.write([record("p")])
    journal.processed("q", 5)
    journal.admit([event("p", 1)])
    for name in ("u", "w"):
        journal.answered(name, 0, 2)
    assert journal.held == 2
    sent.clear()
    journal.choose_backups({"u": 0, "x": 0})
    (name, everything), last = sent
    assert name == "x"
    assert held(restored(everything)) == [(event("p", 1), {"q": 5})]
    assert restored(everything).records["p"].admitted == 1
    assert last == ("w", BackupEnd())
    assert journal.held == 0, "nothing more is let out before the new one answers"
    journal.answered("x", 0, 2)
    assert journal.held == 2


def test_a_new_life_of_a_backup_starts_from_nothing() -> None:
    journal, sent = make()
    journal.choose_backups({"u": 0})
    journal.write([record("c")])
    journal.answered("u", 0, 1)
    sent.clear()
    journal.choose_backups({"u": 0})
    assert sent == []
    journal.choose_backups({"u": 2})
    [(name, everything)] = sent
    assert name == "u"
    assert list(restored(everything).records) == ["c"]
    assert journal.held == 0


def test_forgetting_folds_the_past_into_what_is_left() -> None:
    copy = JournalCopy()
    copy.admit(1, {"q": 1}, [event("p", 1)])
    copy.admit(2, {"r": 5}, [event("p", 2)])
    copy.admit(4, {"q": 3}, [event("p", 3)])
    copy.forget(1)
    assert held(copy) == [(event("p", 2), {"q": 1, "r": 5}), (event("p", 3), {"q": 3, "r": 5})]
    copy.forget(3)
    assert len(copy) == 1
    assert held(copy) == [(event("p", 3), {"q": 3, "r": 5})]


def test_backups_learn_what_they_may_forget() -> None:
    journal, sent = make()
    journal.choose_backups({"u": 0})
    journal.admit([event("p", 1)])
    journal.forget([(1, 1)])
    assert len(journal.copy) == 0
    assert isinstance(sent[-1][1], Backup)
    assert sent[-1][1].forget == 1
    told = len(sent)
    journal.forget([])
    assert len(sent) == told


def test_what_is_done_out_of_order_waits_for_what_stands_before_it() -> None:
    journal, _ = make()
    for seq in (1, 2, 3):
        journal.admit([event("p", seq)])
    journal.forget([(2, 2)])
    assert len(journal.copy) == 3
    journal.forget([(1, 1)])
    assert [item.number for item in journal.copy.estate("b", 0).admissions] == [3]


def test_a_copy_restored_from_the_whole_journal_is_the_same() -> None:
    journal, sent = make()
    journal.write([record("p"), record("c")])
    for seq in (1, 2, 3):
        journal.processed("q", seq)
        journal.admit([event("p", seq)])
    journal.forget([(2, 3)])
    journal.choose_backups({"u": 0})
    [(_, message)] = sent
    copy = restored(message)
    assert held(copy) == held(journal.copy) == [(event("p", 3), {"q": 3})]
    assert copy.estate("b", 0) == journal.copy.estate("b", 0)
    assert copy.records["p"].admitted == 3


def test_what_is_admitted_after_a_restart_from_the_whole_journal_comes_after_all_of_it() -> None:
    journal, sent = make()
    journal.processed("q", 4)
    journal.admit([event("p", 1)])
    journal.choose_backups({"u": 0})
    copy = restored(sent[0][1])
    journal.processed("r", 1)
    number = journal.admit([event("p", 2)])
    copy.admit(number, {"r": 1}, [event("p", 2)])
    assert held(copy)[-1] == (event("p", 2), {"q": 4, "r": 1})
    assert held(copy) == held(journal.copy)


def test_of_the_past_only_publishers_of_whom_something_is_kept_stay_and_backups_start_over() -> None:
    journal, sent = make()
    journal.choose_backups({"u": 0})
    copy = restored(sent.pop()[1])
    for number in range(PAST_MAX + 1):
        journal.processed(f"p{number}", 1)
    journal.admit([event("a", 1)])
    journal.forget([(1, 1)])
    journal.admit([event("a", 2)])
    assert journal.copy.past_size == PAST_MAX + 1
    journal.prune(lambda: {"p3", "a"})
    assert held(journal.copy) == [(event("a", 2), {"p3": 1})]
    copy = restored(sent.pop()[1])
    assert held(copy) == held(journal.copy)
    assert copy.past_size == 1
    assert journal.held < journal.number, "the backup has to answer again only for what it has not answered"
    sent.clear()
    journal.prune(lambda: {"p3", "a"})
    assert sent == [], "there is nothing to gain"


def test_a_broker_that_admits_nothing_does_not_gather_the_names_of_all_publishers() -> None:
    journal, _ = make()
    for number in range(3 * PAST_MAX):
        journal.processed(f"p{number}", 1)
        journal.prune(lambda number=number: {f"p{number}"})  # type: ignore[misc]
    journal.admit([event("a", 1)])
    [(_, past)] = held(journal.copy)
    assert len(past) <= PAST_MAX + 1
    assert f"p{3 * PAST_MAX - 1}" in past


def test_a_backup_that_starts_knows_what_came_before_the_next_admission() -> None:
    journal, sent = make()
    journal.processed("x", 4)
    journal.admit([event("a", 1)])
    journal.admit([event("b", 1)], {"y": 2})
    journal.choose_backups({"u": 0})
    copy = restored(sent.pop()[1])
    journal.admit([event("a", 2)])
    _, body = sent.pop()
    assert isinstance(body, Backup)
    copy.admit(body.number, body.after, body.events)
    assert held(copy) == held(journal.copy) == [
        (event("a", 1), {"x": 4}), (event("b", 1), {"y": 2}), (event("a", 2), {"x": 4}),
    ]  # fmt: skip


def test_a_record_that_is_younger_than_an_admission_learns_of_it_when_that_is_forgotten() -> None:
    journal, sent = make()
    journal.choose_backups({"b": 0})
    backup = restored(sent[0][1])
    journal.admit([event("p", 5), event("p", 6)], {})
    journal.write([record("p", 4)])
    journal.forget([(1, 2)])
    for _, body in sent[1:]:
        assert isinstance(body, Backup)
        backup.note(body)
    for copy in (journal.copy, backup):
        assert len(copy) == 0
        assert copy.records["p"].admitted == 6
