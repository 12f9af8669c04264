"""The neighbourhood: nearby brokers, reachability, and next hops."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gapless.overlay import chain, kary, random_tree
from gapless_papers.protocols.delta.neighbourhood import Neighbourhood


def failing(around: Neighbourhood, *names: str) -> Neighbourhood:
    for name in names:
        around.suspect(name)
    around.survey()
    return around


def test_it_sees_as_far_as_its_radius() -> None:
    around = Neighbourhood("b0", kary(3, 4), 2)
    assert len(around.paths) == 3 + 9
    assert around.paths["b4"] == ("b1", "b4")
    assert list(around.active) == ["b1", "b2", "b3"]


def test_failed_brokers_are_bypassed() -> None:
    around = failing(Neighbourhood("b2", chain(7), 3), "b3")
    assert list(around.active) == ["b1", "b4"]
    assert around.failed == [("b3",)]
    assert (around.hop("b5"), around.hop("b3"), around.hop("b0")) == ("b4", "", "b1")


def test_not_even_a_fourth_can_be_bypassed_with_a_radius_of_three() -> None:
    around = failing(Neighbourhood("b2", chain(7), 3), "b3", "b4", "b5")
    assert list(around.active) == ["b1"]
    assert around.failed == [("b3",), ("b3", "b4"), ("b3", "b4", "b5")]
    assert around.hop("b5") == ""


def test_the_neighbours_of_a_failed_broker_take_its_place() -> None:
    around = failing(Neighbourhood("b1", kary(3, 3), 2), "b0")
    assert set(around.active) == {"b4", "b5", "b6", "b2", "b3"}


def test_a_broker_reached_through_a_live_one_changes_nothing() -> None:
    around = Neighbourhood("b2", chain(7), 3)
    assert not around.suspect("b4")
    assert around.suspect("b3")
    around.survey()
    assert list(around.active) == ["b1", "b5"]
    assert around.trust("b4")
    around.survey()
    assert list(around.active) == ["b1", "b4"]


@pytest.mark.parametrize(
    ("path", "gate"), [(("b1",), "b1"), (("b9", "b1"), "b9"), (("b7", "b8", "b9", "b1"), "b8")], ids=str
)
def test_a_gate_is_at_the_edge_of_the_neighbourhood(path: tuple[str, ...], gate: str) -> None:
    assert Neighbourhood("b0", chain(5), 3).gate(path) == gate


@given(st.integers(0, 50), st.integers(1, 4), st.data())
def test_active_sessions_are_to_the_nearest_that_can_be_reached(seed: int, radius: int, data: st.DataObject) -> None:
    tree = random_tree(15, seed)
    here = data.draw(st.sampled_from(tree.brokers))
    suspected = data.draw(st.sets(st.sampled_from([name for name in tree.brokers if name != here])))
    around = failing(
        Neighbourhood(here, tree, radius), *[name for name in suspected if name in tree.within(here, radius)]
    )
    near = tree.within(here, radius)
    assert set(around.paths) == set(near)
    expected = {
        name
        for name in near
        if name not in suspected and all(step in suspected for step in tree.path(here, name)[1:-1])
    }
    assert set(around.active) == expected
    for gate in near:
        reachable = [name for name in tree.path(here, gate)[1:] if name not in suspected]
        assert around.hop(gate) == (reachable[0] if reachable else "")
        assert around.hop(gate) in (*around.active, "")
