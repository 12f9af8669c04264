"""The predefined trees have the shapes that their names describe."""

from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gapless.errors import OverlayError
from gapless.overlay import Overlay, binary, chain, from_edges, kary, random_tree, star


def degrees(overlay: Overlay) -> Counter[int]:
    return Counter(len(overlay.neighbours(name)) for name in overlay.brokers)


def test_binary() -> None:
    overlay = binary(3)
    assert overlay.brokers == tuple(f"b{number}" for number in range(15))
    assert overlay.root == "b0"
    assert degrees(overlay) == {2: 1, 3: 6, 1: 8}
    assert overlay.children("b2") == ("b5", "b6")
    assert overlay.diameter == 6


def test_kary() -> None:
    overlay = kary(3, 2)
    assert len(overlay.brokers) == 13
    assert overlay.children("b1") == ("b4", "b5", "b6")
    assert kary(1, 4).edges == chain(5).edges
    assert kary(7, 0).brokers == ("b0",)


def test_chain_and_star() -> None:
    assert degrees(chain(6)) == {1: 2, 2: 4}
    assert degrees(star(6)) == {5: 1, 1: 5}
    assert chain(1).brokers == star(1).brokers == ("b0",)


def test_from_edges_keeps_the_order_of_first_mention() -> None:
    overlay = from_edges([("rome", "oslo"), ("oslo", "bern")])
    assert overlay.brokers == ("rome", "oslo", "bern")
    assert overlay.root == "oslo"


@given(st.integers(1, 60), st.integers(0, 1000), st.integers(2, 5))
def test_random_trees_keep_the_degree(brokers: int, seed: int, max_degree: int) -> None:
    overlay = random_tree(brokers, seed, max_degree)
    assert len(overlay.brokers) == brokers
    assert max(degrees(overlay)) <= max_degree


def test_random_trees_are_a_function_of_the_seed() -> None:
    assert random_tree(40, 3).edges == random_tree(40, 3).edges
    assert random_tree(40, 3).edges != random_tree(40, 4).edges
    assert random_tree(2, 0, max_degree=1).edges == (("b0", "b1"),)


@pytest.mark.parametrize(
    "build",
    [
        lambda: binary(12),
        lambda: kary(10, 4),
        lambda: chain(10_000),
        lambda: star(10_000),
        lambda: random_tree(10_000, 1),
        lambda: random_tree(10_000, 2, 3),
    ],
    ids=["binary", "kary", "chain", "star", "random", "random-3"],
)
def test_ten_thousand_brokers(build: Callable[[], Overlay]) -> None:
    overlay = build()
    assert len(overlay.brokers) >= 8191
    far = overlay.brokers[-1]
    assert len(overlay.path("b0", far)) == overlay.distance("b0", far) + 1
    assert overlay.distance(overlay.root, far) <= (overlay.diameter + 1) // 2
    assert len(overlay.within(overlay.root, 1)) == len(overlay.neighbours(overlay.root))


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: chain(0), "brokers is 0, but must be at least 1"),
        (lambda: star(-1), "brokers is -1"),
        (lambda: kary(0, 2), "fanout is 0"),
        (lambda: binary(-1), "depth is -1"),
        (lambda: random_tree(3, 0, max_degree=1), "max_degree is 1, but must be at least 2"),
    ],
)
def test_impossible_shapes(build: object, message: str) -> None:
    assert callable(build)
    with pytest.raises(OverlayError, match=message):
        build()
