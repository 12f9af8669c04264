"""`gapless data` shows the contents of a broker's directory, and verifies them."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from gapless.storage import Admit, Put
from tests.conftest import Cli
from tests.storage.opened import opened

BEGUN = 1_790_000_000_000_000


@pytest.fixture
def data(tmp_path: Path) -> Path:
    with opened(tmp_path / "running") as it:
        it.keep(*(Admit("b1", BEGUN + n, BEGUN + n, 2, b"piece %03d" % n * 100) for n in range(50)))
        it.keep(Put("life", b"7"), Put("subscription/billing", b"position"))
        shutil.copytree(tmp_path / "running", tmp_path / "b1")
    return tmp_path / "b1"


def _files(path: Path) -> dict[str, bytes]:
    return {name: (path / name).read_bytes() for name in ("data.sqlite", "data.sqlite-wal", "mark")}


def test_show_prints_owner_and_size(cli: Cli, data: Path) -> None:
    before = _files(data)
    shown = cli("data", "show", data)
    assert shown.code == 0
    words = [line.split() for line in shown.out.splitlines()]
    assert " ".join(shown.out.split()).startswith(f"{data}: broker b1 of network shop-1f3a format 2, since 2")
    assert ["b1", "2026-09-21", "14:13:20", "2026-09-21", "14:13:20", "100", "43.9", "KiB"] in words
    assert "2 entries, 9 B" in shown.out
    assert "billing" not in shown.out
    assert "subscription/billing  8 B" in cli("data", "show", data, "--entries").out
    assert _files(data) == before


def test_show_as_json_has_all_of_it(cli: Cli, data: Path) -> None:
    shown = json.loads(cli("data", "show", data, "--json").out)
    assert shown["about"]["broker"] == "b1"
    assert shown["missing"] == 0
    assert shown["history"]["b1"]["events"] == 100
    assert shown["entries"] == {"life": 1, "subscription/billing": 8}


def test_check_of_intact_files_ends_with_0_and_changes_nothing(cli: Cli, data: Path) -> None:
    before = _files(data)
    checked = cli("data", "check", data)
    assert checked.code == 0
    assert "WHOLE  52 rows" in checked.out
    assert _files(data) == before
    assert json.loads(cli("data", "check", data, "--json").out)["damaged"] is False


def test_check_of_damaged_files_ends_with_1_and_names_the_place(cli: Cli, data: Path) -> None:
    with opened(data):
        pass  # folds the log
    whole = (data / "data.sqlite").read_bytes()
    (data / "data.sqlite").write_bytes(whole.replace(b"piece 030piece", b"piece 031piece"))
    checked = cli("data", "check", data)
    assert checked.code == 1
    assert "DAMAGED" in checked.out
    words = " ".join(checked.out.split())
    assert f"the history of b1 from {BEGUN + 29} to {BEGUN + 30} is damaged" in words
    output = json.loads(cli("data", "check", data, "--json").out)
    assert len(output["problems"]) == 1
    assert cli("data", "show", data).code == 0


def test_check_of_a_file_cut_short_ends_with_an_error_or_1(cli: Cli, data: Path) -> None:
    with opened(data):
        pass
    os.truncate(data / "data.sqlite", 50_000)
    assert cli("data", "check", data).code in (1, 64)
    os.truncate(data / "data.sqlite", 50)
    checked = cli("data", "check", data)
    assert checked.code == 64
    assert checked.err.startswith(f"gapless: {data / 'data.sqlite'}: it is damaged; move the directory away")


def test_a_directory_in_use_and_none_at_all_are_errors_with_a_sentence(cli: Cli, tmp_path: Path) -> None:
    for command in ("check", "show"):
        with opened(tmp_path / "data"):
            ran = cli("data", command, tmp_path / "data")
        assert ran.code == 64
        assert f"data is in use by process {os.getpid()}" in ran.err
        ran = cli("data", command, tmp_path / "nothing")
        assert (ran.code, ran.err) == (
            64, f"gapless: there is no data of a broker at {tmp_path / 'nothing'}: it is not a directory\n",
        )  # fmt: skip
        assert cli("data", command, tmp_path).code == 64
        assert os.listdir(tmp_path) == ["data"]
