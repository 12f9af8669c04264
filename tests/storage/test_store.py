"""Data is read as it was written, after changes in any order, in single commits or one commit for all."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest

from gapless.errors import StorageError
from gapless.storage import (
    Admit,
    Change,
    Delete,
    ForgetHistory,
    HistoryRow,
    HistoryTotals,
    NoRoomError,
    Put,
    Reader,
    StorageSettings,
    Store,
    Sync,
    open_store,
)
from gapless.storage import writer as writer_module
from gapless.storage.schema import open_for_reading
from tests.storage.opened import Opened, opened

ALL = 2**63 - 1


def test_a_new_directory_is_empty_and_a_known_one_is_not_new(tmp_path: Path) -> None:
    with opened(tmp_path / "deep" / "data") as it:
        assert it.store.found.is_new
        assert it.reader.history("b1", 0, ALL, 1000) == []
        assert it.reader.entries() == {}
        assert not it.store.history_totals()
    with opened(tmp_path / "deep" / "data") as it:
        assert not it.store.found.is_new
        assert it.store.found.missing == 0


def test_history_is_read_in_pieces_that_meet_a_range(tmp_path: Path) -> None:
    with opened(tmp_path) as it:
        it.keep(*(Admit("b1", n * 10, n * 10 + 5, 3, b"%04d" % n) for n in range(100)), Admit("b2", 0, 9, 1, b"other"))
        rows = [HistoryRow(n * 10, n * 10 + 5, 3, b"%04d" % n) for n in range(100)]
        read = it.reader.history
        assert read("b1", -1, ALL, 10**9) == rows
        assert read("b1", 104, 125, 10**9) == rows[10:13]
        assert read("b1", 105, 120, 10**9) == rows[11:13]
        assert read("b1", 105, 119, 10**9) == rows[11:12]
        assert read("b1", 105, 109, 10**9) == []
        assert read("b1", 104, ALL, 9) == rows[10:13]
        assert read("b1", 104, ALL, 0) == rows[10:11]
        assert read("b1", 995, ALL, 10**9) == []
        assert read("b1", 2000, ALL, 10**9) == []
        assert it.store.history_totals()["b1"] == HistoryTotals(100, 400, 300, 0, 995)
        assert it.reader.oldest("b1", 41) == 105
        assert it.reader.oldest("b1", 400) == 995
        assert it.reader.oldest("b1", 401) is None
        it.keep(ForgetHistory("b1", 26))
        assert read("b1", -1, ALL, 10**9) == rows[3:]
        assert it.store.history_totals()["b1"] == HistoryTotals(97, 388, 291, 30, 995)


def test_entries_are_read_by_their_beginning(tmp_path: Path) -> None:
    with opened(tmp_path) as it:
        it.keep(Put("life", b"3"), Put("sub/a", b"1"), Put("sub/b", b"2"), Put("life", b"4"))
        assert it.reader.entries("sub/") == {"sub/a": b"1", "sub/b": b"2"}
        it.keep(Delete("sub/a"), Delete("nothing"))
        assert it.reader.entries() == {"life": b"4", "sub/b": b"2"}


def test_it_agrees_with_the_interface(tmp_path: Path) -> None:
    with opened(tmp_path) as it:
        store: Store = it.store
        reader: Reader = store.reader()
        assert reader.history_totals() == store.history_totals() == {}
        reader.close()


def test_failed_writes_are_reported_as_failures(tmp_path: Path) -> None:
    with opened(tmp_path) as it:
        it.keep(Put("k", b"before"))
        it.write(Put("k", b"after"), Admit("b1", 1, 2**63, 1, b""))
        assert "OverflowError" in str(it.wait_for_failure())
        with pytest.raises(StorageError, match="OverflowError"):
            it.write(Put("k", b"later"))
        assert it.reader.entries() == {"k": b"before"}
    with opened(tmp_path) as it:
        assert it.reader.entries() == {"k": b"before"}


class Model:
    def __init__(self) -> None:
        self.history: dict[str, dict[int, HistoryRow]] = {}
        self.forgotten: dict[str, int] = {}
        self.entries: dict[str, bytes] = {}

    def is_sure(self, change: Change) -> bool:
        return not isinstance(change, Admit) or change.last > self.forgotten.get(change.origin, -1)

    def apply(self, change: Change) -> None:
        match change:
            case Admit(origin, first, last, count, blob):
                self.history.setdefault(origin, {})[last] = HistoryRow(first, last, count, blob)
            case ForgetHistory(origin, upto):
                self.forgotten[origin] = max(upto, self.forgotten.get(origin, -1))
                rows_ = self.history.get(origin, {})
                self.history[origin] = {last: row for last, row in rows_.items() if last > upto}
            case Put(key, blob):
                self.entries[key] = blob
            case Delete(key):
                self.entries.pop(key, None)

    def pieces(self, origin: str, since: int, until: int) -> list[HistoryRow]:
        rows = sorted(self.history.get(origin, {}).values(), key=lambda row: row.last)
        return [row for row in rows if row.last > since and row.first <= until]


def _change(random_: random.Random) -> Change:
    name = f"b{random_.randrange(3)}"
    blob = random_.randbytes(random_.choice((0, 3, 50, 20_000)))
    number = random_.randrange(60)
    kind = random_.randrange(20)
    if kind < 12:
        return Admit(name, number, number + random_.choice((0, 0, 1, 5, 20)), random_.randrange(1, 9), blob)
    if kind < 17:
        return Put(f"k{number % 7}", blob)
    return Delete(f"k{number % 7}") if kind < 19 else ForgetHistory(name, random_.randrange(30))


def _agree(it: Opened, model: Model) -> None:
    for name in ("b0", "b1", "b2"):
        totals = it.store.history_totals().get(name)
        pieces = model.pieces(name, -1, ALL)
        assert (totals.rows if totals else 0) == len(pieces)
        if totals:
            assert totals.bytes == sum(len(row.blob) for row in pieces)
            assert totals.events == sum(row.count for row in pieces)
            assert totals.last == pieces[-1].last
        for since, until in ((-1, ALL), (10, 30), (20, 21), (40, ALL)):
            assert it.reader.history(name, since, until, ALL) == model.pieces(name, since, until)
    assert it.reader.entries() == dict(sorted(model.entries.items()))
    assert it.store.history_totals() == it.reader.history_totals()


@pytest.mark.parametrize("seed", range(6))
def test_any_changes_leave_what_the_plainest_model_has(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer_module, "FOLD_BYTES", 200_000)
    random_ = random.Random(seed)
    model = Model()
    settings = StorageSettings("never" if seed % 2 else "interval", interval_ms=1)
    for _ in range(3):
        with opened(tmp_path, settings) as it:
            _agree(it, model)
            for _ in range(12):
                changes: list[Change] = []
                for change in [_change(random_) for _ in range(random_.randrange(1, 30))]:
                    if model.is_sure(change):
                        model.apply(change)
                        changes.append(change)
                if random_.random() < 0.5:
                    it.keep(*changes)
                else:
                    it.keep_each(changes)
                _agree(it, model)


def test_large_deletions_are_done_in_small_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer_module, "CHORE_BYTES", 20_000)
    rows: list[int] = []
    with opened(tmp_path, StorageSettings("never")) as it:
        it.keep(*(Admit("b1", n, n, 1, bytes(1000)) for n in range(300)))
        adopt = it.store._adopt

        def note(touched: list[str]) -> None:
            adopt(touched)
            rows.append(it.store.history_totals()["b1"].rows)

        it.store._writer._committed = note
        it.keep(ForgetHistory("b1", 249))
        while it.store.history_totals()["b1"].rows > 50:
            time.sleep(0.001)
    assert rows[0] == 280
    assert max(before - after for before, after in pairwise(rows)) <= 20
    with opened(tmp_path, StorageSettings("never")) as it:
        assert [row.first for row in it.reader.history("b1", -1, ALL, ALL)] == list(range(250, 300))


def _held(it: Opened) -> tuple[threading.Event, threading.Event]:
    begun, go_on = threading.Event(), threading.Event()
    synced = it._synced

    def hold(batch: int) -> None:
        begun.set()
        go_on.wait()
        synced(batch)

    it.store._writer._synced = hold
    return begun, go_on


@pytest.mark.parametrize("sync", ["always", "interval", "never"])
def test_batches_that_wait_are_one_commit(tmp_path: Path, sync: Sync) -> None:
    with opened(tmp_path, StorageSettings(sync)) as it:
        begun, go_on = _held(it)
        it.write(Put("k", b"first"))
        begun.wait()
        for number in range(2_000):
            last = it.write(Put("k", b"%d" % number))
        go_on.set()
        it.wait(last)
        assert it.reports == [1, 2_001]
        assert it.reader.entries() == {"k": b"1999"}


def test_the_queue_has_a_bound(tmp_path: Path) -> None:
    it = Opened(tmp_path, StorageSettings(queue_bytes_max=10_000))
    begun, go_on = _held(it)
    it.write(Put("a", b""))
    begun.wait()
    assert it.store.room() == 10_000
    it.write(Put("b", bytes(9_000)))
    assert 0 < it.store.room() < 1_000
    last = it.write(Put("c", bytes(50_000)))  # one more is accepted, however large
    assert it.store.room() < 0
    with pytest.raises(NoRoomError, match="bytes wait for the disk"):
        it.store.write(99, [Put("d", b"")])
    go_on.set()
    it.wait(last)
    assert it.store.room() == 10_000
    assert sorted(it.reader.entries()) == ["a", "b", "c"]
    it.close()
    with pytest.raises(StorageError, match="is closed"):
        it.store.write(100, [])


def test_closing_keeps_what_was_handed_over(tmp_path: Path) -> None:
    it = Opened(tmp_path, StorageSettings("never"))
    for n in range(100):
        it.write(Admit("own", n, n, 1, bytes(n)))
    it.close()
    assert it.reports[-1] == 100
    assert not (tmp_path / "data.sqlite-wal").exists()
    with opened(tmp_path) as again:
        assert len(again.reader.history("own", -1, ALL, ALL)) == 100


def test_a_reader_sees_one_state_while_others_write(tmp_path: Path) -> None:
    with opened(tmp_path, StorageSettings("never")) as it:
        it.keep(Admit("own", 0, 0, 1, b""))
        stop = threading.Event()
        wrong: list[str] = []

        def read() -> None:
            reader = it.store.reader()
            while not stop.is_set():
                numbers = [row.last for row in reader.history("own", -1, ALL, ALL)]
                if numbers != list(range(numbers[0], numbers[-1] + 1)):
                    wrong.append(str(numbers))
            reader.close()

        thread = threading.Thread(target=read)
        thread.start()
        for n in range(1, 300):
            it.keep(Admit("own", n, n, 1, bytes(100)), *([ForgetHistory("own", n - 5)] if n % 20 == 0 else []))
        stop.set()
        thread.join()
        assert not wrong


def test_the_log_does_not_grow_without_end_while_somebody_always_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer_module, "FOLD_BYTES", 200_000)
    monkeypatch.setattr(writer_module, "LOG_BYTES_MAX", 500_000)
    stop = threading.Event()

    def read_without_a_pause() -> None:
        now, later = open_for_reading(tmp_path / "data.sqlite"), open_for_reading(tmp_path / "data.sqlite")
        now.execute("BEGIN")
        now.execute("SELECT count(*) FROM heads").fetchone()
        while not stop.wait(0.001):
            later.execute("BEGIN")
            later.execute("SELECT count(*) FROM heads").fetchone()
            now.execute("ROLLBACK")
            now, later = later, now
        now.close()
        later.close()

    with opened(tmp_path, StorageSettings("never")) as it:
        it.keep(Put("k", b""))
        thread = threading.Thread(target=read_without_a_pause)
        thread.start()
        try:
            for n in range(200):
                it.keep(Admit("own", n, n, 1, bytes(100_000)))
            assert (tmp_path / "data.sqlite-wal").stat().st_size < 5_000_000
        finally:
            stop.set()
            thread.join()


def test_an_event_loop_waits_only_for_reports(tmp_path: Path) -> None:
    """Each call awaits the report of its own batch, and many batches share a commit, as in a broker."""

    async def publish_all() -> None:
        loop = asyncio.get_running_loop()
        waiting: dict[int, asyncio.Future[None]] = {}

        def synced(batch: int) -> None:
            for number in [number for number in waiting if number <= batch]:
                waiting.pop(number).set_result(None)

        store = await asyncio.to_thread(
            partial(
                open_store,
                tmp_path,
                network="n",
                broker="b1",
                synced=lambda batch: loop.call_soon_threadsafe(synced, batch),
                failed=lambda error: loop.call_soon_threadsafe(loop.stop),
            )
        )

        async def publish(number: int) -> None:
            waiting[number] = loop.create_future()
            store.write(number, [Admit("own", number, number, 1, b"event")])
            await waiting[number]

        await asyncio.gather(*(publish(number) for number in range(1, 501)))
        reader = store.reader()
        assert len(await asyncio.to_thread(reader.history, "own", -1, ALL, ALL)) == 500
        reader.close()
        await asyncio.to_thread(store.close)

    asyncio.run(publish_all())
