"""The tree's root, order and paths, compared with a simple search."""

from itertools import combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gapless.errors import OverlayError
from gapless.overlay import Overlay, chain, from_edges, kary, random_tree, star


def distances(overlay: Overlay, start: str) -> dict[str, int]:
    found = {start: 0}
    queue = [start]
    for name in queue:
        for a, b in overlay.edges:
            for one, other in ((a, b), (b, a)):
                if one == name and other not in found:
                    found[other] = found[name] + 1
                    queue.append(other)
    return found


trees = st.builds(random_tree, st.integers(1, 14), st.integers(0, 10_000))


@given(trees)
def test_distance_path_and_within_agree_with_a_search(overlay: Overlay) -> None:
    for start in overlay.brokers:
        expected = distances(overlay, start)
        assert {end: overlay.distance(start, end) for end in overlay.brokers} == expected
        for radius in range(5):
            near = overlay.within(start, radius)
            assert sorted(near) == sorted(end for end, far in expected.items() if 0 < far <= radius)
            assert list(near) == sorted(near, key=lambda end: (expected[end], overlay.rank[end]))
        for end in overlay.brokers:
            path = overlay.path(start, end)
            assert (path[0], path[-1]) == (start, end)
            assert all(b in overlay.neighbours(a) for a, b in pairwise(path))
            assert len(set(path)) == len(path)


@given(trees)
def test_root_is_a_centre_and_parents_come_first(overlay: Overlay) -> None:
    reach = {name: max(distances(overlay, name).values()) for name in overlay.brokers}
    assert reach[overlay.root] == min(reach.values())
    assert overlay.diameter == max(reach.values())
    for name in overlay.brokers:
        parent = overlay.parent[name]
        if parent is None:
            assert name == overlay.root
        else:
            assert overlay.neighbours(name)[0] == parent
            assert name in overlay.children(parent)
            assert overlay.depth[name] == overlay.depth[parent] + 1


@given(trees)
def test_all_sequences_come_in_rank_order(overlay: Overlay) -> None:
    for name in overlay.brokers:
        neighbours = overlay.neighbours(name)
        assert list(neighbours) == sorted(neighbours, key=overlay.rank.__getitem__)


def test_paths_of_a_small_tree() -> None:
    overlay = kary(2, 2)
    assert overlay.path("b3", "b4") == ("b3", "b1", "b4")
    assert overlay.path("b3", "b6") == ("b3", "b1", "b0", "b2", "b6")
    assert overlay.path("b5", "b5") == ("b5",)
    assert overlay.within("b1", 1) == ("b0", "b3", "b4")
    assert overlay.within("b3", 2) == ("b1", "b0", "b4")
    assert "b6" in overlay
    assert "b7" not in overlay


def test_the_middle_of_a_chain_is_the_root() -> None:
    assert chain(5).root == "b2"
    assert chain(2).diameter == 1
    assert star(6).root == "b0"


@pytest.mark.parametrize(
    ("brokers", "edges", "message"),
    [
        ([], [], "at least one broker"),
        (["a", "a"], [("a", "a")], "two brokers have the name 'a'"),
        (["a", "b"], [("a", "c")], "names 'c', which is not among the brokers"),
        (["a", "b", "c"], [("a", "b")], "3 brokers need 2 edges to form a tree, but 1 are given"),
        (["a", "b", "c", "d"], [("a", "b"), ("b", "c"), ("c", "a")], "cycle"),
        (["d", "a", "b", "c"], [("a", "b"), ("b", "c"), ("c", "a")], "'a' is not connected to 'd'"),
    ],
)
def test_graphs_that_are_no_tree_are_refused(brokers: list[str], edges: list[tuple[str, str]], message: str) -> None:
    with pytest.raises(OverlayError, match=message):
        Overlay(brokers, edges)


def test_an_edge_to_itself_is_refused() -> None:
    with pytest.raises(OverlayError):
        from_edges([("a", "b"), ("b", "b")])


def test_distance_is_symmetric() -> None:
    overlay = random_tree(30, 4)
    for a, b in combinations(overlay.brokers, 2):
        assert overlay.path(a, b) == overlay.path(b, a)[::-1]
