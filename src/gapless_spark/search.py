"""The search of the simulator on Spark: seeds are tasks, and their results are stored as Parquet.

    search.json                 the search: the protocol, its options, the faults
    verdicts/0-8.parquet        one row for each finished seed: `seed`, `status`, `symptom`

A search that is started again with the same directory tries only seeds without a row. A seed whose worker died (out of
memory, for example) has none.
"""

import os
from collections.abc import Callable, Generator, Iterable
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from gapless.errors import SparkError
from gapless.simulator.generator import GeneratorLimits
from gapless.simulator.search import search
from gapless_spark.task_pool import SparkPool

__all__ = ["Frontier", "Plan", "Tried", "try_seeds"]

CHUNK = 8
"""The number of seeds of one task."""
KEEP_EVERY = 64
"""The maximum number of tasks whose rows share one file."""

VERDICTS = pa.schema([("seed", pa.int64()), ("status", pa.string()), ("symptom", pa.string())])
_ROW = pa.schema([("key", pa.string()), ("tried", pa.list_(pa.struct(list(VERDICTS))))])


class Plan(msgspec.Struct, frozen=True):
    """The parameters of a search."""

    protocol: str
    faults: str
    options: dict[str, Any] = {}
    f: int | None = None
    scale: str = "mixed"
    invariants: bool = True

    def search(self, seed: int, **more: Any) -> Any:
        """Return the report on one seed."""
        return search(
            self.protocol, 1, seed, self.faults, self.options, 1, limits=GeneratorLimits(f=self.f), scale=self.scale,
            invariants=self.invariants, **more,
        )  # fmt: skip


class Tried(msgspec.Struct, frozen=True):
    """The result of one seed."""

    seed: int
    status: str
    """`valid`, `unknown` or `failed`."""
    symptom: str = ""


class Frontier:
    """A directory with the results of finished seeds."""

    def __init__(self, folder: Path, plan: Plan) -> None:
        self._folder = folder / "verdicts"
        self._folder.mkdir(parents=True, exist_ok=True)
        file, text = folder / "search.json", msgspec.json.encode(plan)
        if file.exists() and file.read_bytes() != text:
            raise SparkError(
                f"{folder} belongs to another search ({file.read_text(encoding='utf-8')}); choose another directory"
            )
        _write(file, lambda path: path.write_bytes(text))
        self._waiting: list[Tried] = []
        self._tasks = 0

    def tried(self) -> list[Tried]:
        """Return all results, by seed."""
        tables = [pq.read_table(file, schema=VERDICTS) for file in sorted(self._folder.glob("*.parquet"))]
        rows = [row for table in tables for row in table.to_pylist()]
        return [Tried(**row) for row in sorted(rows, key=lambda row: row["seed"])]

    def add(self, tried: Iterable[Tried]) -> None:
        """Add the results of a task; they are written together with the next few."""
        self._waiting += tried
        self._tasks += 1
        if self._tasks >= KEEP_EVERY:
            self.keep()

    def keep(self) -> None:
        """Write the results added so far."""
        if self._waiting:
            seeds = [each.seed for each in self._waiting]
            table = pa.Table.from_pylist([msgspec.structs.asdict(each) for each in self._waiting], VERDICTS)
            name = f"{min(seeds)}-{max(seeds)}-{len(seeds)}.parquet"
            _write(self._folder / name, lambda path: pq.write_table(table, path))
        self._waiting, self._tasks = [], 0


def _write(path: Path, write: Callable[[Path], object]) -> None:
    """Write a file atomically."""
    beside = path.with_suffix(".new")
    write(beside)
    os.replace(beside, path)


def try_seeds(
    pool: SparkPool, plan: Plan, seeds: Iterable[int], on_done: Callable[[int], None] = lambda _: None
) -> Generator[list[Tried], None, None]:
    """Yield the results of these seeds: those of each task when it ends.

    A task ends at its first failing seed. `on_done` receives how many of the submitted tasks have finished.
    """
    given = list(seeds)
    parts = (given[place : place + CHUNK] for place in range(0, len(given), CHUNK))
    tasks = [(str(part[0]), _text(plan, part)) for part in parts]
    for _, row in pool.run(_try, tasks, _ROW, on_done):
        if row is not None:
            yield [Tried(**each) for each in row["tried"]]


def _text(plan: Plan, seeds: list[int]) -> str:
    return msgspec.json.encode({"plan": plan, "seeds": seeds}).decode()


def _try(key: str, text: str) -> dict[str, Any]:
    """Run a task."""
    task = msgspec.json.decode(text)
    plan = msgspec.convert(task["plan"], Plan)
    tried: list[Tried] = []
    for seed in task["seeds"]:
        report = plan.search(seed, shrink_seconds=0.0)
        if report.finding is not None:
            tried.append(Tried(seed, "failed", report.finding.symptom))
            break
        tried.append(Tried(seed, "unknown" if report.unknown else "valid"))
    return {"key": key, "tried": [msgspec.structs.asdict(each) for each in tried]}
