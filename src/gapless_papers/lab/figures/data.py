"""The runs of a sweep with all their measurements, and the evaluation of readings on them."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from statistics import fmean
from typing import Any

import msgspec
import pyarrow as pa

from gapless_papers.lab.experiment import Reading, Scalar
from gapless_papers.lab.figures.estimate import Estimate, estimate
from gapless_papers.lab.measures import Pair

__all__ = ["Run", "Runs"]

_REDUCE: Mapping[str, Callable[[list[float]], float]] = {"mean": fmean, "sum": sum, "max": max, "min": min}


class Run(msgspec.Struct, frozen=True):
    """One run: its place in the grid, and its measurements."""

    axes: dict[str, Scalar]
    metrics: dict[str, list[Pair]]

    def read(self, reading: Reading) -> float | None:
        """Return the value of the reading; None if the run did not measure it."""
        rows = self.metrics.get(reading.metric, [])
        if reading.subject is not None:
            rows = [row for row in rows if row[0] == reading.subject]
        if reading.reduce == "largest-subject":
            return max((float(subject) for subject, value in rows if value), default=None)
        if reading.subjects is not None:
            total = sum(value for _, value in rows)
            inside = sum(value for subject, value in rows if float(subject) in reading.subjects)
            return 100 * inside / total if total else None
        if reading.values is not None:
            return float(sum(value in reading.values for _, value in rows)) if rows else None
        return float(_REDUCE[reading.reduce]([value for _, value in rows])) if rows else None


class Runs:
    """All runs of a sweep."""

    def __init__(self, runs: Iterable[Run]) -> None:
        self._runs = list(runs)

    @classmethod
    def of(cls, cases: pa.Table, metrics: pa.Table) -> "Runs":
        """Return the runs in the tables of a store."""
        found: dict[str, Run] = {
            row["run"]: Run(msgspec.json.decode(row["axes"]), {}) for row in cases.select(["run", "axes"]).to_pylist()
        }
        columns = [metrics.column(name).to_pylist() for name in ("run", "metric", "subject", "value")]
        for run, metric, subject, value in zip(*columns, strict=True):
            found[run].metrics.setdefault(metric, []).append((subject, value))
        return cls(found.values())

    def __len__(self) -> int:
        return len(self._runs)

    def __iter__(self) -> Iterator[Run]:
        return iter(self._runs)

    def where(self, wanted: Mapping[str, Any]) -> "Runs":
        """Return the runs whose axes have these values; a list matches any of its values."""
        return Runs(
            run for run in self._runs if all(_fits(run.axes.get(axis), value) for axis, value in wanted.items())
        )

    def groups(self, axes: Iterable[str]) -> dict[tuple[Scalar | None, ...], "Runs"]:
        """Return the runs grouped by their values on these axes, in the order of their first run."""
        names = tuple(axes)
        found: dict[tuple[Scalar | None, ...], list[Run]] = {}
        for run in self._runs:
            found.setdefault(tuple(run.axes.get(name) for name in names), []).append(run)
        return {values: Runs(runs) for values, runs in found.items()}

    def estimate(self, reading: Reading) -> Estimate | None:
        """Return the estimate of the reading over all runs."""
        numbers = (run.read(reading) for run in self._runs)
        return estimate(number for number in numbers if number is not None)


def _fits(value: Scalar | None, wanted: Any) -> bool:
    return value in wanted if isinstance(wanted, list) else value == wanted
