"""Disks that lose or change data or fail: reported data is read as it was written, or the store reports an error."""

from __future__ import annotations

import resource
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from gapless.errors import StorageError
from gapless.storage import Admit, DamagedError, HistoryRow, Put, StorageSettings
from gapless.storage.inspection import check_directory
from tests.storage import torture
from tests.storage.opened import opened

ALL = 2**63 - 1
NEVER = StorageSettings("never")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("torture")


@pytest.mark.parametrize("seed", range(25))
def test_no_damage_of_a_file_goes_undetected(seed: int, folder: Path) -> None:
    torture.damaged_file(folder, seed)


@pytest.mark.parametrize("seed", range(8))
def test_no_damage_goes_undetected_when_a_damaged_file_is_written_to(seed: int, folder: Path) -> None:
    torture.used_file(folder, seed)


@pytest.mark.parametrize("seed", range(8))
def test_no_damage_of_a_log_goes_undetected(seed: int, folder: Path) -> None:
    torture.damaged_log(folder, seed)


def test_a_writer_that_is_killed_leaves_all_that_it_reported(folder: Path) -> None:
    torture.killed_writer(folder, 1)


def _turn_over(file: Path, text: bytes) -> None:
    """Change one bit at each occurrence of a text in a file. A page that was split may contain an unused copy."""
    whole = file.read_bytes()
    assert text in whole
    file.write_bytes(whole.replace(text, bytes([text[0] ^ 1]) + text[1:]))


def test_a_damaged_piece_of_history_is_named_exactly_and_can_be_repaired(tmp_path: Path) -> None:
    rows = [HistoryRow(n * 10, n * 10 + 5, 1, b"piece %d " % n * 20) for n in range(50)]
    admitted = [Admit("b1", row.first, row.last, row.count, row.blob) for row in rows]
    with opened(tmp_path, NEVER) as it:
        it.keep(*admitted, Admit("b2", 1, 1, 1, b"untouched"), Put("life", b"7"))
    _turn_over(tmp_path / "data.sqlite", rows[20].blob)
    with opened(tmp_path, NEVER) as it:
        read = it.reader.history
        assert read("b1", -1, ALL, ALL) == rows[:20]
        with pytest.raises(DamagedError, match="the history of b1 from 195 to 209 is damaged") as caught:
            read("b1", 195, ALL, ALL)
        assert (caught.value.kind, caught.value.name, caught.value.since, caught.value.until) == (
            "history", "b1", 195, 209,
        )  # fmt: skip
        assert read("b1", 209, ALL, ALL) == rows[21:]
        assert read("b2", -1, ALL, ALL) == [HistoryRow(1, 1, 1, b"untouched")]
        assert it.reader.entries() == {"life": b"7"}
        it.keep(admitted[20])
        assert read("b1", -1, ALL, ALL) == rows


def test_a_row_in_the_place_of_another_is_damaged(tmp_path: Path) -> None:
    with opened(tmp_path, NEVER) as it:
        it.keep(*(Admit("b1", n, n, 1, b"%d" % n) for n in range(5)), Put("a", b"1"), Put("b", b"2"))
    connection = sqlite3.connect(tmp_path / "data.sqlite")
    connection.execute(
        "UPDATE history SET (crc, blob) = (SELECT crc, blob FROM history WHERE first = 1) WHERE first = 3"
    )
    connection.execute("UPDATE entries SET (crc, blob) = (SELECT crc, blob FROM entries WHERE key = 'a')")
    connection.commit()
    connection.close()
    with opened(tmp_path, NEVER) as it:
        assert [row.first for row in it.reader.history("b1", -1, ALL, ALL)] == [0, 1, 2]
        with pytest.raises(DamagedError, match="from 2 to 3 is damaged"):
            it.reader.history("b1", 2, ALL, ALL)
        with pytest.raises(DamagedError, match="the entry 'b' is damaged"):
            it.reader.entries()


def test_a_range_that_has_changed_hides_nothing(tmp_path: Path) -> None:
    with opened(tmp_path, NEVER) as it:
        it.keep(*(Admit("b1", n * 10, n * 10 + 5, 1, b"%d" % n) for n in range(5)))
    connection = sqlite3.connect(tmp_path / "data.sqlite")
    connection.execute("UPDATE history SET first = 1000 WHERE first = 20")
    connection.commit()
    connection.close()
    with opened(tmp_path, NEVER) as it:
        with pytest.raises(DamagedError) as caught:
            it.reader.history("b1", 15, 27, ALL)
        assert caught.value.until == 27
        with pytest.raises(DamagedError) as caught:
            it.reader.history("b1", 15, ALL, ALL)
        assert caught.value.until == 29


@pytest.mark.parametrize(
    ("gone", "since", "until"), [("first = 0", -1, 0), ("first BETWEEN 4 AND 6", 3, 6), ("first = 9", 8, ALL)]
)
def test_rows_that_are_not_there_are_missed(gone: str, since: int, until: int, tmp_path: Path) -> None:
    with opened(tmp_path, NEVER) as it:
        it.keep(*(Admit("b1", n, n, 1, b"%d" % n) for n in range(10)))
    connection = sqlite3.connect(tmp_path / "data.sqlite")
    connection.execute(f"DELETE FROM history WHERE {gone}")
    connection.commit()
    connection.close()
    with opened(tmp_path, NEVER) as it:
        with pytest.raises(DamagedError) as caught:
            it.reader.history("b1", since, ALL, ALL)
        assert (caught.value.since, caught.value.until) == (since, until)
    assert any("the history of b1" in line for line in check_directory(tmp_path).problems)


def test_a_log_that_was_lost_is_missed(tmp_path: Path) -> None:
    with opened(tmp_path / "data") as it:
        it.keep(Put("a", b"1"))
    with opened(tmp_path / "data") as it:
        it.keep(Put("a", b"2"))
        it.keep(Put("a", b"3"))
        shutil.copytree(tmp_path / "data", tmp_path / "cut")
    (tmp_path / "cut" / "data.sqlite-wal").unlink()
    assert (
        "the last 2 commits that were reported as written are missing" in check_directory(tmp_path / "cut").problems[0]
    )
    with opened(tmp_path / "cut") as it:
        assert it.store.found.missing == 2
        assert it.reader.entries() == {"a": b"1"}
        it.keep(Put("a", b"4"))
    with opened(tmp_path / "cut") as it:
        assert it.store.found.missing == 0


def test_an_emptied_file_beside_its_log_is_damage_and_not_a_new_directory(tmp_path: Path) -> None:
    with opened(tmp_path / "data") as it:
        it.keep(Put("a", b"1" * 100_000))
        shutil.copytree(tmp_path / "data", tmp_path / "emptied")
    (tmp_path / "emptied" / "data.sqlite").write_bytes(b"")
    with pytest.raises(StorageError) as caught:
        check_directory(tmp_path / "emptied")
    assert "data.sqlite is damaged: it is empty, although 2 commits were reported and its log holds" in str(
        caught.value
    )
    assert "move the directory away and start with an empty one" in str(caught.value)
    (tmp_path / "emptied" / "data.sqlite-wal").unlink()
    (tmp_path / "emptied" / "mark").unlink()
    with pytest.raises(StorageError, match=r"there is no data of a broker at .* yet"):
        check_directory(tmp_path / "emptied")


@pytest.mark.parametrize("gone", ["kind = 'history'", "kind = 'commit'", "TRUE"])
def test_a_file_with_wrong_metadata_is_not_opened(gone: str, tmp_path: Path) -> None:
    with opened(tmp_path, NEVER) as it:
        it.keep(Admit("own", 1, 1, 1, b""))
    connection = sqlite3.connect(tmp_path / "data.sqlite")
    connection.execute(f"DELETE FROM heads WHERE {gone}")
    connection.commit()
    connection.close()
    with pytest.raises(StorageError, match=r"is damaged: a head is missing; move the directory away"):
        opened(tmp_path).__enter__()


# ---- failing disks --------------------------------------------------------------------------------------------

UNTIL_IT_FAILS = """
import sys
from pathlib import Path
from gapless.storage import writer
from tests.storage.opened import Opened
from tests.storage.torture import changes

writer.FOLD_BYTES = int(sys.argv[2])
it = Opened(Path(sys.argv[1]))
number = 0
while not it.failures:
    number += 1
    it.write(*changes(3, number))
    it.wait(number)
failure = it.wait_for_failure()
assert failure is it.store.failure
try:
    it.store.write(number + 1, [])
    raise SystemExit("a failed store takes a batch")
except type(failure) as error:
    assert error is failure
it.close()
assert len(it.failures) == 1
print(it.reports[-1] if it.reports else 0)
print(failure)
"""


def _fails(path: Path, *prefix: str, file_bytes_max: int | None = None, fold_bytes: int = 4_000_000) -> tuple[int, str]:
    def limit() -> None:
        if file_bytes_max is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes_max, file_bytes_max))

    ran = subprocess.run(
        [*prefix, sys.executable, "-c", UNTIL_IT_FAILS, str(path), str(fold_bytes)],
        capture_output=True, text=True, preexec_fn=limit, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout + ran.stderr
    reported, sentence = ran.stdout.splitlines()
    return int(reported), sentence


def _is_all_there(path: Path, reported: int) -> None:
    with opened(path) as it:
        assert it.store.found.missing == 0
        assert torture.judge(it.reader, 3, reported, may_have_more=True) == 0
        written = max(row.last for origin in torture.ORIGINS for row in torture._all(it, origin)) // 10
        assert torture.judge(it.reader, 3, written) == 0


def test_a_disk_that_accepts_no_more_is_reported_and_loses_nothing(tmp_path: Path) -> None:
    reported, message = _fails(tmp_path, file_bytes_max=1_500_000)
    assert reported > 5
    assert "the disk failed (write); the broker stops writing to it" in message
    _is_all_there(tmp_path, reported)


IN_A_SMALL_ROOM = 'mount -t tmpfs -o size=2m none "$0" && "$@" && cp -r "$0"/. "$0"-kept'


def test_a_full_disk_is_reported_and_loses_nothing(tmp_path: Path) -> None:
    room = tmp_path / "room"
    room.mkdir()
    prefix = ("unshare", "-r", "-m", "sh", "-c", IN_A_SMALL_ROOM, str(room))
    if shutil.which("unshare") is None or subprocess.run([*prefix, "true"], capture_output=True).returncode:
        pytest.skip(
            "only the kernel can make a disk full, and here it lets no user mount one; RLIMIT_FSIZE is tried anyway"
        )
    reported, message = _fails(room, *prefix)
    assert reported > 5
    assert f"{room}: the disk is full; the broker stops writing to it" in message
    assert "free some space and start the broker again" in message
    _is_all_there(tmp_path / "room-kept", reported)


def _strace(when: str) -> tuple[str, ...]:
    return (
        "strace",
        "-f",
        "-qq",
        "-o",
        "/dev/null",
        "-e",
        "trace=fdatasync",
        "-e",
        f"inject=fdatasync:error=EIO:{when}",
    )


def _can_trace() -> bool:
    return (
        shutil.which("strace") is not None
        and subprocess.run([*_strace("when=1"), "true"], capture_output=True).returncode == 0
    )


@pytest.mark.parametrize(
    ("when", "fold_bytes"),
    [("when=14", 4_000_000), ("when=14+", 4_000_000), *((f"when={n}", 1) for n in (14, 15, 16, 17))],
)
def test_a_failed_sync_is_reported_and_not_retried(when: str, fold_bytes: int, tmp_path: Path) -> None:
    """The sync of the log, of the database file, and of a restarted log fail one after the other."""
    if not _can_trace():
        pytest.skip(
            "only strace can make a sync fail, and it is no package that setup could bring; where it is, this runs"
        )
    reported, message = _fails(tmp_path, *_strace(when), fold_bytes=fold_bytes)
    assert 0 < reported < 25
    assert "the disk failed to sync the written data; the broker stops writing to it" in message
    assert (tmp_path / "data.sqlite-wal").stat().st_size > 0, "the log was folded after the failure"
    _is_all_there(tmp_path, reported)
