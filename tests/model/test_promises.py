"""The specification in `model/` keeps its guarantees: random runs of each fault class, and explored scopes."""

import pytest
from model.explore import search
from model.scopes import SCOPES
from model.search import CLASSES, attempt, generate
from model.tree import Tree


@pytest.mark.parametrize("kind", CLASSES)
def test_random_runs_of_each_fault_class_keep_every_promise(kind: str) -> None:
    runs = (generate(seed, kind) for seed in range(1000))
    small = [run for run in runs if len(run.parents) <= 5 and len(run.operations) <= 16][:20]
    for run in small:
        violation, _ = attempt(run)
        assert violation is None, run


@pytest.mark.parametrize("name", ["homelast", "unadv3", "advlast"])
def test_every_default_schedule_of_a_small_scope_keeps_every_promise(name: str) -> None:
    result = search(SCOPES[name], set(), k=0, seconds=60)
    assert result.complete
    assert not result.violation


def test_fewer_than_2f_plus_1_brokers_refuse_to_start() -> None:
    with pytest.raises(ValueError, match="2f \\+ 1 = 5 are needed"):
        Tree([("b0", "b1"), ("b1", "b2"), ("b2", "b3")], f=2)
