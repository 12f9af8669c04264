"""Simulated disks behave like real ones, and their random faults stay within the budget."""

import random
from math import inf
from pathlib import Path

import msgspec
import pytest

from gapless.disk import Admit, Change, Delete, DiskContents, ForgetHistory, Put
from gapless.errors import ScenarioError
from gapless.overlay import chain
from gapless.protocol import BrokerNode, BrokerPlace, Keep, Persisted, Resumed, SetTimer, Start, TimerFired
from gapless.registry import find_protocol
from gapless.simulator import Settings, Simulation, check_scenario, generate, search
from gapless.simulator.budget import FaultBudget
from gapless.simulator.disk_plan import RETURN_MS
from gapless.simulator.disks import replay
from gapless.simulator.networks import overlay_of
from gapless.simulator.scenario import Crash, Restart, Scenario
from tests.storage.opened import opened

MS = 1000


def draw_changes(dice: random.Random, count: int) -> list[Change]:
    found: list[Change] = []
    stamp = 0
    for number in range(1, count + 1):
        stamp += dice.randint(1, 3)
        name = dice.choice(["b0/0", "b1/0"])
        blob = bytes([number % 256]) * 3
        choices: list[Change] = [
            Put(dice.choice("xyz"), blob), Delete(dice.choice("xyz")),
            Admit(name, stamp, stamp, 1, blob), Admit(name, stamp, stamp, 1, blob),
        ]  # fmt: skip
        found.append(dice.choice(choices))
    return found


@pytest.mark.parametrize("seed", range(5))
def test_a_simulated_disk_holds_what_a_real_one_does(seed: int, tmp_path: Path) -> None:
    changes = draw_changes(random.Random(seed), 120)
    with opened(tmp_path) as store:
        store.keep(*changes)
        origins = store.reader.history_totals()
        history = {origin: store.reader.history(origin, -1, 1 << 62, 1 << 30) for origin in origins}
        assert replay([changes]) == DiskContents(history, store.reader.entries())


def test_dropped_history_is_deleted() -> None:
    contents = replay([[Admit("b0", 1, 2, 1, b"a"), Admit("b0", 3, 4, 1, b"b")], [ForgetHistory("b0", 2)]])
    assert [row.last for row in contents.history["b0"]] == [4]


class Writer(BrokerNode):
    pause = MS
    occasions: tuple[type, ...] = (Start, TimerFired)

    def __init__(self, place: BrokerPlace, finds: list[DiskContents | None], reports: list[tuple[int, int]]) -> None:
        self._number = 0
        self._reports = reports
        finds.append(place.disk)

    def step(self, item: object, now: int) -> list[object]:  # type: ignore[override]
        if isinstance(item, Persisted):
            self._reports.append((now, item.number))
        if not isinstance(item, self.occasions):
            return []
        self._number += 1
        return [Keep(self._number, [Admit("j", self._number, self._number, 1, b"x")]), SetTimer("next", self.pause)]

    def state_size(self) -> dict[str, int]:
        return {}


def written(**faults: object) -> tuple[list[DiskContents | None], list[tuple[int, int]]]:
    finds: list[DiskContents | None] = []
    reports: list[tuple[int, int]] = []
    spec = msgspec.structs.replace(
        find_protocol("gapless"), broker=lambda place, options: Writer(place, finds, reports)
    )
    simulation = Simulation(chain(1), spec, f=0, settings=Settings(sync_us=(10 * MS, 10 * MS)))
    simulation.crash("b0", at=100 * MS + 500)
    simulation.restart("b0", at=200 * MS, **faults)  # type: ignore[arg-type]
    simulation.run(until=300 * MS)
    return finds, reports


def numbers(contents: DiskContents | None) -> int:
    assert contents is not None
    rows = list(contents.history.get("j", ()))
    assert [row.last for row in rows] == list(range(1, len(rows) + 1)), "a prefix"
    return len(rows)


def test_commits_follow_one_another_and_take_what_has_gathered() -> None:
    _, reports = written()
    assert reports[:4] == [(10 * MS, 1), (20 * MS, 10), (30 * MS, 20), (40 * MS, 30)]


def test_reported_commits_survive_and_of_the_rest_a_prefix() -> None:
    finds, reports = written()
    reported = max(number for time, number in reports if time <= 100 * MS)
    assert numbers(finds[0]) == 0
    assert reported <= numbers(finds[1]) <= 101


def test_an_old_disk_holds_less_and_a_lost_one_nothing() -> None:
    assert 0 < numbers(written(disk="old")[0][1]) < 60
    assert numbers(written(disk="lost")[0][1]) == 0


def test_a_paused_process_finds_everything_synced() -> None:
    finds, reports = written(memory=True)
    assert len(finds) == 1
    assert (200 * MS, 101) in reports


def test_a_writer_is_notified_once_of_the_end_of_its_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Writer, "pause", 80 * MS)
    monkeypatch.setattr(Writer, "occasions", (Start, TimerFired, Resumed))
    _, reports = written(memory=True)
    assert reports == [(10 * MS, 1), (90 * MS, 2), (200 * MS, 3), (210 * MS, 4), (290 * MS, 5)]


# ---- random draws ------------------------------------------------------------------------------------------------


def impaired(scenario: Scenario) -> list[tuple[str, float, float]]:
    """Return the periods in which each broker was down while others ran, or was running without all of its data."""
    spans = []
    alive = set(overlay_of(scenario.network).brokers)
    blackouts = set()
    for fault in scenario.faults:
        if isinstance(fault, Crash):
            alive.discard(fault.broker)
            if not alive:
                blackouts.add(fault.at_ms)
        elif isinstance(fault, Restart):
            alive.add(fault.broker)

    def all_back(blackout_ms: float) -> float:
        """Return the time at which the last broker that returns from a full outage has been running long enough to send
        others the data they lack."""
        backs: dict[str, float] = {}
        for fault in scenario.faults:
            if isinstance(fault, Restart) and fault.at_ms >= blackout_ms:
                backs.setdefault(fault.broker, fault.at_ms)
        return max(backs.values()) + 1.0

    wait = 0.0 if len(alive) == len(overlay_of(scenario.network).brokers) else RETURN_MS
    for fault in scenario.faults:
        if isinstance(fault, Crash):
            back = [f for f in scenario.faults if isinstance(f, Restart) and f.broker == fault.broker]
            back = [f for f in back if f.at_ms >= fault.at_ms]
            if not back:
                spans.append((fault.broker, fault.at_ms, inf))
            elif fault.at_ms in blackouts and back[0].disk != "kept":
                spans.append((fault.broker, fault.at_ms, back[0].at_ms + wait))
            elif fault.at_ms not in blackouts:
                during = [at_ms for at_ms in blackouts if fault.at_ms <= at_ms <= back[0].at_ms]
                spans.append((fault.broker, fault.at_ms, max([back[0].at_ms, *map(all_back, during)])))
    return spans


@pytest.mark.parametrize("faults", ["blackout", "disk,blackout", "crash,disk,blackout", "all"])
def test_no_more_than_f_of_a_neighbourhood_lose_their_disks_or_stay_away(faults: str) -> None:
    electorates = find_protocol("gapless").electorates
    assert electorates is not None
    for seed in (*range(60), 3393, 3908, 6153):
        scenario = generate(seed, "gapless", faults if faults != "all" else "crash,cut,suspicion,disk,blackout")
        check_scenario(scenario)
        overlay, f = overlay_of(scenario.network), scenario.network.f
        budget = FaultBudget(overlay, f, 0.0, electorates(overlay, f))
        for broker, start, end in impaired(scenario):
            assert budget.take(broker, start, end), f"seed {seed}: {broker} at {start}"


def test_blackouts_are_drawn_in_every_way() -> None:
    drawn = [generate(seed, "gapless", "blackout") for seed in range(60)]
    assert all(scenario.network.disks is not None for scenario in drawn)
    states = {fault.disk for scenario in drawn for fault in scenario.faults if isinstance(fault, Restart)}
    assert states == {"kept", "old", "lost", "damaged"}
    for scenario in drawn:
        names = set(overlay_of(scenario.network).brokers)
        times = [fault.at_ms for fault in scenario.faults if isinstance(fault, Crash)]
        assert {f.broker for f in scenario.faults if isinstance(f, Crash) and f.at_ms == min(times)} == names
    assert any(len({f.at_ms for f in scenario.faults if isinstance(f, Crash)}) > 1 for scenario in drawn), "twice"


def test_the_rest_of_a_scenario_is_the_same_with_disks() -> None:
    for seed in range(20):
        without, with_disks = generate(seed, "gapless", "crash"), generate(seed, "gapless", "crash,disk")
        assert with_disks.actions == without.actions
        assert with_disks.clients == without.clients
        assert [fault.at_ms for fault in with_disks.faults] == [fault.at_ms for fault in without.faults]


def test_a_protocol_without_disks_is_not_searched_with_them() -> None:
    with pytest.raises(ScenarioError, match="blackout is for protocols that use disks, which 'gryphon' does not"):
        search("gryphon", 1, faults="blackout")
