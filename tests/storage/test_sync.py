"""Each sync mode's system calls: which syncs come before which report."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

BATCHES = 25

ONE_BY_ONE = f"""
import os, sys
from pathlib import Path
from tests.storage.opened import Opened
from gapless.storage import Put, StorageSettings

it = Opened(Path(sys.argv[1]), StorageSettings(sys.argv[2], interval_ms=float(sys.argv[3])))
synced = it._synced
def report(batch):
    os.write(1, b"reported")
    synced(batch)
it.store._writer._synced = report
for _ in range({BATCHES}):
    it.keep(Put("k", bytes(100)))
os.write(1, b"closing")
it.close()
"""


def _seen(path: Path, mode: str, interval_ms: float = 100) -> str:
    """Return a letter for each call, in order: a sync of the log, a sync of the file, a report, the end."""
    trace = path / "trace"
    strace = ["strace", "-f", "-y", "-qq", "-o", str(trace), "-e", "trace=fdatasync,fsync,write"]
    if shutil.which("strace") is None or subprocess.run([*strace, "true"], capture_output=True).returncode:
        pytest.skip(
            "only strace shows what a process asks of its disk, and setup cannot bring it; where it is, this runs"
        )
    command = [sys.executable, "-c", ONE_BY_ONE, str(path / "data"), mode, str(interval_ms)]
    subprocess.run([*strace, *command], check=True, capture_output=True)
    letters = {"reported": "r", "closing": "c", "data.sqlite-wal": "l", "data.sqlite": "f"}
    calls = re.findall(
        r'write\(1<[^>]*>, "(reported|closing)"|f(?:data)?sync\(\d+<[^>]*/(data\.sqlite(?:-wal)?)>\)', trace.read_text()
    )
    seen = "".join(letters[word or file] for word, file in calls)
    return seen[seen.index("r") - 1 :] if mode == "always" else seen[seen.index("r") :]


def test_always_syncs_the_log_before_each_report(tmp_path: Path) -> None:
    seen = _seen(tmp_path, "always").partition("c")[0]
    assert re.fullmatch(rf"(l+r){{{BATCHES}}}", seen), seen


def test_interval_syncs_some_commits_and_reports_all(tmp_path: Path) -> None:
    seen, _, after = _seen(tmp_path, "interval", 10_000_000).partition("c")
    assert seen == "r" * BATCHES
    assert re.match("l", after), "what was not synced yet is synced at the end"


def test_interval_syncs_within_the_interval(tmp_path: Path) -> None:
    seen, _, _ = _seen(tmp_path, "interval", 0.001).partition("c")
    assert seen.count("r") == BATCHES
    assert seen.count("l") >= BATCHES // 2


def test_never_syncs_at_the_end(tmp_path: Path) -> None:
    seen, _, after = _seen(tmp_path, "never").partition("c")
    assert seen == "r" * BATCHES
    assert "l" in after
    assert "f" in after
