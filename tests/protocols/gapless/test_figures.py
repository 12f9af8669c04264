"""Figures that are promises: hops until a subscription is active, and what coverage saves.

The whole of it is printed by `python benchmarks/subscription_latency.py` and `python benchmarks/routing_state.py`.
"""

import pytest
from benchmarks import routing_state, subscription_latency

from gapless.protocol import Ready


@pytest.mark.parametrize("meaning", subscription_latency.MEANINGS, ids="-".join)
@pytest.mark.parametrize("f", range(5))
@pytest.mark.parametrize("depth", [3, 4, 6])
def test_latency_in_hops_is_what_the_formula_says(meaning: tuple[str, Ready], depth: int, f: int) -> None:
    figures = subscription_latency.measure(*meaning, depth, f)
    assert figures == figures.promised()


@pytest.mark.parametrize("ready", ["whole", "first"])
def test_latency_does_not_depend_on_the_size_of_the_tree(ready: Ready) -> None:
    figures = subscription_latency.measure("gapless", ready, 9, 4)
    assert figures == figures.promised()


def test_the_formulas_differ_where_f_counts() -> None:
    ours = subscription_latency.Figures("gapless", "first", 4, 2, [], []).promised()
    whole = subscription_latency.Figures("gapless", "whole", 4, 2, [], []).promised()
    theirs = subscription_latency.Figures("locaps", "first", 4, 2, [], []).promised()
    assert ours.uncovered == theirs.uncovered == [0, 2, 4, 6, 8]
    assert whole.uncovered == [8, 8, 8, 8, 8]
    assert ours.covered == [0, 2, 4, 6, 8]
    assert whole.covered == [4, 4, 4, 6, 8]
    assert theirs.covered == [4, 6, 8, 8, 8]


def test_coverage_saves_table_entries_and_messages() -> None:
    row = routing_state.measure(*routing_state.CASES[0])
    assert row["entries_ratio"] >= routing_state.RATIO_LEAST
    assert row["messages_ratio"] >= routing_state.RATIO_LEAST
