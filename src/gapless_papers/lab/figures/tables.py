"""The numbers of a figure, for its picture and for its CSV file."""

import csv
import io
from collections.abc import Iterable, Sequence
from itertools import pairwise
from math import inf
from typing import Any

import msgspec

from gapless_papers.lab.experiment import FigureSpec, Range, Reading, Scalar
from gapless_papers.lab.figures.data import Runs
from gapless_papers.lab.figures.estimate import CONFIDENCE, Estimate

__all__ = ["FigureTable", "Point", "Series", "csv_text", "table_of"]


class Point(msgspec.Struct, frozen=True):
    """One point of a line, or one bar."""

    x: float
    label: str
    estimate: Estimate
    reading: Reading
    value: Scalar | None = None
    """The value on the axis; None for a bin."""


class Series(msgspec.Struct, frozen=True):
    """One line, or one colour of bars."""

    values: tuple[Scalar | None, ...]
    """The values on the axes that distinguish the lines."""
    label: str
    """The text in the legend."""
    points: tuple[Point, ...]


class FigureTable(msgspec.Struct, frozen=True):
    """All numbers of one figure."""

    spec: FigureSpec
    series: tuple[Series, ...]
    runs_least: int
    runs_most: int
    """The largest number of runs behind a point."""
    length_ms: tuple[float, float] | None
    """The length of the runs in virtual time: the shortest and the longest."""


def table_of(spec: FigureSpec, runs: Runs) -> FigureTable:
    """Return the numbers of the figure."""
    chosen = runs.where(spec.where)
    points = {"distribution": _bins, "course": _course}.get(spec.kind, _along)
    series = [
        Series(values, spec.label(values), tuple(points(spec, group)))
        for values, group in chosen.groups(spec.series).items()
    ]
    series = [row for row in series if row.points]
    counts = [point.estimate.runs for row in series for point in row.points] or [0]
    lengths = [value for run in chosen for _, value in run.metrics.get("run-length", ())]
    length = (min(lengths), max(lengths)) if lengths else None
    return FigureTable(spec, tuple(series), min(counts), max(counts), length)


def _along(spec: FigureSpec, runs: Runs) -> Iterable[Point]:
    found: list[Point] = []
    for (x,), group in runs.groups([spec.x]).items():
        value = group.estimate(spec.y)
        if value is not None and x is not None:
            place = float(x) * spec.x_scale if not isinstance(x, str) else float(len(found))
            found.append(Point(place, _place_label(x, place), value, spec.y, x))
    return sorted(found, key=lambda point: point.x)


def _place_label(value: Scalar, place: float) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value if isinstance(value, str) else f"{place:,g}"


def _course(spec: FigureSpec, runs: Runs) -> Iterable[Point]:
    """Yield a point for each subject that any run measured."""
    subjects = {subject for run in runs for subject, _ in run.metrics.get(spec.y.metric, ())}
    for subject in sorted(subjects, key=float):
        reading = msgspec.structs.replace(spec.y, subject=subject)
        value = runs.estimate(reading)
        if value is not None:
            yield Point(float(subject) * spec.x_scale, f"{float(subject) * spec.x_scale:g}", value, reading)


def _bins(spec: FigureSpec, runs: Runs) -> Iterable[Point]:
    """Yield the share of each bin if `by` is `subjects`, else the number of subjects whose values are in it."""
    ends = [-inf, *spec.bins]
    for number, (low, high) in enumerate(pairwise(ends)):
        reading = msgspec.structs.replace(spec.y, **{spec.by: Range(above=None if low == -inf else low, most=high)})
        value = runs.estimate(reading)
        if value is not None:
            yield Point(float(number), _bin_label(low, high), value, reading)


def _bin_label(low: float, high: float) -> str:
    whole = low == -inf or (float(low).is_integer() and float(high).is_integer() and high - low == 1)
    return f"{high:g}" if whole else f"({low:g}, {high:g}]"


def csv_text(table: FigureTable) -> str:
    """Return the numbers as CSV, with one line for each point."""
    spec = table.spec
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    percent = f"{CONFIDENCE:.0%}".rstrip("%")
    heading: Sequence[Any] = [
        *spec.series,
        spec.x or ("subject" if spec.kind == "course" else "bin"),
        "mean",
        "standard_deviation",
        f"half_width_{percent}",
        "runs",
    ]
    writer.writerow(heading)
    for series in table.series:
        for point in series.points:
            value = point.estimate
            half = "" if value.half_width is None else _number(value.half_width)
            values = ["" if part is None else part for part in series.values]
            writer.writerow([*values, point.label, _number(value.mean), _number(value.deviation), half, value.runs])
    return text.getvalue()


def _number(value: float) -> str:
    return f"{value:.6g}"
