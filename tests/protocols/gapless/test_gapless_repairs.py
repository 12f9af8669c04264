"""A green run counts only because it can turn red: without each repair, the search finds a violation.

`first_seed` is the first of the seeds 0 to 1,999 that fails, so that nobody waits for the ones before it.
"""

import pytest

from gapless.protocols.gapless.options import REPAIRS
from gapless.simulator import generate, search, try_scenario

FIRST_SEEDS = {
    "late-publishers": ("none", 10),
    "pivots": ("none", 677),
    "make-before-break": ("none", 3),
    "hand-over": ("crash", 0),
}
"""By repair: the faults under which it is needed, and the first seed that shows it."""

SYMPTOMS = {"gap", "causal-inversion", "unobserved", "missing-effect"}


def test_every_repair_is_tried() -> None:
    assert set(FIRST_SEEDS) == REPAIRS


@pytest.mark.parametrize("repair", FIRST_SEEDS)
def test_without_it_a_violation_is_found(repair: str) -> None:
    faults, first_seed = FIRST_SEEDS[repair]
    report = search(
        "gapless", 2_000 - first_seed, first_seed, faults, {"switched_off": [repair]}, processes=1, shrink_seconds=0.1
    )
    assert report.finding is not None
    assert report.finding.symptom in SYMPTOMS


@pytest.mark.parametrize("repair", FIRST_SEEDS)
def test_with_it_the_same_run_is_valid(repair: str) -> None:
    faults, seed = FIRST_SEEDS[repair]
    assert try_scenario(generate(seed, "gapless", faults)).status == "valid"
