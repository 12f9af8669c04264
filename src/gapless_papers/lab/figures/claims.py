"""Compares a paper's claims with our measurements, and quantifies each difference.

A number agrees if ours is within the noise that the claim allows, which is a share of the effect that the paper
reports. Three cases are undecided: fewer than `RUNS_LEAST` runs, an interval wider than the noise, and a difference
larger than the noise but smaller than the intervals of both numbers together. A shape holds if it holds on every line.
A flat line varies by no more than the noise. A growing line never falls by more than the noise, and ends higher by more
than the noise; for a falling line it is the reverse. A shape with fewer than `RUNS_LEAST` runs behind a point is
undecided, too. Only an exact reading, in which nothing is random, needs no repetition.
"""

from collections.abc import Sequence
from itertools import pairwise
from math import hypot, sqrt
from statistics import fmean
from typing import Literal

import msgspec

from gapless_papers.lab.experiment import Claim
from gapless_papers.lab.figures.data import Runs
from gapless_papers.lab.figures.estimate import Estimate, deviation_of, student_quantile

__all__ = ["RUNS_LEAST", "Judgement", "judge_claim", "paper_half_width"]

RUNS_LEAST = 20
"""Fewer runs than this decide nothing, unless the reading is exact."""


class Judgement(msgspec.Struct, frozen=True):
    """The verdict on a claim; `unmeasured` if no run is relevant to it, as in a quick sweep."""

    claim: Claim
    verdict: Literal["agrees", "differs", "uncertain", "unmeasured"]
    ours: Estimate | None = None
    deviation: float | None = None
    """Ours minus the paper's, as a share of the paper's."""
    lines: tuple[tuple[str, tuple[float, ...]], ...] = ()
    """For a shape: the name of each line, and its means in the order of the axis."""
    runs: int = 0
    """The number of runs behind the number, or behind the point with the fewest runs."""


def judge_claim(claim: Claim, runs: Runs, *, quick: bool = False, exact: bool = False) -> Judgement:
    """Compare a claim with the runs.

    Quick runs use smaller networks, so that only shapes are judged, not numbers, and however few the runs are. With
    `exact`, runs that all give the same numbers are enough, however few they are.
    """
    if claim.paper is None:
        return _judge_shape(claim, runs, any_count=quick, exact=exact)
    return Judgement(claim, "unmeasured") if quick else _judge_number(claim, runs, exact=exact)


def _judge_number(claim: Claim, runs: Runs, *, exact: bool) -> Judgement:
    assert claim.paper is not None
    ours = _averaged(claim, runs) if claim.along else _measured(claim, runs)
    if ours is None:
        return Judgement(claim, "unmeasured")
    difference = ours.mean - claim.paper
    deviation = difference / abs(claim.paper) if claim.paper else None
    enough = ours.runs >= RUNS_LEAST or (exact and not ours.half_width)
    verdict = _verdict(claim, abs(difference), ours) if enough else "uncertain"
    return Judgement(claim, verdict, ours, deviation, runs=ours.runs)


def _verdict(claim: Claim, difference: float, ours: Estimate) -> Literal["agrees", "differs", "uncertain"]:
    assert claim.paper is not None
    allowed = claim.noise * abs(claim.paper)
    half = ours.half_width or 0.0
    if difference <= allowed:
        return "agrees" if half <= allowed else "uncertain"
    return "uncertain" if difference <= hypot(half, paper_half_width(claim)) else "differs"


def paper_half_width(claim: Claim) -> float:
    """Return half the confidence interval of the paper's number, if the paper gives one."""
    if claim.paper_deviation is None or claim.paper_runs < 2:
        return 0.0
    return student_quantile(claim.paper_runs - 1) * claim.paper_deviation / sqrt(claim.paper_runs)


def _measured(claim: Claim, runs: Runs) -> Estimate | None:
    ours = runs.where(claim.where).estimate(claim.y)
    if ours is not None and claim.out_of is not None:
        ours = msgspec.structs.replace(ours, mean=claim.out_of - ours.mean)
    if ours is None or claim.against is None:
        return ours if ours is None or claim.of == "mean" else deviation_of(ours)
    other = runs.where(claim.against).estimate(claim.y)
    return None if other is None or other.mean == 0 else _compared(claim, ours, other)


def _averaged(claim: Claim, runs: Runs) -> Estimate | None:
    """Return the mean over all values of an axis; None if one is missing."""
    values = {value: group for (value,), group in runs.groups([claim.along]).items() if value is not None}
    found = [_measured(claim, group) for group in values.values()]
    whole = [estimate for estimate in found if estimate is not None]
    if not whole or len(whole) < len(found):
        return None
    halves = [estimate.half_width for estimate in whole]
    half = None if None in halves else hypot(*(half or 0.0 for half in halves)) / len(whole)
    return Estimate(fmean(estimate.mean for estimate in whole), 0.0, min(estimate.runs for estimate in whole), half)


def _compared(claim: Claim, ours: Estimate, other: Estimate) -> Estimate:
    """Return a ratio, an increase or a reduction in percent; errors add up as for independent numbers."""
    ratio = ours.mean / other.mean
    half = None
    if ours.half_width is not None and other.half_width is not None and ours.mean:
        half = abs(ratio) * hypot(ours.half_width / ours.mean, other.half_width / other.mean)
    scale = 1.0 if claim.as_ == "ratio" else 100.0
    value = {"ratio": ratio, "increase": ratio - 1, "reduction": 1 - ratio}[claim.as_] * scale
    return Estimate(value, 0.0, min(ours.runs, other.runs), None if half is None else half * scale)


def _judge_shape(claim: Claim, runs: Runs, *, any_count: bool, exact: bool) -> Judgement:
    lines: list[tuple[str, tuple[float, ...]]] = []
    found: list[Estimate] = []
    for values, group in runs.where(claim.where).groups(claim.by).items():
        points = [
            (float(x) if not isinstance(x, str) else 0.0, part.estimate(claim.y))
            for (x,), part in group.groups([claim.along]).items()
            if x is not None
        ]
        means = tuple(value.mean for _, value in sorted(points, key=lambda point: point[0]) if value is not None)
        lines.append((", ".join(str(value) for value in values), means))
        found += [value for _, value in points if value is not None]
    if not lines or any(len(means) < 2 for _, means in lines):
        return Judgement(claim, "unmeasured")
    fewest = min(value.runs for value in found)
    enough = any_count or fewest >= RUNS_LEAST or (exact and not any(value.deviation for value in found))
    holds = all(_has_shape(claim, means) for _, means in lines)
    verdict: Literal["agrees", "differs", "uncertain"] = ("agrees" if holds else "differs") if enough else "uncertain"
    return Judgement(claim, verdict, lines=tuple(lines), runs=fewest)


def _has_shape(claim: Claim, means: Sequence[float]) -> bool:
    room = claim.noise * max(abs(mean) for mean in means)
    if claim.shape == "flat":
        return max(means) - min(means) <= room
    if claim.shape == "falls":
        means = [-mean for mean in means]
    steady = all(later >= earlier - room for earlier, later in pairwise(means))
    return steady and means[-1] - means[0] > room
