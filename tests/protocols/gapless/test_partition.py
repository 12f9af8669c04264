"""What brokers do that no longer hear each other: where they wait in a cut, and how often one may come back.

          b0
        /    \\
      b1      b2
     /  \\    /  \\
    b3   b4 b5   b6
"""

from itertools import pairwise
from pathlib import Path

import msgspec
import pytest

from gapless.errors import ScenarioError
from gapless.overlay import binary, chain, star
from gapless.protocols.gapless import PROTOCOL
from gapless.protocols.gapless.life import Life
from gapless.protocols.gapless.members.membership import Membership
from gapless.protocols.gapless.members.quorum import is_majority, too_small
from gapless.protocols.gapless.members.resting import FIRST_US, MOST_US, SHORT_US, Rests
from gapless.protocols.gapless.members.status import excluded_status
from gapless.protocols.gapless.options import GaplessOptions
from gapless.protocols.gapless.recovery.found import Found
from gapless.protocols.gapless.site import Site
from gapless.protocols.gapless.succession import Succession
from gapless.simulator import generate, run_scenario, try_scenario
from gapless.simulator.scenario import (
    AdvertiseAction,
    Client,
    Cut,
    Delay,
    Heal,
    Network,
    ProtocolChoice,
    PublishAction,
    Run,
    Scenario,
    SubscribeAction,
)
from gapless.simulator.scenario_checks import check_scenario
from gapless.simulator.scenario_file import load_scenario

TREE = binary(2)
SCENARIOS = Path(__file__).parent / "cuts"


def waiting(name: str) -> Membership:
    return Membership(name, 0, TREE, 1, needs_majority=True)


def accuse(member: Membership, name: str, *accusers: str) -> None:
    member.suspect(name)
    for accuser in accusers:
        member.accuse(accuser, name, 0, True)


# ---- who may exclude whom ---------------------------------------------------------------------------------


def test_it_takes_more_than_half_of_those_around_a_broker_itself_included() -> None:
    around = 1 + len(TREE.within("b3", 2))
    assert around == 4
    assert [is_majority(TREE, 1, "b3", voices) for voices in range(5)] == [False, False, False, True, True]


def test_one_other_detector_is_not_enough_where_brokers_wait() -> None:
    member = waiting("b1")
    accuse(member, "b3", "b0")
    assert member.verdicts() == {}
    member.accuse("b4", "b3", 0, True)
    assert member.verdicts() == {"b3": excluded_status(0)}


def test_a_suspicion_that_nobody_joins_never_counts_where_brokers_wait() -> None:
    member = waiting("b1")
    accuse(member, "b3")
    member.grow_overdue("b3")
    assert member.verdicts() == {}
    assert member.unheard() == ["b3"]


def test_who_does_not_hear_more_than_half_of_those_around_it_excludes_nobody_and_completes_nothing() -> None:
    member = waiting("b1")
    assert TREE.within("b1", 2) == ("b0", "b3", "b4", "b2")
    accuse(member, "b3", "b0", "b4")
    member.suspect("b2")
    assert member.may_hand_over()
    member.suspect("b0")
    assert not member.may_hand_over()
    assert member.verdicts() == {}


def test_who_was_suspected_is_heard_again_only_when_it_has_said_something() -> None:
    member = waiting("b1")
    for name in ("b0", "b2", "b4"):
        member.suspect(name)
    member.trust("b0")
    assert not member.may_hand_over(), "it may have excluded this life, and is about to say so"
    assert member.hear("b0")
    assert member.may_hand_over()
    assert not member.hear("b0")


# ---- which trees are large enough -------------------------------------------------------------------------


def test_a_tree_whose_neighbourhoods_are_too_small_for_f_is_named() -> None:
    assert too_small(chain(3), 1) == []
    assert too_small(chain(2), 1) == ["b0", "b1"]
    assert too_small(chain(9), 2) == ["b0", "b8"]
    assert too_small(star(5), 2) == []


def test_a_tree_that_is_too_small_for_f_is_refused_with_the_ways_out() -> None:
    sentence = PROTOCOL.refuses(chain(9), 2, GaplessOptions())
    assert sentence == (
        "f = 2 needs at least 4 other brokers within 3 links of each broker, so that a majority is left when 2 of "
        'them fail, and b0, b8 have fewer; choose f = 1, add brokers, or set partition = "go on" under '
        "[protocol.options], with which a partition of the network can lose confirmed events"
    )
    assert PROTOCOL.refuses(chain(9), 2, GaplessOptions(partition="go on")) is None


@pytest.mark.parametrize(("brokers", "most"), [(1, 1), (2, 0), (3, 1), (4, 1), (5, 1)])
def test_what_a_newcomer_tries_first_has_an_f_that_fits(brokers: int, most: int) -> None:
    """A lone broker takes f = 1, the default of a network's file: nobody else could fail."""
    for f in range(3):
        assert (PROTOCOL.refuses(chain(brokers), f, GaplessOptions()) is None) == (f <= most or brokers == 1)


# ---- how often one comes back -----------------------------------------------------------------------------


def test_a_broker_stays_away_for_twice_as_long_with_each_short_life() -> None:
    rests = Rests()
    now = 60_000_000
    away = []
    for _ in range(8):
        away.append(rests.end(now))
        now += away[-1]
        rests.begin(now)
        now += 1_500_000
    assert away == [0, 0, FIRST_US, 2 * FIRST_US, 4 * FIRST_US, 8 * FIRST_US, MOST_US, MOST_US]
    assert rests.end(now + SHORT_US) == 0, "a life that lasted is forgiven"


def one_link(partition: str, *, one_way: bool) -> Scenario:
    """b0 is no longer heard by b1 for 20 s, and does or does not hear it; the tree is a chain of five."""
    return Scenario(
        network=Network(shape="chain", brokers=5, detection=Delay(1000.0, 1200.0)),
        protocol=ProtocolChoice("gapless", {"partition": partition}),
        clients=(Client("ann", "b0"), Client("bob", "b4")),
        actions=(
            AdvertiseAction(0.0, "ann", "a", "TRUE"),
            SubscribeAction(10.0, "bob", "s", "TRUE"),
            PublishAction(500.0, "ann", {"x": 1}, count=25, every_ms=1000.0),
        ),
        faults=(Cut(2000.0, ("b0", "b1"), one_way), Heal(22_000.0, ("b0", "b1"))),
        run=Run(settle_ms=20_000.0),
    )


@pytest.mark.parametrize(("partition", "lives"), [("go on", 6), ("wait", 1)])
@pytest.mark.parametrize("one_way", [True, False])
def test_a_broken_link_does_not_lead_a_broker_through_many_lives(
    partition: str, lives: int, one_way: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = dict.fromkeys(chain(5).brokers, 0)
    begin = Succession._begin

    def count(lives: Succession, site: Site, number: int, found: Found | None) -> Life:
        begun[site.name] += 1
        return begin(lives, site, number, found)

    monkeypatch.setattr(Succession, "_begin", count)
    assert try_scenario(one_link(partition, one_way=one_way)).status == "valid"
    assert max(begun.values()) <= lives


def test_others_go_on_without_a_broker_that_does_not_hear_its_neighbour() -> None:
    """It was excluded, and does not come back before it hears it: they would have to wait for it again."""
    cut = msgspec.structs.replace(one_link("go on", one_way=False), faults=(Cut(2000.0, ("b0", "b1")),))
    result = run_scenario(cut)
    assert result.trace is not None
    delivered = [row.time_ms for row in result.trace.history if row.kind == "deliver" and row.client == "bob"]
    waits = [later - earlier for earlier, later in pairwise(sorted(delivered))]
    assert len(delivered) == 25
    assert 2000.0 < max(waits) < 3500.0, "a suspicion, a second opinion, and at most one event's time"


# ---- cuts -------------------------------------------------------------------------------------------------


def test_what_an_island_confirmed_is_not_lost_where_brokers_wait() -> None:
    """b2 and b3 are cut off from the rest, which could go on without them but lacks what b2 had confirmed with b3."""
    island, others = ("b2", "b3"), ("b0", "b1", "b4", "b5")
    pairs = [(one, other) for one in island for other in others]
    scenario = Scenario(
        network=Network(shape="chain", brokers=6),
        protocol=ProtocolChoice("gapless", {"partition": "wait"}),
        clients=(Client("in", "b2"), Client("out", "b5"), Client("near", "b3"), Client("far", "b0")),
        actions=(
            AdvertiseAction(0.0, "in", "a1", "x = 1"),
            AdvertiseAction(0.0, "out", "a2", "x = 2"),
            SubscribeAction(100.0, "near", "s1", "TRUE"),
            SubscribeAction(100.0, "far", "s2", "TRUE"),
            PublishAction(500.0, "in", {"x": 1}, count=40, every_ms=50.0),
            PublishAction(510.0, "out", {"x": 2}, count=40, every_ms=50.0),
        ),
        faults=tuple(fault for pair in pairs for fault in (Cut(1000.0, pair), Heal(4000.0, pair))),
        run=Run(settle_ms=30_000.0),
    )
    result = run_scenario(scenario)
    assert result.trace is not None
    assert try_scenario(scenario).status == "valid"
    assert sum(row.kind == "deliver" for row in result.trace.history) == 160


def test_with_default_options_a_cut_of_ten_seconds_loses_nothing() -> None:
    """Two brokers are cut off from two. Ten events are published meanwhile, and all come when the cut has healed."""
    sides = ("b0", "b1", "pub"), ("b2", "b3", "sub")
    pairs = [(one, other) for one in sides[0] for other in sides[1] if (one, other) != ("pub", "sub")]
    scenario = Scenario(
        network=Network(shape="chain", brokers=4),
        protocol=ProtocolChoice("gapless"),
        clients=(Client("pub", "b0"), Client("sub", "b3")),
        actions=(
            AdvertiseAction(0.0, "pub", "a", "TRUE"),
            SubscribeAction(1000.0, "sub", "s", "TRUE"),
            PublishAction(6000.0, "pub", {"x": 1}, count=10, every_ms=100.0),
        ),
        faults=tuple(fault for pair in pairs for fault in (Cut(2000.0, pair), Heal(12_000.0, pair))),
        run=Run(settle_ms=30_000.0),
    )
    result = run_scenario(scenario)
    assert result.trace is not None
    assert not result.lost_publications
    assert not result.trace.skipped
    assert sum(row.kind == "deliver" for row in result.trace.history) == 10
    assert try_scenario(scenario).status == "valid"


@pytest.mark.parametrize("name", ["cut_in_two"])
def test_nothing_is_lost_in_a_cut_if_brokers_wait_and_something_is_and_is_told_if_they_go_on(name: str) -> None:
    scenario = load_scenario(SCENARIOS / f"{name}.toml")
    assert scenario.protocol.options["partition"] == "go on"
    scenario = msgspec.structs.replace(scenario, run=msgspec.structs.replace(scenario.run, may_lose=True))
    goes_on = try_scenario(scenario)
    assert goes_on.status == "valid"
    assert goes_on.verdict is not None
    assert goes_on.verdict.reported_losses > 0
    switched_off = {**scenario.protocol.options, "switched_off": ["tombstones", "parting"]}
    silent = msgspec.structs.replace(scenario, protocol=ProtocolChoice("gapless", switched_off))
    assert try_scenario(silent).status == "invalid"
    waits = msgspec.structs.replace(
        scenario, protocol=ProtocolChoice("gapless", {**scenario.protocol.options, "partition": "wait"})
    )
    outcome = try_scenario(waits)
    assert outcome.status == "valid"
    assert outcome.verdict is not None
    assert outcome.verdict.reported_losses == 0


def test_a_scenario_in_a_network_that_is_too_small_is_refused() -> None:
    scenario = Scenario(network=Network(shape="chain", brokers=2, f=1), protocol=ProtocolChoice("gapless"))
    with pytest.raises(ScenarioError, match=r"network: .* b0, b1 have fewer; choose f = 0, add brokers, or set"):
        check_scenario(scenario)
    check_scenario(msgspec.structs.replace(scenario, protocol=ProtocolChoice("gapless", {"partition": "go on"})))


@pytest.mark.parametrize("seed", [57, 68, 76, 90, 139, 460, 810])
def test_seeds_that_once_failed_are_valid(seed: int) -> None:
    assert try_scenario(generate(seed, "gapless", "partition")).status == "valid"


@pytest.mark.parametrize("seed", range(8))
def test_random_cuts_break_nothing_where_brokers_wait(seed: int) -> None:
    scenario = generate(seed, "gapless", "partition")
    assert any(isinstance(fault, Cut) for fault in scenario.faults)
    assert try_scenario(scenario).status in ("valid", "unknown")
