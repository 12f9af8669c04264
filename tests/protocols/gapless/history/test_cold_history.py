"""History on a disk that is larger than the memory: what the memory has dropped is looked up, and counts as it did."""

from collections.abc import Sequence

import msgspec

from gapless.disk import Admit, Change, DiskContents, ForgetHistory, HistoryRow
from gapless.events import Attributes, Event
from gapless.overlay import chain
from gapless.protocol import HistoryRead, ReadHistory
from gapless.protocols.gapless.disk import Disk
from gapless.protocols.gapless.history.library import Library
from gapless.protocols.gapless.history.mirror import Mirror
from gapless.protocols.gapless.history.store import RUN_BYTES, History
from gapless.protocols.gapless.messages import Fetch, Fetched, Fetching, HistoryMessage, Interval
from gapless.protocols.gapless.options import GaplessOptions
from gapless.protocols.gapless.recovery.found import read_disk
from gapless.simulator import check_scenario, generate, run_scenario
from gapless.simulator.disks import replay


def everything(attributes: Attributes) -> bool:
    return True


def run(publisher: str, seq: int, stamp: int, size: int = 0, count: int = 1) -> list[Event]:
    return [Event(publisher, seq + n, {"x": seq + n}, b"." * size, stamp) for n in range(count)]


class Bench:
    """A history with a memory for few runs, and its disk."""

    def __init__(self, runs: int = 3, disk_bytes: int = 1 << 30) -> None:
        self.disk = Disk(True, 1 << 20)
        self.history = History(runs * (RUN_BYTES + 40))
        self.history.mirror = Mirror(self.disk, disk_bytes)
        self.changes: list[Sequence[Change]] = []

    def keep(self, publisher: str, seq: int, stamp: int, size: int = 0) -> None:
        """A run, in a step of its own, which the disk takes at once."""
        assert self.history.mirror is not None
        self.history.keep("b0", run(publisher, seq, stamp, size))
        self.history.mirror.end_step()
        batch = self.disk.take()
        assert batch is not None
        self.changes.append(batch.changes)
        self.history.persisted = batch.number

    def rows(self, since: int, until: int) -> list[HistoryRow]:
        found = replay(self.changes).history.get("b0", ())
        return [row for row in found if row.last > since and row.first <= until]

    def read(self, since: int, until: int) -> list[str]:
        rows = self.rows(since, until)
        return [event.id for event in self.history.read("b0", since, until, everything, rows).events]


def test_what_the_memory_has_dropped_is_on_the_disk_and_nothing_counts_as_dropped() -> None:
    bench = Bench()
    for seq in range(1, 11):
        bench.keep("p", seq, 10 * seq)
    assert len(bench.history) <= 3
    assert (bench.history.dropped, bench.history.cold("b0", 0)) == (0, 70)
    assert bench.history.cold("b0", 70) == 0, "the rest is in memory"
    assert bench.read(20, 90) == [f"p:{seq}" for seq in range(3, 10)], "each once"


def test_what_the_disk_does_not_have_yet_stays_in_memory() -> None:
    bench = Bench()
    for seq in range(1, 11):
        bench.history.keep("b0", run("p", seq, 10 * seq))
    assert len(bench.history) == 10
    assert bench.history.cold("b0", 0) == 0


def test_beyond_its_bytes_the_oldest_goes_from_the_disk_and_it_is_known_up_to_where() -> None:
    bench = Bench(disk_bytes=8_000)
    for seq in range(1, 41):
        bench.keep("p", seq, 10 * seq, size=400)
        bench.history.forget(0)
    assert bench.history.dropped > 0
    assert bench.history.mirror is not None
    assert bench.history.mirror.size <= 8_000
    first = bench.history.dropped // 10 + 1
    bench.keep("p", 41, 410)
    assert bench.read(bench.history.dropped, 410) == [f"p:{seq}" for seq in range(first, 42)]


def test_what_is_too_old_goes_from_the_memory_and_from_the_disk() -> None:
    plain = History(1 << 20)
    bench = Bench(runs=100, disk_bytes=1 << 30)
    for seq in range(1, 11):
        plain.keep("b0", run("p", seq, 10 * seq))
        bench.keep("p", seq, 10 * seq, size=1 << 18)
    plain.forget(40)
    bench.history.forget(40)
    assert next(event.id for event in plain.read("b0", 0, 99, everything).events) == "p:5"
    assert (plain.dropped, bench.history.dropped) == (40, 40)
    batch = bench.disk.take()
    assert batch is not None
    assert [change for change in batch.changes if isinstance(change, ForgetHistory)][-1] == ForgetHistory("b0", 40)


def test_a_number_that_was_noted_twice_counts_as_it_was_noted_last() -> None:
    for runs in (3, 100):
        bench = Bench(runs)
        bench.keep("p", 1, 10)
        bench.keep("p", 2, 20)
        bench.keep("p", 2, 50)
        for seq in range(1, 6):
            bench.keep("q", seq, 50 + seq)
        assert bench.read(0, 30) == ["p:1"], "nobody but a life that died had p:2 at 20"
        assert bench.read(30, 52) == ["p:2", "q:1", "q:2"]


def test_a_start_reads_all_of_it_but_keeps_the_last_in_memory() -> None:
    bench = Bench()
    for seq in range(1, 11):
        bench.keep("p", seq, 10 * seq)
    bench.keep("p", 10, 200)
    contents = replay(bench.changes)
    found = read_disk(
        DiskContents(contents.journals, {name: iter(rows) for name, rows in contents.history.items()}, {}),
        Disk(True, 1 << 20),
        GaplessOptions(history_bytes=3 * (RUN_BYTES + 40)),
    )
    assert len(found.history) <= 3
    assert found.history.cold("b0", 0) > 0
    page = found.history.read("b0", 0, 300, everything, bench.rows(0, 300))
    assert [(event.id, event.stamp) for event in page.events][-2:] == [("p:9", 90), ("p:10", 200)]


class Answers:
    """A library with that history, whom it tells what, and what it asks of its disk."""

    def __init__(self, bench: Bench) -> None:
        self.told: list[tuple[str, HistoryMessage]] = []
        self.put_off: list[tuple[str, HistoryMessage]] = []
        self.asked: list[ReadHistory] = []
        self.bench = bench
        self.library = Library(
            "b0", 0, 1, lambda since, until: {}, chain(2), 2, lambda name: False,
            self._send, lambda timer: None, self.asked.append,
        )  # fmt: skip
        self.library.history = bench.history

    def _send(self, peer: str, message: HistoryMessage) -> None:
        (self.put_off if isinstance(message, Fetching) else self.told).append((peer, message))

    def answer(self) -> None:
        asked = self.asked.pop()
        self.library.looked_up(HistoryRead(asked, self.bench.rows(asked.since, asked.until)))

    def events(self) -> list[str]:
        [(_, message)] = self.told
        assert isinstance(message, Fetched)
        return [event.id for event in message.events]


def test_who_asks_for_it_is_answered_when_the_disk_has_answered() -> None:
    bench = Bench()
    for seq in range(1, 11):
        bench.keep("p", seq, 10 * seq)
    answers = Answers(bench)
    answers.library.receive("b1", Fetch(0, 1, "b0", 0, 100, "x >= 2"))
    assert (answers.told, answers.asked) == ([], [ReadHistory(1, "b0", 0, 70)])
    answers.answer()
    assert answers.events() == [f"p:{seq}" for seq in range(2, 11)]
    answers.library.looked_up(HistoryRead(ReadHistory(1, "b0", 0, 70), []))
    assert len(answers.told) == 1, "once"


def test_who_asks_again_while_the_disk_is_slow_is_told_that_it_takes_a_while() -> None:
    bench = Bench()
    for seq in range(1, 11):
        bench.keep("p", seq, 10 * seq)
    answers = Answers(bench)
    for peer, request in (("b1", 1), ("b1", 2), ("b2", 1)):
        answers.library.receive(peer, Fetch(0, request, "b0", 0, 100, "TRUE"))
    assert answers.put_off == [("b1", Fetching(0, 1)), ("b1", Fetching(0, 2)), ("b2", Fetching(0, 1))]
    assert [asked.request for asked in answers.asked] == [1, 2], "one for each who asks"
    answers.answer()
    answers.answer()
    assert sorted(peer for peer, _ in answers.told) == ["b1", "b2"]
    answers.library.receive("b1", Fetch(0, 3, "b0", 0, 100, "TRUE"))
    assert len(answers.asked) == 1


def test_what_the_memory_drops_meanwhile_is_looked_up_as_well() -> None:
    bench = Bench()
    for seq in range(1, 11):
        bench.keep("p", seq, 10 * seq)
    answers = Answers(bench)
    answers.library.receive("b1", Fetch(0, 1, "b0", 0, 100, "TRUE"))
    for seq in range(11, 20):
        bench.keep("p", seq, 10 * seq)
    answers.answer()
    assert answers.told == []
    answers.answer()
    assert answers.events() == [f"p:{seq}" for seq in range(1, 11)]


def test_the_age_is_told_by_waves() -> None:
    bench = Bench(runs=100)
    library = Library(
        "b0", 0, 1, lambda since, until: {}, chain(2), 2, lambda name: False, lambda peer, message: None,
        lambda timer: None, age_us=50,
    )  # fmt: skip
    library.history = bench.history
    bench.history.mirror = None
    for seq in range(1, 11):
        bench.history.keep("b0", run("p", seq, 10 * seq))
    library.note(Interval(0, 100, {}))
    assert library.dropped() == 50


def test_random_runs_with_little_memory_lose_nothing() -> None:
    """Seeds with disks and blackouts whose brokers look much up."""
    for seed in (2, 5):
        drawn = generate(seed, "gapless", "crash,disk,blackout")
        options = {**drawn.protocol.options, "history_bytes": 500}
        scenario = msgspec.structs.replace(drawn, protocol=msgspec.structs.replace(drawn.protocol, options=options))
        check_scenario(scenario)
        result = run_scenario(scenario)
        assert result.trace is not None
        members = {row.subscription_id for row in result.trace.subscriptions if row.subscription_id.startswith("g.")}
        told = [row for row in result.trace.skipped if row.subscription_id not in members]  # what others of a group got
        assert told == []


def test_pieces_are_what_the_disk_is_told() -> None:
    bench = Bench()
    bench.keep("p", 1, 10)
    [piece] = [change for change in bench.changes[0] if isinstance(change, Admit)]
    assert (piece.origin, piece.first, piece.last, piece.count) == ("b0", 10, 10, 1)
