"""General graphs: shapes, the primary tree, bypasses, and disjoint paths, compared with simple searches."""

from collections.abc import Callable
from itertools import combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gapless.errors import OverlayError
from gapless.overlay import (
    Overlay,
    chain,
    disjoint_paths,
    from_edges,
    grid,
    make_overlay,
    random_regular,
    random_tree,
    ring,
    with_bypasses,
)


def reached(overlay: Overlay, start: str, without: frozenset[str] = frozenset()) -> dict[str, int]:
    found = {start: 0}
    queue = [start]
    for name in queue:
        for a, b in overlay.edges:
            for one, other in ((a, b), (b, a)):
                if one == name and other not in found and other not in without:
                    found[other] = found[name] + 1
                    queue.append(other)
    return found


graphs = st.one_of(
    st.builds(ring, st.integers(3, 9)),
    st.builds(grid, st.integers(2, 3), st.integers(2, 4)),
    st.builds(lambda half, degree, seed: random_regular(2 * half, degree, seed), st.integers(3, 5), st.integers(2, 4),
              st.integers(0, 999)),
    st.builds(lambda size, seed, extra: with_bypasses(random_tree(size, seed), extra), st.integers(4, 10),
              st.integers(0, 999), st.integers(1, 3)),
)  # fmt: skip


@given(graphs)
def test_distances_paths_and_neighbourhoods_agree_with_a_search(overlay: Overlay) -> None:
    assert not overlay.is_tree
    far = {start: reached(overlay, start) for start in overlay.brokers}
    assert overlay.diameter == max(max(row.values()) for row in far.values())
    for start in overlay.brokers:
        for end in overlay.brokers:
            path = overlay.path(start, end)
            assert (path[0], path[-1], len(path)) == (start, end, far[start][end] + 1)
            assert all(b in overlay.neighbours(a) for a, b in pairwise(path))
        for radius in (1, 2, 3):
            near = overlay.within(start, radius)
            assert sorted(near) == sorted(end for end in overlay.brokers if 0 < far[start][end] <= radius)
            assert list(near) == sorted(near, key=lambda end: (far[start][end], overlay.rank[end]))


@given(graphs)
def test_the_primary_tree_is_a_tree_of_its_links(overlay: Overlay) -> None:
    parents = {name: parent for name, parent in overlay.parent.items() if parent is not None}
    assert len(parents) == len(overlay.brokers) - 1
    assert all(parent in overlay.neighbours(name) for name, parent in parents.items())
    assert all(name in overlay.children(parent) for name, parent in parents.items())


@pytest.mark.slow
@given(graphs)
def test_there_are_as_many_disjoint_paths_as_brokers_must_fail_to_part_two(overlay: Overlay) -> None:
    for start, end in combinations(overlay.brokers, 2):
        paths = disjoint_paths(overlay.neighbours, start, end, len(overlay.brokers))
        inner = [name for path in paths for name in path[1:-1]]
        assert len(inner) == len(set(inner))
        assert all(b in overlay.neighbours(a) for path in paths for a, b in pairwise(path))
        assert all((path[0], path[-1]) == (start, end) for path in paths)
        if end not in overlay.neighbours(start):
            others = [name for name in overlay.brokers if name not in (start, end)]
            parted = [
                set(gone)
                for gone in combinations(others, len(paths))
                if end not in reached(overlay, start, frozenset(gone))
            ]
            assert parted


def test_no_more_paths_are_given_than_asked_for() -> None:
    assert len(disjoint_paths(grid(3, 3).neighbours, "b1", "b7", 2)) == 2


@given(st.integers(3, 10), st.integers(0, 999), st.integers(1, 3))
def test_bypasses_join_all_that_are_near_and_are_as_long_as_the_way(size: int, seed: int, extra: int) -> None:
    tree = random_tree(size, seed)
    overlay = with_bypasses(tree, extra)
    for a, b in combinations(tree.brokers, 2):
        assert (b in overlay.neighbours(a)) == (tree.distance(a, b) <= extra + 1)
        assert overlay.wire(a, b) == tree.path(a, b)
    assert overlay.root == tree.root


def test_edges_that_form_a_tree_are_one() -> None:
    assert from_edges([("a", "b"), ("b", "c")]).is_tree
    assert not from_edges([("a", "b"), ("b", "c"), ("c", "a")]).is_tree
    assert make_overlay(["a"], []).is_tree


def test_a_random_regular_graph_is_regular_and_the_same_every_time() -> None:
    overlay = random_regular(12, 4, 7)
    assert all(len(overlay.neighbours(name)) == 4 for name in overlay.brokers)
    assert overlay.edges == random_regular(12, 4, 7).edges != random_regular(12, 4, 8).edges


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda: ring(2), "brokers is 2, but must be at least 3"),
        (lambda: grid(1, 4), "rows is 1, but must be at least 2"),
        (lambda: random_regular(5, 3, 0), "5 brokers cannot have 3 neighbours each"),
        (lambda: random_regular(3, 4, 0), "brokers is 3, but must be at least 5"),
        (lambda: from_edges([("a", "b"), ("b", "c"), ("c", "a"), ("a", "c")]), "'a'–'c' occurs twice"),
        (lambda: from_edges([("a", "b"), ("b", "b")]), "joins a broker with itself"),
        (
            lambda: make_overlay(["a", "b", "c", "d"], [("a", "b"), ("b", "c"), ("c", "a"), ("c", "b")]),
            "occurs twice",
        ),
        (lambda: make_overlay(["a", "b", "c"], [("a", "b"), ("b", "c"), ("c", "x")]), "names 'x', which is not"),
        (lambda: make_overlay([*"abcde"], [("a", "b"), ("b", "c"), ("c", "a"), ("a", "d"), ("d", "b")]), "add an edge"),
        (lambda: with_bypasses(ring(4), 1), "'bypass' needs a tree, and this graph has cycles; leave it out"),
        (lambda: with_bypasses(chain(4), -1), "bypass is -1, but must be at least 0"),
    ],
)
def test_bad_graphs_are_refused_with_a_sentence(make: Callable[[], Overlay], complaint: str) -> None:
    with pytest.raises(OverlayError, match=complaint):
        make()
