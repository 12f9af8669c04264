"""Measures how fast a broker stores and reads data, compared with a plain file in the same run.

    python benchmarks/disk.py            # a minute
    python benchmarks/disk.py --quick    # a short run
    python benchmarks/disk.py --dir DIR  # on this disk instead of the project's

A thread that does nothing else appends each batch to the plain file and syncs it (`fdatasync`): no store can be faster
on this disk. The two are measured alternately under the same conditions; ratios are medians of these turns. Reading is
compared with a file of the same blobs, each with its length and a CRC that is also checked. The benchmark fails if the
rate of synced small batches, relative to the plain file, is less than 0.4 with one batch at a time, or less than 2 with
many in flight.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import statistics
import struct
import sys
import tempfile
import threading
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from gapless.storage import Admit, StorageSettings, Sync, open_store
from gapless.storage.store import FileStore

HERE = Path(__file__).parent
SMALL = 200
LARGE = 65_536
EVENTS = 1_000_000
EVENT_BYTES = 100
LEAST_ALONE = 0.4
LEAST_MANY = 2.0
ALL = 2**63 - 1


class Disk:
    """A store with a fixed number of batches in flight."""

    def __init__(self, folder: Path, sync: Sync = "always") -> None:
        shutil.rmtree(folder, ignore_errors=True)
        self._membership_log = threading.Condition()
        self._synced = 0
        self._written = 0
        self.store: FileStore = open_store(
            folder, network="bench", broker="b1", settings=StorageSettings(sync), synced=self._note, failed=self._fail
        )

    def _note(self, batch: int) -> None:
        with self._membership_log:
            self._synced = batch
            self._membership_log.notify()

    def _fail(self, error: Exception) -> None:
        print(error, file=sys.stderr)
        os._exit(1)

    def write(self, count: int, blob: bytes, at_once: int) -> list[float]:
        """Write batches; return how long each took until it was reported."""
        begun: list[float] = []
        took: list[float] = []
        target = self._written + count
        while len(took) < count:
            while self._written < target and self._written - self._synced < at_once:
                self._written += 1
                begun.append(time.perf_counter())
                self.store.write(self._written, [Admit("b1", self._written, self._written, 1, blob)])
            with self._membership_log:
                done = count - (target - self._synced)
                while done <= len(took):
                    self._membership_log.wait()
                    done = count - (target - self._synced)
            now = time.perf_counter()
            took += [now - begun[place] for place in range(len(took), done)]
        return took


def bare(folder: Path, count: int, blob: bytes, at_once: int) -> float:
    """Return the seconds for a number of appends, each with a sync."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    handle = os.open(folder / "bare", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    begun = time.perf_counter()
    for _ in range(count // at_once):
        for _ in range(at_once):
            os.write(handle, blob)
        os.fdatasync(handle)
    took = time.perf_counter() - begun
    os.close(handle)
    return took


def synced(folder: Path, turns: int, count: int, size: int, at_once: int, sync: Sync = "always") -> dict[str, Any]:
    """Return the batches per second of the store and of the plain file, measured alternately."""
    blob = random.Random(size).randbytes(size)
    disk = Disk(folder / "store", sync)
    rates: list[float] = []
    peers: list[float] = []
    took: list[float] = []
    alone = max(20, count // at_once)
    for _ in range(turns):
        begun = time.perf_counter()
        took += disk.write(count, blob, at_once)
        rates.append(count / (time.perf_counter() - begun))
        peers.append(alone / bare(folder / "peer", alone, blob, 1))
    disk.store.close()
    took.sort()
    return {
        "sync": sync,
        "bytes": size,
        "at_once": at_once,
        "batches_per_s": statistics.median(rates),
        "mb_per_s": statistics.median(rates) * size / 1e6,
        "bare_per_s": statistics.median(peers),
        "ratio_to_bare": statistics.median(rate / peer for rate, peer in zip(rates, peers, strict=True)),
        "ms_median": took[len(took) // 2] * 1e3,
        "ms_99": took[len(took) * 99 // 100] * 1e3,
        "ms_longest": took[-1] * 1e3,
    }


def reading(folder: Path, events: int, turns: int, size: int) -> dict[str, Any]:
    """Return the speed of reading a history with rows of this size, compared with a plain file."""
    blob = random.Random(size).randbytes(size)
    rows = -(-events * EVENT_BYTES // size)
    disk = Disk(folder / "store", "never")
    disk.write(rows, blob, 1_000)
    disk.store.close()
    begun = time.perf_counter()
    store = open_store(
        folder / "store", network="bench", broker="b1", synced=lambda _: None, failed=lambda error: print(error)
    )
    opening = time.perf_counter() - begun
    with (folder / "plain").open("wb") as plain:
        for _ in range(rows):
            plain.write(struct.pack("<II", size, zlib.crc32(blob)) + blob)
    ours, theirs = [], []
    for _ in range(turns):
        ours.append(rows * size / 1e6 / _seconds(lambda: _read_store(store, rows)))
        theirs.append(rows * size / 1e6 / _seconds(lambda: _read_plain(folder / "plain", rows)))
    store.close()
    return {
        "events": events,
        "rows": rows,
        "row_bytes": size,
        "opened_s": opening,
        "mb_per_s": statistics.median(ours),
        "events_per_s": statistics.median(ours) * 1e6 / EVENT_BYTES,
        "plain_mb_per_s": statistics.median(theirs),
        "ratio_to_plain": statistics.median(our / their for our, their in zip(ours, theirs, strict=True)),
    }


def _seconds(action: Callable[[], None]) -> float:
    begun = time.perf_counter()
    action()
    return time.perf_counter() - begun


def _read_store(store: FileStore, rows: int) -> None:
    reader = store.reader()
    reached = found = 0
    while some := reader.history("b1", reached, ALL, 4 * 1024 * 1024):
        found += len(some)
        reached = some[-1].last
    reader.close()
    assert found == rows


def _read_plain(file: Path, rows: int) -> None:
    found = 0
    with file.open("rb") as plain:
        while head := plain.read(8):
            size, check = struct.unpack("<II", head)
            assert zlib.crc32(plain.read(size)) == check
            found += 1
    assert found == rows


def run(folder: Path, quick: bool) -> dict[str, Any]:
    turns, few, many = (3, 40, 2_000) if quick else (5, 150, 20_000)
    writing = [
        synced(folder, turns, few, SMALL, 1),
        synced(folder, turns, many, SMALL, 256),
        synced(folder, turns, few, LARGE, 1),
        synced(folder, turns, few * 8, LARGE, 64),
        synced(folder, turns, many, SMALL, 256, "interval"),
        synced(folder, turns, many, SMALL, 256, "never"),
    ]
    events = EVENTS // 10 if quick else EVENTS
    return {
        "writing": writing,
        "reading": [reading(folder, events, turns, LARGE), reading(folder, events // 10, turns, SMALL)],
    }


def show(results: dict[str, Any]) -> None:
    console = Console(width=110)
    table = Table(title="written, and synced as the mode says; the bare file: one append, one fdatasync", box=None)
    for name in ("sync", "bytes", "at once", "batches/s", "MB/s", "bare/s", "ratio", "median ms", "p99", "longest"):
        table.add_column(name, justify="left" if name == "sync" else "right")
    for row in results["writing"]:
        table.add_row(
            row["sync"], f"{row['bytes']:,}", f"{row['at_once']}", f"{row['batches_per_s']:,.0f}",
            f"{row['mb_per_s']:.1f}", f"{row['bare_per_s']:,.0f}", f"{row['ratio_to_bare']:.2f}",
            f"{row['ms_median']:.1f}", f"{row['ms_99']:.0f}", f"{row['ms_longest']:.0f}",
        )  # fmt: skip
    console.print(table)
    for row in results["reading"]:
        console.print(
            f"{row['events']:,} events of {EVENT_BYTES} bytes, {row['rows']:,} rows: opened in {row['opened_s']:.2f} s"
        )
        console.print(
            f"  read at {row['mb_per_s']:,.0f} MB/s = {row['events_per_s'] / 1e6:.1f} million events/s,"
            f" {row['ratio_to_plain']:.2f} times a plain file"
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a glance")
    parser.add_argument("--dir", type=Path, default=HERE.parent / "out", help="on which disk")
    parser.add_argument("--out", type=Path, help="write the figures as JSON, too")
    chosen = parser.parse_args()
    chosen.dir.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=chosen.dir) as folder:
        results = run(Path(folder), chosen.quick)
    if chosen.out:
        chosen.out.write_text(json.dumps(results), encoding="utf-8")
    show(results)
    alone, many = (results["writing"][place]["ratio_to_bare"] for place in (0, 1))
    return 0 if alone >= LEAST_ALONE and many >= LEAST_MANY else 1


if __name__ == "__main__":
    sys.exit(main())
