"""A mean over runs, with its confidence interval."""

from collections.abc import Iterable
from math import sqrt
from statistics import NormalDist, fmean, stdev

import msgspec

__all__ = ["CONFIDENCE", "Estimate", "deviation_of", "estimate"]

CONFIDENCE = 0.95


class Estimate(msgspec.Struct, frozen=True):
    """An estimate of a number from several runs."""

    mean: float
    deviation: float
    """Standard deviation of single runs; 0 for a single one."""
    runs: int
    half_width: float | None
    """Half of the confidence interval of the mean; unknown for a single run."""


def estimate(numbers: Iterable[float]) -> Estimate | None:
    """Return the estimate of the mean; None if there are no numbers."""
    found = list(numbers)
    if not found:
        return None
    if len(found) == 1:
        return Estimate(found[0], 0.0, 1, None)
    deviation = stdev(found)
    return Estimate(
        fmean(found), deviation, len(found), student_quantile(len(found) - 1) * deviation / sqrt(len(found))
    )


def deviation_of(value: Estimate) -> Estimate:
    """Return the standard deviation of single runs as an estimate; it is nearly normal for more than a few runs."""
    half = (
        NormalDist().inv_cdf((1 + CONFIDENCE) / 2) * value.deviation / sqrt(2 * (value.runs - 1))
        if value.runs > 1
        else None
    )
    return Estimate(value.deviation, 0.0, value.runs, half)


def student_quantile(freedom: int) -> float:
    """Return the two-sided quantile of Student's t at `CONFIDENCE`: exact for 1 and 2, else by the Cornish-Fisher
    series.
    """
    p = (1 + CONFIDENCE) / 2
    if freedom == 1:
        return 12.7062
    if freedom == 2:
        return (2 * p - 1) * sqrt(2 / (4 * p * (1 - p)))
    z = NormalDist().inv_cdf(p)
    terms: tuple[float, ...] = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return float(z + sum(term / freedom**power for power, term in enumerate(terms, start=1)))
