"""The hypercube: the paper's own table and examples, and trees that reach every member exactly once."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gapless.errors import ProtocolError
from gapless.overlay import chain
from gapless_papers.protocols.topics import hypercube
from gapless_papers.protocols.topics.hypercube import (
    branches,
    cluster,
    cluster_of,
    first_member,
    mask_of,
    pack,
    refusal,
    sub_cube,
    unpack,
)

FIGURE_1 = {
    1: ["1", "0", "3", "2", "5", "4", "7", "6"],
    2: ["2 3", "3 2", "0 1", "1 0", "6 7", "7 6", "4 5", "5 4"],
    3: ["4 5 6 7", "5 4 7 6", "6 7 4 5", "7 6 5 4", "0 1 2 3", "1 0 3 2", "2 3 0 1", "3 2 1 0"],
}
"""The table of Figure 1: by s, the clusters c(0, s) to c(7, s)."""


def bits(members: set[int]) -> int:
    return sum(1 << member for member in members)


def neighbourhood(i: int, height: int, members: set[int]) -> set[int]:
    """Return the paper's NEIGHBORHOOD, computed from the function for sub-cubes."""
    return {k for k, _ in branches(i, height, sub_cube(bits(members), i, height))}


def test_clusters_are_those_of_figure_1() -> None:
    for s, row in FIGURE_1.items():
        assert [cluster(i, s) for i in range(8)] == [tuple(map(int, cell.split())) for cell in row]


def test_clusters_follow_the_recursion_of_section_2() -> None:
    for i in range(64):
        for s in range(1, 7):
            first = i ^ 2 ** (s - 1)
            rest = [node for k in range(1, s) for node in cluster(first, k)]
            assert cluster(i, s) == (first, *rest)


def test_the_examples_of_section_3() -> None:
    everyone = set(range(8))
    assert neighbourhood(0, 3, everyone) == {1, 2, 4}
    assert neighbourhood(0, 2, everyone) == {1, 2}
    assert neighbourhood(4, 2, everyone) == {5, 6}
    assert neighbourhood(0, 3, {0, 3, 4}) == {3, 4}
    assert neighbourhood(4, 2, {0, 3, 4}) == set()
    assert [cluster_of(0, j) for j in range(1, 8)] == [1, 2, 2, 3, 3, 3, 3]


def test_a_node_is_in_the_same_cluster_from_either_end() -> None:
    for i in range(16):
        for s in range(1, 5):
            assert all(i in cluster(j, s) and cluster_of(i, j) == s for j in cluster(i, s))


dimensions = st.integers(0, 6)


@st.composite
def groups(draw: st.DrawFn) -> tuple[int, int, set[int]]:
    """Draw a dimension, a node, and the members of a topic."""
    dimension = draw(dimensions)
    nodes = st.integers(0, 2**dimension - 1)
    return dimension, draw(nodes), draw(st.sets(nodes))


@given(groups())
def test_the_next_nodes_are_the_first_members_of_the_clusters(group: tuple[int, int, set[int]]) -> None:
    dimension, i, members = group
    first = [next((k for k in cluster(i, s) if k in members), None) for s in range(1, dimension + 1)]
    assert neighbourhood(i, dimension, members) == set(first) - {None}


@given(groups())
def test_a_broadcast_reaches_every_member_exactly_once_within_log_n_hops(
    group: tuple[int, int, set[int]],
) -> None:
    dimension, source, members = group
    hops = {source: 0}
    way = [(source, dimension, bits(members - {source}))]
    for node, height, behind in way:
        for k, rest in branches(node, height, unpack(pack(behind))):
            assert k not in hops
            hops[k] = hops[node] + 1
            way.append((k, cluster_of(node, k) - 1, rest))
    assert set(hops) == members | {source}
    assert max(hops.values()) <= dimension


def test_the_largest_cluster_leaves_first() -> None:
    assert [k for k, _ in branches(0, 3, bits(set(range(1, 8))))] == [4, 2, 1]


@given(st.sets(st.integers(0, 31), min_size=1), st.integers(0, 31))
def test_the_first_member_is_the_nearest(members: set[int], place: int) -> None:
    assert first_member(bits(members), place, 5) == min(members, key=lambda k: k ^ place)


def test_members_by_name() -> None:
    assert mask_of(("a", "b", "c", "d"), ("d", "a", "d")) == 0b1001
    with pytest.raises(ProtocolError, match="initial_members: there is no broker 'e'; they are a … d"):
        mask_of(("a", "b", "c", "d"), ("a", "e"))


@pytest.mark.parametrize("count", [1, 2, 4, 64])
def test_powers_of_two_are_taken(count: int) -> None:
    assert refusal(chain(count)) is None


def test_other_numbers_are_refused_with_a_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    assert refusal(chain(6)) == "the number of brokers of a hypercube must be a power of two, but is 6; use 4 or 8"
    monkeypatch.setattr(hypercube, "BROKERS_MAX", 1024)
    assert refusal(chain(2048)) == "the maximum number of brokers is 1,024, but there are 2,048; use fewer"
