"""Electorates, regions and the contracted tree."""

from gapless.overlay import chain, from_edges, star
from gapless.protocol import convert_options
from gapless.protocols.gapless.identities import Status
from gapless.protocols.gapless.topology import Topology, electorates, next_hops
from gapless.registry import find_protocol

OUT = Status(0, 1, 1)


def test_an_electorate_is_the_broker_and_its_2f_nearest() -> None:
    found = electorates(chain(6), 2)
    assert found["b2"] == ("b2", "b1", "b3", "b0", "b4")
    assert found["b0"] == ("b0", "b1", "b2", "b3", "b4")


def test_an_electorate_does_not_depend_on_how_a_file_lists_the_links() -> None:
    edges = [("b1", "b2"), ("b1", "b3"), ("b2", "b4"), ("b2", "b0")]
    swapped = [(other, one) for one, other in reversed(edges)]
    assert electorates(from_edges(edges), 1) == electorates(from_edges(swapped), 1)
    assert electorates(from_edges(edges), 1)["b4"] == ("b4", "b2", "b0")


def test_a_network_without_2f_plus_1_brokers_is_refused_with_the_ways_out() -> None:
    spec = find_protocol("gapless")
    options = convert_options(spec, {})
    assert spec.refuses(chain(5), 2, options) is None
    assert spec.refuses(chain(4), 2, options) == (
        "f = 2 needs 5 brokers, but there are 4: choose a smaller f, or add brokers (they may serve no clients)"
    )


def test_the_neighbours_of_an_excluded_broker_become_a_star() -> None:
    topology = Topology(star(5), 1)
    centre = star(5).root
    leaves = [name for name in star(5).brokers if name != centre]
    [region] = topology.regions_of({centre: OUT}, leaves[2])
    assert set(region.group) == set(leaves)
    links = topology.links_of({centre: OUT}, region)
    assert {link.ends[0] for link in links} == {region.group[0]}
    assert all(link.via == {centre} for link in links)
    assert next_hops(leaves[1], links)[leaves[2]] == region.group[0]


def test_adjacent_excluded_brokers_are_one_region() -> None:
    topology = Topology(chain(6), 2)
    statuses = {"b2": OUT, "b3": OUT}
    [region] = topology.regions_of(statuses, "b1")
    assert region.core == {"b2", "b3"}
    assert set(region.group) == {"b1", "b4"}
    assert [set(link.ends) for link in topology.links_of(statuses, region)] == [{"b1", "b4"}]


def test_a_joining_broker_takes_part_in_its_own_region() -> None:
    topology = Topology(chain(4), 1)
    statuses = {"b1": Status(1, 0, 1)}
    [region] = topology.regions_of(statuses, "b1")
    assert region.core == {"b1"}
    assert set(region.group) == {"b0", "b1", "b2"}
