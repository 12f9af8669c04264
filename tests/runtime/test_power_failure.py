"""The disk of `trials.jepsen` loses exactly the writes that were not synced."""

import random
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from trials.jepsen.power import build, lose

WRITER = """
import os, signal, sqlite3, sys
data = sys.argv[1]
database = sqlite3.connect(f"{data}/data.sqlite", isolation_level=None)
database.execute("PRAGMA journal_mode = WAL")
database.execute("PRAGMA synchronous = FULL")
database.execute("CREATE TABLE numbers (number INTEGER, blob BLOB)")
for number in range(20):
    if number == 12:
        database.execute("PRAGMA synchronous = OFF")
    database.execute("INSERT INTO numbers VALUES (?, ?)", (number, bytes(3000)))
with open(f"{data}/mark", "wb") as mark:
    mark.write(b"old and synced")
    mark.flush()
    os.fsync(mark.fileno())
    mark.seek(0)
    mark.write(b"new")
    mark.flush()
    mark.truncate(3)
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("library"))


def _run(library: Path, place: Path) -> tuple[Path, Path]:
    data, notes = place / "data", place / "notes"
    data.mkdir()
    notes.mkdir()
    environment = {"LD_PRELOAD": str(library), "UNSYNCED_DATA": str(data), "UNSYNCED_NOTES": str(notes)}
    ended = subprocess.run([sys.executable, "-c", WRITER, str(data)], env=environment, check=False)
    assert ended.returncode == -signal.SIGKILL
    return data, notes


def _numbers(data: Path) -> list[int]:
    with sqlite3.connect(data / "data.sqlite") as database:
        return [number for (number,) in database.execute("SELECT number FROM numbers ORDER BY number")]


def test_a_killed_process_loses_nothing(library: Path, tmp_path: Path) -> None:
    data, _ = _run(library, tmp_path)
    assert _numbers(data) == list(range(20))
    assert (data / "mark").read_bytes() == b"new"


def test_a_power_failure_loses_what_was_not_synced(library: Path, tmp_path: Path) -> None:
    data, notes = _run(library, tmp_path)
    assert lose(data, notes, random.Random(1), torn=False) > 10
    assert _numbers(data) == list(range(12))
    assert (data / "mark").read_bytes() == b"old and synced"
    assert list(notes.iterdir()) == []


@pytest.mark.parametrize("seed", range(5))
def test_torn_writes_leave_everything_that_was_synced(library: Path, tmp_path: Path, seed: int) -> None:
    data, notes = _run(library, tmp_path)
    lose(data, notes, random.Random(seed), torn=True)
    found = _numbers(data)
    assert found == list(range(len(found)))
    assert 12 <= len(found) <= 20
    assert b"synced" in (data / "mark").read_bytes() or (data / "mark").read_bytes().startswith(b"new")
