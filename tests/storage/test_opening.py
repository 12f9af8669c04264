"""Each reason why a directory cannot be used has its own error, and the directory stays unchanged."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from gapless.errors import StorageError
from gapless.storage import Put, StorageSettings, open_store
from tests.storage.opened import NETWORK, Opened, opened


def _refused(path: Path, network: str = NETWORK, broker: str = "b1") -> str:
    with pytest.raises(StorageError) as caught:
        open_store(path, network=network, broker=broker, synced=lambda _: None, failed=lambda _: None)
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)
    return str(caught.value)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    with opened(tmp_path / "data") as it:
        it.keep(Put("k", b"v"))
    return tmp_path / "data"


def test_data_of_another_network(data: Path) -> None:
    assert "contains the data of another network (shop-1f3a, this one is bank)" in _refused(data, network="bank")


def test_data_of_another_broker(data: Path) -> None:
    assert "contains the data of broker b1, not of b2; give each broker its own directory" in _refused(
        data, broker="b2"
    )


def test_data_in_use_by_this_process(data: Path) -> None:
    with opened(data):
        assert f"is in use by process {os.getpid()}" in _refused(data)


def test_data_in_use_by_another_process_and_free_when_that_is_killed(data: Path) -> None:
    program = (
        "import sys, time\nfrom pathlib import Path\nfrom tests.storage.opened import Opened\n"
        "Opened(Path(sys.argv[1]))\nprint('open', flush=True)\ntime.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", program, str(data)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "open\n"
        assert f"is in use by process {process.pid}; two brokers cannot share it" in _refused(data)
        process.kill()
    with opened(data) as it:
        assert it.reader.entries() == {"k": b"v"}


@pytest.mark.parametrize(("version", "age"), [(3, "a newer"), (1, "an older")])
def test_data_of_another_version(data: Path, version: int, age: str) -> None:
    connection = sqlite3.connect(data / "data.sqlite")
    connection.execute(f"PRAGMA user_version = {version}")
    connection.close()
    assert f"was written by {age} Gapless: its format has version {version}, this one uses version 2" in _refused(data)


def test_a_file_where_a_directory_should_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    assert "is a file; name a directory" in _refused(tmp_path / "file")
    assert "cannot be created" in _refused(tmp_path / "file" / "data")


def test_a_directory_of_something_else(tmp_path: Path) -> None:
    (tmp_path / "photo.jpg").write_text("x")
    assert "contains something other than a broker's data (photo.jpg)" in _refused(tmp_path)
    assert os.listdir(tmp_path) == ["photo.jpg"]


def test_a_file_of_something_else(tmp_path: Path) -> None:
    (tmp_path / "data.sqlite").write_text("Dear diary, " * 1000)
    assert "does not contain a broker's data, or its beginning is damaged" in _refused(tmp_path)
    (tmp_path / "data.sqlite").unlink()
    connection = sqlite3.connect(tmp_path / "data.sqlite")
    connection.execute("CREATE TABLE photos (name TEXT)")
    connection.close()
    assert "does not hold a broker" in _refused(tmp_path)


def test_a_directory_that_cannot_be_written() -> None:
    with tempfile.TemporaryDirectory() as folder:  # a directory that any user can access, unlike pytest's own
        data = Path(folder)
        with opened(data):
            pass
        (data / "lock").chmod(0o444)
        data.chmod(0o555)
        user = os.geteuid()
        if user == 0:  # root can write everywhere
            os.seteuid(65534)
        try:
            message = _refused(data)
        finally:
            os.seteuid(user)
            data.chmod(0o755)
    assert "is not writable: Permission denied; give this user write permission" in message


def test_a_start_that_was_cut_short_is_a_new_one(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "data.sqlite")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.close()
    with opened(tmp_path) as it:
        assert it.store.found.is_new


def test_a_sync_that_there_is_not(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="unknown sync mode 'sometimes'; use one of always, interval, never"):
        Opened(tmp_path, StorageSettings("sometimes"))  # type: ignore[arg-type]
    with pytest.raises(StorageError, match=r"invalid interval of 0 ms or queue of .*; both must be positive"):
        Opened(tmp_path, StorageSettings("interval", interval_ms=0))


def _modes(data: Path) -> dict[str, int]:
    return {entry.name: entry.stat().st_mode & 0o777 for entry in [data, *data.iterdir()]}


def test_only_the_owner_can_use_what_a_broker_writes(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with opened(tmp_path / "data") as it:
            it.keep(Put("k", b"v"))
            modes = _modes(tmp_path / "data")
            assert it.store.found.exposed == ()
    finally:
        os.umask(before)
    assert "data.sqlite-wal" in modes
    assert modes.pop("data") == 0o700
    assert set(modes.values()) == {0o600}


def test_files_that_others_could_use_are_restricted_and_named(data: Path) -> None:
    data.chmod(0o755)
    (data / "data.sqlite").chmod(0o644)
    with opened(data) as it:
        assert it.store.found.exposed == (
            f"{data}: others could use it (mode 0755); now only its owner can",
            f"{data}/data.sqlite: others could use it (mode 0644); now only its owner can",
        )
        assert {mode & 0o077 for mode in _modes(data).values()} == {0}
    with opened(data) as it:
        assert it.store.found.exposed == ()
