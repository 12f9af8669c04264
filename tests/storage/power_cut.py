"""Simulates a power cut from the system calls of a real process.

A process that writes to a store is traced with `strace`, which must be installed. From its calls, this module
constructs the directory as a disk could contain it at any moment: all data written before a sync of its file, and, of
the data written since, each sector or not, in any order.
"""

from __future__ import annotations

import random
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.storage import torture
from tests.storage.opened import opened

__all__ = ["Call", "after_a_power_cut", "calls_of_a_writer", "can_watch"]

SECTOR = 512
WATCHED = ("data.sqlite", "data.sqlite-wal", "mark")
BATCHES = 60

WRITER = f"""
import os, sys
from pathlib import Path
from gapless.storage import StorageSettings, writer
from tests.storage.opened import Opened
from tests.storage.torture import changes

writer.FOLD_BYTES = 150_000
it = Opened(Path(sys.argv[1]), StorageSettings(sys.argv[2], interval_ms=20))
synced = it._synced
def report(batch):
    os.write(1, b"%d" % batch)
    synced(batch)
it.store._writer._synced = report
for number in range(1, {BATCHES} + 1):
    it.write(*changes(int(sys.argv[3]), number))
    if number % 3 == 0:
        it.wait(number)
it.close()
"""

_CALL = re.compile(
    r"\d+ +(?P<name>pwrite64|ftruncate|fdatasync|fsync|write)\((?P<handle>\d+)<(?P<path>[^>]*)>"
    r'(?:, "(?P<data>[^"]*)")?(?:, (?P<numbers>[\d, ]+))?\) += (?P<result>-?\d+)'
)


@dataclass(frozen=True, slots=True)
class Call:
    """`write`, `truncate` or `sync` of a file, or a `report` of a batch, whose number is its offset."""

    kind: str
    file: str
    offset: int = 0
    data: bytes = b""


def _command(trace: Path) -> list[str]:
    traced = "trace=pwrite64,ftruncate,fdatasync,fsync,write"
    return ["strace", "-f", "-y", "-qq", "-xx", "-s", "10000000", "-o", str(trace), "-e", traced]


def can_watch() -> bool:
    return (
        shutil.which("strace") is not None
        and subprocess.run([*_command(Path("/dev/null")), "true"], capture_output=True).returncode == 0
    )


def calls_of_a_writer(folder: Path, sync: str, seed: int) -> list[Call]:
    """Return the file operations of a process that writes and closes, in order."""
    shutil.rmtree(folder / "written", ignore_errors=True)
    command = [sys.executable, "-c", WRITER, str(folder / "written"), sync, str(seed)]
    subprocess.run([*_command(folder / "trace"), *command], check=True, capture_output=True)
    calls = []
    for found in _CALL.finditer((folder / "trace").read_text()):
        call = _call(found)
        if call is not None:
            calls.append(call)
    assert sum(call.kind == "report" for call in calls) > BATCHES // 4
    return calls


def _call(found: re.Match[str]) -> Call | None:
    path, _, file = _text(found["path"]).rpartition("/")
    data = bytes.fromhex((found["data"] or "").replace("\\x", ""))
    if found["name"] == "write" and found["handle"] == "1":
        return Call("report", "", int(data))
    if not path.endswith("/written") or file not in WATCHED:
        return None
    numbers = [int(each) for each in (found["numbers"] or "").split(",") if each.strip()]
    if found["name"] == "pwrite64":
        assert int(found["result"]) == len(data) == numbers[0]
        return Call("write", file, numbers[1], data)
    return Call("truncate", file, numbers[0]) if found["name"] == "ftruncate" else Call("sync", file)


def _text(shown: str) -> str:
    return bytes.fromhex(shown.replace("\\x", "")).decode() if shown.startswith("\\x") else shown


def _disk(calls: list[Call], random_: random.Random) -> dict[str, bytearray]:
    files = {name: bytearray() for name in WATCHED}
    share = random_.choice((0.0, 0.1, 0.5, 0.9, 1.0))
    for name, content in files.items():
        last_sync = max(
            (place for place, call in enumerate(calls) if (call.kind, call.file) == ("sync", name)), default=-1
        )
        for place, call in enumerate(calls):
            if call.file != name or call.kind == "sync":
                continue
            if call.kind == "truncate":
                if place <= last_sync or random_.random() < share:
                    del content[call.offset :]
                continue
            for start in range(0, len(call.data), SECTOR):
                if place <= last_sync or random_.random() < share:
                    _put(content, call.offset + start, call.data[start : start + SECTOR])
    return files


def _put(content: bytearray, offset: int, data: bytes) -> None:
    if len(content) < offset + len(data):
        content.extend(bytes(offset + len(data) - len(content)))
    content[offset : offset + len(data)] = data


def after_a_power_cut(folder: Path, calls: list[Call], sync: str, seed: int, cut_seed: int) -> str:
    """Cut the power at some moment after the first report and reopen the store; return a description of its
    contents.
    """
    random_ = random.Random(cut_seed)
    reports = [place for place, call in enumerate(calls) if call.kind == "report"]
    before = calls[: random_.randrange(reports[0] + 1, len(calls) + 1)]
    reported = max(call.offset for call in before if call.kind == "report")
    path = folder / "cut"
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir()
    for name, content in _disk(before, random_).items():
        (path / name).write_bytes(content)
    with opened(path) as it:
        pieces = [row.last for origin in torture.ORIGINS for row in it.reader.history(origin, -1, torture.END, 10**12)]
        written = max(pieces, default=0) // 10
        assert torture.judge(it.reader, seed, written) == 0, "what is there is not whole"
        if sync == "always":
            assert written >= reported, f"{reported} batches were reported, {written} are there"
            assert it.store.found.missing == 0
    return f"{reported} batches reported, {written} there, {it.store.found.missing} commits missed"
