"""The contracted tree is a tree again, and everybody computes the same one."""

import random

import pytest

from gapless.overlay import Overlay, binary, chain, random_tree
from gapless.protocols.gapless.members.contraction import effective_links, path_inside, regions_at, stand_in
from gapless.protocols.gapless.members.status import (
    FIRST,
    Statuses,
    alive_status,
    excluded_status,
    is_excluded,
    is_unsettled,
    next_phase,
)

SEEDS = range(120)
OUT = excluded_status(0)


BACK = alive_status(1)
TAKEN_IN = next_phase(BACK)


def draw(seed: int) -> tuple[Overlay, Statuses]:
    """A tree, who of it is out or back, and which of those who are back have been taken in."""
    dice = random.Random(seed)
    overlay = random_tree(dice.randint(2, 14), seed, dice.choice([None, 3]))
    shares = dice.choice([(6, 2, 1, 1), (1, 2, 1, 1), (3, 0, 3, 1)])
    drawn = dice.choices([FIRST, OUT, BACK, excluded_status(1)], shares, k=len(overlay.brokers))
    status = {name: value for name, value in zip(overlay.brokers, drawn, strict=True) if value}
    status[dice.choice(overlay.brokers)] = FIRST
    status |= {name: TAKEN_IN for name, value in status.items() if value == BACK and dice.random() < 0.5}
    return overlay, status


def alive(overlay: Overlay, status: Statuses) -> list[str]:
    return [name for name in overlay.brokers if not is_excluded(status.get(name, FIRST))]


def test_without_exclusions_the_links_are_the_tree() -> None:
    overlay = binary(2)
    assert effective_links(overlay, {}, "b1") == [("b0", "b0"), ("b3", "b3"), ("b4", "b4")]


def test_the_parent_of_the_topmost_stands_in_and_all_others_on_the_boundary_are_linked_to_it() -> None:
    overlay, status = binary(3), {"b1": OUT, "b3": OUT}
    assert stand_in(overlay, status, "b1") == stand_in(overlay, status, "b3") == "b0"
    assert effective_links(overlay, status, "b0") == [("b1", "b4"), ("b1", "b7"), ("b1", "b8"), ("b2", "b2")]
    assert effective_links(overlay, status, "b7") == [("b3", "b0")]
    assert effective_links(overlay, status, "b4") == [("b1", "b0"), ("b9", "b9"), ("b10", "b10")]


def test_where_the_root_is_out_the_highest_of_the_boundary_stands_in() -> None:
    overlay = binary(2)
    assert stand_in(overlay, {"b0": OUT}, "b0") == "b1"
    assert stand_in(overlay, {"b0": OUT, "b1": OUT}, "b1") == "b2"
    assert effective_links(overlay, {"b0": OUT, "b1": OUT}, "b3") == [("b1", "b2")]


def test_nobody_stands_in_where_nobody_is_left() -> None:
    assert stand_in(chain(2), {"b0": OUT, "b1": OUT}, "b0") is None


@pytest.mark.parametrize("seed", SEEDS)
def test_the_contracted_graph_is_a_tree_over_the_living(seed: int) -> None:
    overlay, status = draw(seed)
    living = alive(overlay, status)
    peers = {name: [peer for _, peer in effective_links(overlay, status, name)] for name in living}
    for name, found in peers.items():
        assert len(set(found)) == len(found)
        assert name not in found
        assert all(name in peers[peer] for peer in found), "links have two ends"
    assert sum(map(len, peers.values())) == 2 * (len(living) - 1), "as many links as a tree has"
    reached, stack = {living[0]}, [living[0]]
    while stack:
        fresh = [peer for peer in peers[stack.pop()] if peer not in reached]
        reached.update(fresh)
        stack += fresh
    assert reached == set(living)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_link_leads_over_the_excluded_brokers_that_it_stands_for(seed: int) -> None:
    overlay, status = draw(seed)
    for name in alive(overlay, status):
        for via, peer in effective_links(overlay, status, name):
            way = overlay.path(name, peer)
            assert via == way[1]
            assert all(is_excluded(status.get(between, FIRST)) for between in way[1:-1])


@pytest.mark.parametrize("seed", SEEDS)
def test_everyone_in_a_group_computes_the_same_unit(seed: int) -> None:
    overlay, status = draw(seed)
    found = {region for name in alive(overlay, status) for region in regions_at(overlay, status, name)}
    for region in found:
        for member in region.group:
            assert region in regions_at(overlay, status, member)
    for name in overlay.brokers:
        holding = [region for region in found if name in region.core]
        assert len(holding) == is_unsettled(status.get(name, FIRST)), "every unsettled broker is in one region"


@pytest.mark.parametrize("seed", SEEDS)
def test_a_group_is_connected_in_the_contracted_tree(seed: int) -> None:
    overlay, status = draw(seed)
    for name in alive(overlay, status):
        for region in regions_at(overlay, status, name):
            towards = path_inside(overlay, status, region.group, name)
            assert set(towards) == set(region.group) - {name}
            for member in towards:
                at, steps = name, 0
                while at != member:
                    at = path_inside(overlay, status, region.group, at)[member]
                    steps += 1
                    assert steps <= len(region.group)


@pytest.mark.parametrize("seed", SEEDS)
def test_any_news_from_inside_a_unit_gives_it_another_tag(seed: int) -> None:
    overlay, status = draw(seed)
    for name in alive(overlay, status):
        for region in regions_at(overlay, status, name):
            for broker in region.core:
                later = {**status, broker: next_phase(status[broker])}
                tags = {item.tag for seen in alive(overlay, later) for item in regions_at(overlay, later, seen)}
                assert region.tag not in tags


def test_tags_differ_where_cores_do() -> None:
    overlay = chain(9)
    status = {"b1": OUT, "b4": OUT, "b7": OUT}
    tags = {region.tag for name in alive(overlay, status) for region in regions_at(overlay, status, name)}
    assert len(tags) == 3


def test_who_is_settled_takes_part_but_belongs_to_no_region() -> None:
    overlay, status = chain(5), {"b2": BACK, "b3": OUT}
    [large] = regions_at(overlay, status, "b2")
    [small] = regions_at(overlay, {**status, "b2": TAKEN_IN}, "b2")
    assert (large.core, large.group) == (("b2", "b3"), ("b2", "b1", "b4"))
    assert (small.core, small.group) == (("b3",), ("b2", "b4"))


def test_a_unit_that_comes_back_after_a_neighbour_was_taken_in_gets_another_tag() -> None:
    overlay = chain(5)
    [first] = regions_at(overlay, {"b3": OUT}, "b4")
    [again] = regions_at(overlay, {"b2": TAKEN_IN, "b3": OUT}, "b4")
    assert first.core == again.core
    assert first.tag != again.tag
