"""The regions of messages: every broker on a path is reached whichever f others fail; and the partial pivots of a
subscription.
"""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gapless.overlay import Overlay, chain, grid, kary, random_regular, random_tree, ring, with_bypasses
from gapless_papers.protocols.locamu.regions import Region, Regions


def reached(region: Region, origin: str, dead: tuple[str, ...]) -> set[str]:
    """Return the brokers that get a message if these have failed."""
    found = {origin}
    queue = [origin]
    for name in queue:
        for other in region.following[name]:
            if other not in found and other not in dead:
                found.add(other)
                queue.append(other)
    return found


@pytest.mark.parametrize(
    ("overlay", "f"),
    [(ring(7), 1), (grid(3, 3), 1), (random_regular(10, 3, 1), 2), (random_regular(10, 4, 3), 3)],
    ids=["ring", "grid", "cubic", "quartic"],
)
def test_on_a_graph_everyone_in_the_region_gets_it_whichever_f_fail(overlay: Overlay, f: int) -> None:
    regions = Regions(overlay, f)
    for origin, end in combinations(overlay.brokers[:6], 2):
        region = regions.way(origin, end)
        assert end in region.brokers
        for dead in combinations([name for name in overlay.brokers if name != origin], f):
            assert set(region.brokers) - set(dead) <= reached(region, origin, dead), (origin, end, dead)


@pytest.mark.parametrize("f", [1, 2, 3])
def test_on_a_tree_with_bypasses_only_the_path_gets_it_and_f_in_a_row_may_fail(f: int) -> None:
    tree = random_tree(14, 5, 3)
    regions = Regions(with_bypasses(tree, f), f)
    for origin, end in combinations(tree.brokers, 2):
        path = tree.path(origin, end)
        region = regions.way(origin, end)
        assert region.brokers == path
        for first in range(1, len(path)):
            dead = path[first : first + f]
            assert set(path) - set(dead) <= reached(region, origin, dead)


def test_on_a_tree_and_without_failures_it_is_the_path() -> None:
    assert Regions(chain(4), 2).way("b0", "b3").following == {"b0": ("b1",), "b1": ("b2",), "b2": ("b3",), "b3": ()}
    assert Regions(grid(2, 2), 0).way("b0", "b1").brokers == ("b0", "b1")


def test_several_receivers_share_their_paths() -> None:
    tree = kary(2, 2)
    region = Regions(tree, 0).of("b0", ("b3", "b4"))
    assert region.following == {"b0": ("b1",), "b1": ("b3", "b4"), "b3": (), "b4": ()}


@pytest.mark.parametrize("f", [1, 2])
def test_the_partial_pivots_are_the_pivot_and_the_next_f_towards_the_publisher(f: int) -> None:
    """Section VI-B: b0 publishes; the covering subscription is at b9, whose path leaves the newcomer's at b5."""
    tree = Overlay([f"b{n}" for n in range(10)], [*((f"b{n}", f"b{n + 1}") for n in range(8)), ("b5", "b9")])
    regions = Regions(with_bypasses(tree, f), f)
    covered = regions.way("b0", "b9").brokers
    assert regions.frontier("b0", "b8", covered) == tuple(f"b{n}" for n in range(5 - f, 6))


def test_pivots_of_covered_subscriptions_are_alone_or_with_the_next_f() -> None:
    regions = Regions(with_bypasses(chain(8), 2), 2)
    covered = regions.way("b0", "b7").brokers
    assert regions.frontier("b0", "b5", covered) == ("b5",)
    assert regions.frontier("b0", "b5", covered, 3) == ("b3", "b4", "b5")


def test_a_pivot_next_to_the_publisher_is_not_replaced_by_brokers_next_to_the_newcomer() -> None:
    """The covering subscription is at the publisher's own broker, so no other broker receives its events."""
    regions = Regions(with_bypasses(chain(7), 1), 1)
    covered = regions.way("b0", "b0").brokers
    assert regions.frontier("b0", "b6", covered, 2) == ("b0",)


@given(
    st.lists(st.integers(0, 100), min_size=3, max_size=12),
    st.tuples(*[st.integers(0, 100)] * 3),
    st.integers(0, 3),
)
def test_every_partial_pivot_on_a_tree_is_on_the_path_of_the_covering_subscription(
    parents: list[int], places: tuple[int, int, int], f: int
) -> None:
    tree = Overlay(
        [f"b{n}" for n in range(len(parents) + 1)],
        [(f"b{parent % (n + 1)}", f"b{n + 1}") for n, parent in enumerate(parents)],
    )
    publisher, cover, newcomer = (f"b{place % (len(parents) + 1)}" for place in places)
    regions = Regions(with_bypasses(tree, f), f)
    covered = regions.way(publisher, cover).brokers
    pivots = regions.frontier(publisher, newcomer, covered, f + 1)
    common = [name for name in tree.path(publisher, newcomer) if name in covered]
    assert pivots is not None
    assert set(pivots) == set(common[-f - 1 :])


def test_on_a_graph_partial_pivots_must_part_the_subscriber_from_the_publisher() -> None:
    regions = Regions(ring(6), 1)
    assert regions.frontier("b0", "b3", ["b2", "b4"]) == ("b2", "b4")
    assert regions.frontier("b0", "b3", ["b2"]) is None
    assert regions.frontier("b0", "b3", ["b3"]) == ("b3",)
    wide = Regions(grid(3, 3), 0)
    assert wide.frontier("b0", "b2", ["b0", "b1"]) is None
