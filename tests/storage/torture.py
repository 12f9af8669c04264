"""Damages real files for any length of time: flipped bytes, truncated files, killed processes (for power cuts see
`power_cut`).

    python -m tests.storage.torture --rounds 1000 --first-seed 0
    python -m tests.storage.torture --only kills --rounds 50

After each damage, everything that was reported as durable is there as it was written, or its reader gets an error. A
failure prints the command that reproduces it.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from gapless.errors import StorageError
from gapless.storage import Admit, Change, DamagedError, HistoryRow, Put, StorageSettings
from gapless.storage.inspection import check_directory
from gapless.storage.reader import FileReader
from tests.storage.opened import Opened, opened

DATABASE = "data.sqlite"
ORIGINS = ("b1", "b2", "b3")
END = 10**9


# ---- writing --------------------------------------------------------------------------------------------------


def blob(seed: int, number: int) -> bytes:
    """Return a blob: small, one page, or many pages."""
    random_ = random.Random(f"{seed} {number}")
    return random_.randbytes(random_.choice((5, 80, 80, 80, 3_000, 9_000, 40_000)))


def changes(seed: int, number: int) -> list[Change]:
    """Return the batch with this number: rows of all kinds with predictable contents."""
    body = blob(seed, number)
    return [
        Admit(ORIGINS[number % 3], number * 10, number * 10 + 5, 1 + number % 4, body),
        Put(f"k{number % 5}", b"%d" % number),
    ]


def pieces(seed: int, origin: str, upto: int) -> dict[int, HistoryRow]:
    """Return the admitted entries of an origin, by last timestamp, after `upto` batches."""
    return {
        number * 10 + 5: HistoryRow(number * 10, number * 10 + 5, 1 + number % 4, blob(seed, number))
        for number in range(1, upto + 1)
        if ORIGINS[number % 3] == origin
    }


def write(path: Path, seed: int, upto: int) -> None:
    """Write the given number of batches, and close the store gracefully."""
    with opened(path, StorageSettings("never")) as it:
        for number in range(1, upto + 1):
            it.keep(*changes(seed, number))


# ---- reading --------------------------------------------------------------------------------------------------


def judge(reader: FileReader, seed: int, upto: int, *, may_have_more: bool = False) -> int:
    """Check that data is as it was written or is reported as damaged; return the number of reports."""
    count = 0
    for origin in ORIGINS:
        count += _judge_history(reader, seed, origin, upto, may_have_more)
    return count + _judge_entries(reader, upto, may_have_more)


def _judge_entries(reader: FileReader, upto: int, may_have_more: bool) -> int:
    try:
        entries = reader.entries()
    except StorageError:
        return 1
    latest = {f"k{n % 5}": n for n in range(1, upto + 1)}
    assert latest.keys() <= entries.keys(), f"entries are missing: {latest.keys() - entries.keys()}"
    for key, number in latest.items():
        assert int(entries[key]) == number or (may_have_more and int(entries[key]) > number), f"entry {key} is wrong"
    return 0


def _judge_history(reader: FileReader, seed: int, origin: str, upto: int, may_have_more: bool) -> int:
    due = pieces(seed, origin, upto + (100 if may_have_more else 0))
    missing = {last for last in due if last <= upto * 10 + 5}
    reached, count = -1, 0
    while reached < END:
        try:
            rows = reader.history(origin, reached, END, 50_000)
        except DamagedError as damage:
            reported_correctly = damage.since == reached < damage.until
            missing = {
                last for last in missing if not (due[last].last > damage.since and due[last].first <= damage.until)
            }
            reached = damage.until if reported_correctly else END + 1
            count += 1
            continue
        except StorageError:
            return count + 1
        if not rows:
            break
        for row in rows:
            assert due.get(row.last) == row, f"history of {origin}: {row.first} to {row.last} was never written so"
        missing -= {row.last for row in rows}
        reached = rows[-1].last
    assert reached <= END, f"history of {origin}: a damage that does not begin where the reading did, or leads nowhere"
    assert not missing, f"history of {origin}: nobody said that {sorted(missing)} are missing"
    return count


# ---- damage ---------------------------------------------------------------------------------------------------


def damage(file: Path, random_: random.Random) -> str:
    """Flip bytes, overwrite a range, or truncate the file; return a description."""
    size = file.stat().st_size
    kind = random_.choice(("flip", "flip", "flip", "bytes", "page", "cut"))
    place = random_.randrange(size)
    with file.open("r+b") as handle:
        if kind == "cut":
            handle.truncate(place)
            return f"{file.name} was cut to {place} of {size} bytes"
        handle.seek(place)
        if kind == "flip":
            old = handle.read(1)
            new = bytes([old[0] ^ (1 << random_.randrange(8))])
        elif kind == "bytes":
            new = random_.randbytes(random_.randrange(1, 20))
        else:
            place -= place % 4096
            new = bytes(4096)
        handle.seek(place)
        handle.write(new[: size - place])
    return f"{len(new)} bytes at {place} of {file.name} were changed"


def _hurt(folder: Path, seed: int) -> tuple[Path, str, int]:
    whole = folder / f"whole-{seed % 5}"
    upto = 30 + 35 * (seed % 5)
    if not whole.exists():
        write(whole, seed % 5, upto)
    hurt = folder / "hurt"
    shutil.rmtree(hurt, ignore_errors=True)
    shutil.copytree(whole, hurt)
    return hurt, damage(hurt / DATABASE, random.Random(seed)), upto


def damaged_file(folder: Path, seed: int) -> tuple[str, int]:
    """Damage a file and read it; `gapless data check` finds every error that the reader reports."""
    hurt, what, upto = _hurt(folder, seed)
    try:
        reader = FileReader(hurt / DATABASE)
    except StorageError:
        return what, 1
    try:
        count = judge(reader, seed % 5, upto)
    finally:
        reader.close()
    assert not count or _is_known(hurt), "a reader reports damage that a check does not find"
    return what, count


def _is_known(path: Path) -> bool:
    try:
        return bool(check_directory(path).problems)
    except StorageError:
        return True


def used_file(folder: Path, seed: int) -> tuple[str, int]:
    """Damage a file while a broker that has not noticed continues to write to it."""
    hurt, what, upto = _hurt(folder, seed)
    try:
        it = Opened(hurt, StorageSettings("never"))
    except StorageError:
        return what, 1
    try:
        for number in range(upto + 1, upto + 41):
            if it.failures:
                break
            batch = it.write(*changes(seed % 5, number))
            it.wait(batch)
        if it.failures:
            return what, 1 + judge(it.reader, seed % 5, upto + len(it.reports), may_have_more=True)
        return what, judge(it.reader, seed % 5, upto + 40)
    except StorageError:
        return what, 1
    finally:
        it.close()


def damaged_log(folder: Path, seed: int) -> tuple[str, int]:
    """Damage a log that was not merged into its file."""
    random_ = random.Random(seed)
    upto = 12
    whole = folder / f"log-{seed % 5}"
    if not whole.exists():
        source = folder / "source"
        shutil.rmtree(source, ignore_errors=True)
        with opened(source) as it:
            for number in range(1, upto + 1):
                it.keep(*changes(seed % 5, number))
            shutil.copytree(source, whole)  # as a power cut would leave it
    hurt = folder / "hurt"
    shutil.rmtree(hurt, ignore_errors=True)
    shutil.copytree(whole, hurt)
    what = damage(hurt / f"{DATABASE}-wal", random_)
    try:
        with opened(hurt, StorageSettings("never")) as it:
            if it.store.found.missing:
                # Its contents are the complete state after an earlier batch.
                return what, 1 + judge(it.reader, seed % 5, upto - it.store.found.missing)
            return what, judge(it.reader, seed % 5, upto)
    except StorageError:
        return what, 1


# ---- kills ----------------------------------------------------------------------------------------------------

WRITER = """
import sys
from pathlib import Path
from tests.storage.opened import Opened
from tests.storage.torture import changes

path, seed, first, many = Path(sys.argv[1]), *map(int, sys.argv[2:])
it = Opened(path)
it._batch = first - 1
synced = it._synced
def report(batch):
    synced(batch)
    print(batch, flush=True)
it.store._writer._synced = report
for number in range(first, first + 5_000):
    it.write(*changes(seed, number))
    if number % many == 0:
        it.wait(number)
"""


def killed_writer(folder: Path, seed: int) -> tuple[str, int]:
    """Kill a writing process several times, each time after it has reported a batch."""
    random_ = random.Random(seed)
    path = folder / "killed"
    shutil.rmtree(path, ignore_errors=True)
    reported = written = 0
    for _ in range(4):
        many = random_.choice((1, 3, 10))
        command = [sys.executable, "-c", WRITER, str(path), str(seed), str(written + 1), str(many)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            for _ in range(random_.randrange(1, 12)):
                reported = int(process.stdout.readline())
            process.kill()
            for line in process.stdout:  # reports from before the kill
                if line.endswith("\n"):
                    reported = int(line)
        with opened(path) as it:
            assert it.store.found.missing == 0, f"{it.store.found.missing} commits are missing"
            assert not judge(it.reader, seed, reported, may_have_more=True), "something is damaged"
            written = max(row.last for origin in ORIGINS for row in _all(it, origin)) // 10
            assert written >= reported
            assert not judge(it.reader, seed, written), "a batch is there in part"
    return f"killed 4 times, {reported} batches reported, {written} there", 0


def _all(it: Opened, origin: str) -> list[HistoryRow]:
    return it.reader.history(origin, -1, END, 10**12)


KINDS: dict[str, Callable[[Path, int], tuple[str, int]]] = {
    "files": damaged_file,
    "used": used_file,
    "logs": damaged_log,
    "kills": killed_writer,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=KINDS, help="one kind of damage")
    parser.add_argument("--rounds", type=int, default=100, help="of each kind")
    parser.add_argument("--first-seed", type=int, default=0)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as folder:
        for kind in [chosen.only] if chosen.only else KINDS:
            count = 0
            for seed in range(chosen.first_seed, chosen.first_seed + chosen.rounds):
                try:
                    count += bool(KINDS[kind](Path(folder), seed)[1])
                except BaseException:
                    print(f"again: python -m tests.storage.torture --only {kind} --first-seed {seed} --rounds 1")
                    raise
            print(f"{kind}: {chosen.rounds} rounds, damage was reported in {count}, and no error was silent")
    return 0


if __name__ == "__main__":
    sys.exit(main())
