"""Replacing a link of the tree: which nodes are notified, which messages are lost, and invalid replacements."""

from itertools import pairwise

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gapless.errors import OverlayError, ScenarioError
from gapless.overlay import chain, random_tree, star
from gapless.protocol import BrokerPlace
from gapless.registry import find_protocol
from gapless.simulator import (
    Latency,
    Scenario,
    Settings,
    check_scenario,
    generate,
    parse_scenario,
    run_scenario,
    search,
    shrink,
)
from gapless.simulator.networks import overlay_of
from gapless.simulator.relinking import ChangingTree, misfits
from gapless.simulator.scenario import Crash, Relink, Restart

from .flooding import FLOODING, FloodingClient
from .probe import Probe

MS = 1000
LATE = 1000 * MS
STEADY = Settings(latency=Latency(10 * MS, 10 * MS))

HEAD = """
[network]
shape = "chain"
brokers = 4
[protocol]
name = "flooding"
"""
RELINKING = msgspec.structs.replace(FLOODING, copes_with=frozenset({"relink"}))


def relink(at: float, old: tuple[str, str], new: tuple[str, str], gap: float = 0) -> str:
    return f'[[faults]]\nat_ms = {at}\nkind = "relink"\nold = {list(old)}\nnew = {list(new)}\ngap_ms = {gap}\n'


# ---- the tree


@given(st.integers(2, 12), st.integers(0, 99), st.lists(st.tuples(st.integers(0), st.integers(0), st.integers(0))))
@settings(max_examples=60)
def test_every_replacement_keeps_it_a_tree(brokers: int, seed: int, wishes: list[tuple[int, int, int]]) -> None:
    tree = ChangingTree(random_tree(brokers, seed))
    names = tree.overlay.brokers
    for edge, a, b in wishes:
        old, new = tree.overlay.edges[edge % (brokers - 1)], (names[a % brokers], names[b % brokers])
        before = tree.overlay
        joins = new[0] != new[1] and set(old) in map(set, pairwise(before.path(*new))) and set(old) != set(new)
        if not joins:
            with pytest.raises(OverlayError):
                tree.take_away(old, new)
            assert tree.overlay is before
            continue
        tree.take_away(old, new)
        tree.bring(new)
        assert len(tree.overlay.edges) == brokers - 1
        assert {*map(frozenset, before.edges)} - {frozenset(old)} | {frozenset(new)} == {
            *map(frozenset, tree.overlay.edges)
        }


# ---- inputs of nodes


def test_exactly_the_ends_of_both_links_are_notified() -> None:
    probe = Probe(chain(4))
    probe.simulation.relink(("b0", "b1"), ("b0", "b3"), at=20 * MS, gap=15 * MS)
    assert probe.simulation.run(settle=LATE).quiesced
    assert probe.logs.news("b0")[1:] == [(20 * MS, "unlinked", "b1"), (35 * MS, "linked", "b3")]
    assert probe.logs.news("b1")[1:] == [(20 * MS, "unlinked", "b0")]
    assert probe.logs.news("b3")[1:] == [(35 * MS, "linked", "b0")]
    assert probe.logs.news("b2")[1:] == []


def test_only_messages_in_flight_on_the_link_are_lost() -> None:
    probe = Probe(chain(4), settings=STEADY)
    probe.send("b0", "b1", at=15 * MS)
    probe.send("b1", "b0", at=15 * MS)
    probe.send("b1", "b2", at=15 * MS)
    probe.send("b0", "b3", at=15 * MS)
    probe.simulation.relink(("b0", "b1"), ("b0", "b3"), at=20 * MS)
    result = probe.simulation.run(settle=LATE)
    assert probe.logs.notes("b0") == probe.logs.notes("b1") == probe.logs.notes("b3") == []
    assert len(probe.logs.notes("b2")) == 1
    assert result.messages_lost == 3


def test_messages_take_the_way_of_the_new_tree() -> None:
    probe = Probe(chain(4), settings=STEADY)
    probe.send("b0", "b3", at=0)
    probe.simulation.relink(("b0", "b1"), ("b0", "b3"), at=100 * MS)
    probe.send("b0", "b3", at=200 * MS)
    probe.send("b0", "b1", at=200 * MS)
    probe.simulation.run(settle=LATE)
    assert [now for now, _, _ in probe.logs.notes("b3")] == [30 * MS, 210 * MS]
    assert [now for now, _, _ in probe.logs.notes("b1")] == [230 * MS]


def test_no_message_overtakes_where_the_path_gets_shorter() -> None:
    probe = Probe(chain(6), settings=STEADY)
    probe.send("b0", "b4", at=0, count=2)
    probe.simulation.relink(("b2", "b3"), ("b0", "b5"), at=10 * MS)
    probe.send("b0", "b4", at=11 * MS)
    probe.simulation.run(settle=LATE)
    assert [now for now, _, _ in probe.logs.notes("b4")] == [40 * MS, 40 * MS, 40 * MS]


def test_a_restarted_broker_receives_the_current_tree() -> None:
    probe = Probe(chain(3))
    probe.simulation.relink(("b0", "b1"), ("b0", "b2"), at=10 * MS)
    probe.simulation.crash("b2", at=20 * MS)
    probe.simulation.restart("b2", at=30 * MS)
    probe.simulation.run(settle=LATE)
    place = probe.logs.nodes[-1].place
    assert isinstance(place, BrokerPlace)
    assert sorted(place.overlay.neighbours("b2")) == ["b0", "b1"]


def test_relinks_that_do_not_fit_the_moment_are_refused() -> None:
    probe = Probe(star(4))
    probe.simulation.relink(("b1", "b2"), ("b1", "b3"), at=10 * MS)
    with pytest.raises(ScenarioError, match="no relink at 10 ms: b1–b2 is not a link of the tree at that time"):
        probe.simulation.run(settle=LATE)
    probe = Probe(star(4))
    probe.simulation.crash("b1", at=5 * MS)
    probe.simulation.relink(("b0", "b1"), ("b1", "b2"), at=10 * MS)
    with pytest.raises(ScenarioError, match="b0–b1 cannot be relinked at 10 ms: 'b1' is down"):
        probe.simulation.run(settle=LATE)


# ---- scenario files

CRASH = '[[faults]]\nat_ms = 5\nkind = "crash"\nbroker = "b3"\n'
MISTAKES = {
    "no broker": (relink(10, ("b0", "b9"), ("b0", "b3")), "faults[0].old: there is no broker 'b9'"),
    "no link": (
        relink(10, ("b0", "b2"), ("b0", "b3")),
        "faults[0]: b0–b2 is not a link of the tree at that time; 'b0' is linked to b1",
    ),
    "the same": (relink(10, ("b0", "b1"), ("b1", "b0")), "faults[0]: b0–b1 would replace itself; name another link"),
    "no tree": (
        relink(10, ("b0", "b1"), ("b1", "b3")),
        "faults[0]: without b0–b1 the tree has two parts, and b1–b3 does not join them",
    ),
    "a loop": (relink(10, ("b0", "b1"), ("b2", "b2")), "faults[0]: without b0–b1 the tree has two parts"),
    "in the order of time": (
        relink(20, ("b0", "b1"), ("b0", "b3")) + relink(10, ("b0", "b1"), ("b0", "b2")),
        "faults[0]: b0–b1 is not a link of the tree at that time; 'b0' is linked to b2",
    ),
    "not there yet": (
        relink(10, ("b0", "b1"), ("b0", "b3"), 10) + relink(15, ("b0", "b3"), ("b0", "b1")),
        "faults[1]: b0–b3 cannot be removed: it was not added yet",
    ),
    "negative": (relink(10, ("b0", "b1"), ("b0", "b3"), -1), "faults[0].gap_ms: -1 is negative"),
    "the dead": (
        CRASH + relink(10, ("b0", "b1"), ("b0", "b3")),
        "faults[1].new: 'b3' is down at 10 ms; relink other brokers",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_every_mistake_has_its_own_answer(mistake: str) -> None:
    text, expected = MISTAKES[mistake]
    with pytest.raises(ScenarioError) as caught:
        parse_scenario(HEAD + text, protocol=RELINKING)
    assert str(caught.value).startswith(expected)


def test_a_scenario_with_relinks_survives_being_written_and_runs() -> None:
    rows = relink(10, ("b0", "b1"), ("b0", "b3"), 5) + relink(15, ("b0", "b3"), ("b0", "b1"))
    latency = '[network.latency]\nlinks = { "b0-b3" = 7 }\n'
    scenario = parse_scenario(HEAD + latency + rows, protocol=RELINKING)
    assert scenario.faults[0] == Relink(10, ("b0", "b1"), ("b0", "b3"), 5)
    assert parse_scenario(scenario.to_toml(), protocol=RELINKING) == scenario
    assert run_scenario(scenario, protocol=RELINKING).quiesced


def test_protocols_that_do_not_cope_refuse() -> None:
    text = HEAD + relink(10, ("b0", "b1"), ("b0", "b3"))
    with pytest.raises(ScenarioError, match=r"faults\[0\]: protocol 'flooding' does not claim to tolerate relink; "):
        parse_scenario(text, protocol=FLOODING)
    with pytest.raises(
        ScenarioError, match=r"relink: protocol 'gapless' does not claim to tolerate .*\(.*epidemic.*\)"
    ):
        run_scenario(parse_scenario(text, protocol=RELINKING), protocol=find_protocol("gapless"))
    for kind in ("relink", "loss", "duplication"):
        with pytest.raises(ScenarioError, match=f"faults: protocol 'flooding' does not claim to tolerate {kind};"):
            search(FLOODING, 1, faults=f"crash,{kind}")


# ---- random scenarios


def test_relinks_and_losses_are_drawn_where_asked_for() -> None:
    seen = {"relink": 0, "gap": 0, "crash": 0, "restart": 0}
    for seed in range(60):
        scenario = generate(seed, "epidemic", "relink,crash,loss")
        check_scenario(scenario)
        assert parse_scenario(scenario.to_toml()) == scenario
        assert scenario.network.loss > 0
        assert scenario.network.duplication == 0
        for fault in scenario.faults:
            seen["relink"] += isinstance(fault, Relink)
            seen["gap"] += isinstance(fault, Relink) and fault.gap_ms > 0
            seen["crash"] += isinstance(fault, Crash)
            seen["restart"] += isinstance(fault, Restart)
    assert min(seen.values()) >= 30, seen
    alone = generate(1, "epidemic", "duplication")
    assert alone.faults == ()
    assert alone.network.duplication > 0
    assert alone.network.loss == 0


def test_other_kinds_are_drawn_as_ever() -> None:
    for faults in ("none", "crash", "all"):
        scenario = generate(5, "gapless", faults)
        assert not any(isinstance(fault, Relink) for fault in scenario.faults)
        assert scenario.network.loss == scenario.network.duplication == 0


def test_a_failing_scenario_with_relinks_gets_small_and_stays_sound() -> None:
    claims = msgspec.structs.replace(FLOODING, guarantee="gfd", copes_with=frozenset({"relink"}))
    report = search(claims, 40, faults="relink", processes=1, shrink_seconds=10)
    finding = report.finding
    assert finding is not None, "flooding takes its links from the start, so a relink must tear a gap"
    assert finding.symptom in ("gap", "unobserved")
    relinks = [fault for fault in finding.minimal.faults if isinstance(fault, Relink)]
    assert 1 <= len(relinks) < sum(isinstance(fault, Relink) for fault in finding.scenario.faults)
    check_scenario(finding.minimal, claims)


def test_relinks_that_lost_their_ground_go_too() -> None:
    rows = relink(10, ("b0", "b1"), ("b0", "b3")) + relink(20, ("b0", "b3"), ("b0", "b2"))
    scenario = parse_scenario(HEAD + rows, protocol=RELINKING)
    overlay = overlay_of(scenario.network)
    assert misfits(overlay, scenario.faults) == {}
    assert list(misfits(overlay, scenario.faults[1:])) == [0]
    assert _shrunk_faults(scenario) == ()


def _shrunk_faults(scenario: Scenario) -> tuple[object, ...]:
    broken = msgspec.structs.replace(RELINKING, client=_Broken)
    clients = '[[clients]]\nname = "c"\nbroker = "b0"\n'
    scenario = parse_scenario(scenario.to_toml() + clients, protocol=broken)
    return shrink(scenario, "exception AssertionError", protocol=broken).faults


class _Broken(FloodingClient):
    def __init__(self, place: object, options: object) -> None:
        pass

    def step(self, item: object, now: int) -> list[object]:  # type: ignore[override]
        raise AssertionError("always")
