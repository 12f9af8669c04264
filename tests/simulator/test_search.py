"""The search finds planted defects and reduces them."""

import signal
from collections.abc import Sequence

import msgspec
import pytest

from gapless.overlay import grid
from gapless.protocol import Effect, Input, Publish, Published, Received, Send
from gapless.simulator import Outcome, Progress, generate, search, shrink, try_scenario
from gapless.simulator.graph_scenarios import generate_on_graph
from gapless.simulator.scenario import Crash, PublishAction, Scenario, SubscribeAction
from gapless.simulator.shrink import fewest

from .flooding import FLOODING, Flood, FloodingBroker, FloodingClient

GAPLESS_CLAIM = msgspec.structs.replace(FLOODING, guarantee="gfd")


class ForgetfulBroker(FloodingBroker):
    def step(self, item: Input, now: int) -> Sequence[Effect]:
        if isinstance(item, Received) and isinstance(item.message, Flood):
            assert item.message.event.seq != 7, "seven is too much"
        return super().step(item, now)


class StutteringClient(FloodingClient):
    def step(self, item: Input, now: int) -> Sequence[Effect]:
        effects = super().step(item, now)
        if isinstance(item, Received) and isinstance(item.message, Flood) and item.message.event.seq % 5 == 0:
            return [*effects, *effects]
        return effects


STUTTERING = msgspec.structs.replace(FLOODING, client=StutteringClient)
FORGETFUL = msgspec.structs.replace(FLOODING, broker=ForgetfulBroker)


def rows(scenario: Scenario) -> int:
    return len(scenario.clients) + len(scenario.actions) + len(scenario.faults) + len(scenario.replies)


def test_a_planted_gap_is_found_and_shrunk() -> None:
    report = search(GAPLESS_CLAIM, 50, first_seed=3, faults="crash", processes=1)
    finding = report.finding
    assert finding is not None
    assert finding.symptom in ("gap", "unobserved")
    assert finding.verdict is not None
    assert finding.symptom in finding.verdict.counts
    assert rows(finding.minimal) <= 8
    assert rows(finding.scenario) > 60
    assert sum(isinstance(fault, Crash) for fault in finding.minimal.faults) == 1
    assert {type(action) for action in finding.minimal.actions} == {SubscribeAction, PublishAction}
    seed = finding.seed
    line = f"gapless sim search --protocol flooding --faults crash --first-seed {seed} --runs 1"
    assert finding.repeat == f"{line} --scale small"
    again = search(GAPLESS_CLAIM, 1, seed, "crash", processes=1)
    assert again.finding is not None
    assert again.finding.minimal == finding.minimal
    assert report.runs == seed - 3 + 1
    assert report.valid + report.unknown == report.runs - 1


def test_an_exception_in_a_node_is_a_finding() -> None:
    report = search(FORGETFUL, 5, processes=1)
    assert report.finding is not None
    assert report.finding.symptom == "exception AssertionError"
    assert report.finding.outcome.status == "broken"
    assert "seven is too much" in report.finding.outcome.summary
    assert "in step" in report.finding.outcome.traceback_text
    assert report.finding.verdict is None
    minimal = report.finding.minimal
    assert len(minimal.clients) == 1
    assert len(minimal.actions) == 7
    assert len(minimal.network.edges or ()) == 2 * minimal.network.f


def test_several_processes_find_the_same_as_one() -> None:
    def found(processes: int) -> tuple[int, int, str, Scenario]:
        report = search(STUTTERING, 40, 0, "all", processes=processes)
        assert report.finding is not None
        return report.runs, report.finding.seed, report.finding.symptom, report.finding.minimal

    assert found(2) == found(1)
    assert found(2)[2] == "duplicate"


def test_a_program_that_keeps_the_signal_to_end_for_itself_can_search() -> None:
    before = signal.signal(signal.SIGTERM, lambda *_: None)
    try:
        assert search(STUTTERING, 40, 0, "all", processes=2).finding is not None
    finally:
        signal.signal(signal.SIGTERM, before)


def test_a_search_without_findings_reports_it_and_its_progress() -> None:
    seen: list[Progress] = []
    report = search(FLOODING, 20, 100, "cut", processes=1, on_progress=seen.append)
    assert report.finding is None
    assert (report.runs, report.valid + report.unknown) == (20, 20)
    assert [progress.runs for progress in seen] == [8, 16, 20]
    assert all(progress.of == 20 and progress.phase == "search" for progress in seen)


def test_shrinking_reports_progress_and_stops_in_time() -> None:
    seen: list[Progress] = []
    search(STUTTERING, 8, on_progress=seen.append, processes=1)
    left = [progress.rows for progress in seen if progress.phase == "shrink"]
    assert len(left) >= 4
    assert left == sorted(left, reverse=True)
    scenario = generate(0, "flooding", "all")
    assert shrink(scenario, "duplicate", protocol=STUTTERING, seconds=0) == scenario


def test_options_are_repeated() -> None:
    report = search(STUTTERING, 8, options={"tick_ms": 50}, processes=1)
    assert report.finding is not None
    assert report.finding.repeat.endswith(" --runs 1 --scale small --option tick_ms=50")
    assert report.finding.minimal.protocol.options == {"tick_ms": 50}


class TwiceClient(FloodingClient):
    def step(self, item: Input, now: int) -> Sequence[Effect]:
        effects = super().step(item, now)
        self._seq -= isinstance(item, Publish) and self._seq == 2
        return [effect for effect in effects if isinstance(effect, Published | Send)]


def test_a_trace_that_cannot_be_is_a_finding() -> None:
    spec = msgspec.structs.replace(FLOODING, client=TwiceClient)
    outcome = try_scenario(generate(1, "flooding"), spec)
    assert outcome.symptoms == ("bad trace",)
    assert "published twice" in outcome.traceback_text


def test_outcomes_of_sound_runs_are_no_failures() -> None:
    outcome = try_scenario(generate(1, "flooding"), FLOODING)
    assert isinstance(outcome, Outcome)
    assert not outcome.failed
    assert outcome.verdict is not None


@pytest.mark.parametrize("needed", [set(), {3}, {0, 19}, {4, 5, 6, 17}, set(range(20))])
def test_fewest_keeps_just_what_is_needed(needed: set[int]) -> None:
    assert set(fewest(range(20), lambda rows: needed.issubset(rows))) == needed


def test_protocols_without_returns_get_scenarios_with_permanent_crashes() -> None:
    scenario = generate_on_graph(5, "locaps", "crash")
    assert scenario.faults
    assert all(isinstance(fault, Crash) for fault in scenario.faults)
    assert scenario == generate_on_graph(5, "locaps", "crash")
    report = search("locaps", 1, 5, "crash", processes=1)
    assert (report.valid, report.finding) == (1, None)


def test_some_graphs_are_grids() -> None:
    drawn = [generate_on_graph(seed, "locaps").network.edges or () for seed in range(40)]
    grids = {frozenset(grid(rows, columns).edges) for rows in range(2, 7) for columns in range(2, 21)}
    assert 3 <= sum(frozenset(edges) in grids for edges in drawn) <= 12
