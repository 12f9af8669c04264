"""The closed forms for one subscription in a tree give what runs of the protocols give."""

import msgspec
import pytest

from gapless_papers.lab.workloads.subscription_scale import SubscriptionScale

SYSTEMS = ("delta", "gryphon", "locaps", "gapless")


def both(system: str, depth: int, *, covered: bool, pivot: int, f: int) -> list[object]:
    """Return the results of the closed form and of a run."""
    given = {"system": system, "depth": depth, "covered": covered, "pivot": pivot, "f": f}
    return [
        msgspec.convert({**given, "is_model": is_model}, SubscriptionScale).results(0) for is_model in (True, False)
    ]


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("depth", [3, 6])
@pytest.mark.parametrize("pivot", [None, 0, 1, 2])
def test_the_closed_form_is_what_a_run_gives(system: str, depth: int, pivot: int | None) -> None:
    computed, measured = both(system, depth, covered=pivot is not None, pivot=pivot or 0, f=1)
    assert computed == measured


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize(("depth", "pivot"), [(3, 0), (5, 2)])
def test_the_closed_form_agrees_with_runs_at_f_3(system: str, depth: int, pivot: int) -> None:
    computed, measured = both(system, depth, covered=True, pivot=pivot, f=3)
    assert computed == measured


def test_measures_that_were_not_computed_are_refused() -> None:
    with pytest.raises(ValueError, match="depth is 17, but must be from 1 to 16"):
        SubscriptionScale("delta", 17)
    with pytest.raises(ValueError, match="a leaf is 3 hops below the root"):
        SubscriptionScale("delta", 3, pivot=4)
