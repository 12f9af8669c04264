"""Schedules by priorities: messages of a connection stay in order, and rare orders occur that latencies hide."""

import msgspec
import pytest

from gapless.errors import ScenarioError
from gapless.simulator import generate, search, try_scenario
from gapless.simulator.priorities import SLOT_US, PriorityQueue, chance, depth_of


def delivered(depth: int, seed: int) -> list[tuple[str, int]]:
    queue = PriorityQueue(depth, seed)
    queue.plan(0)
    for number in range(3):
        for link in ("a", "b", "c"):
            queue.put(0, (link, number, link))
    found = []
    while queue.times:
        queue.now = queue.times.pop(0)
        queue.times.sort()
        bucket = queue.buckets[queue.now]
        for receiver, item, _ in bucket:
            if receiver is None:
                item()
            else:
                found.append((receiver, item))
        del queue.buckets[queue.now]
    return found


def test_one_connection_after_the_other_by_priority_each_in_order() -> None:
    found = delivered(1, seed=1)
    assert [number for _, number in found] == [0, 1, 2] * 3
    assert len({tuple(link for link, _ in delivered(1, seed)) for seed in range(40)}) == 6


def test_queued_messages_can_be_lost() -> None:
    queue = PriorityQueue(1, 0)
    queue.plan(0)
    for number in range(3):
        queue.put(0, ("a", number, "a"))
    assert queue.in_flight({"a": 0}) == {"a": 3}
    assert queue.lose({"a": 1}) == 2
    assert queue.in_flight({"a": 0}) == {"a": 1}


def test_the_chance_falls_with_each_ordering() -> None:
    slots = (2_000_000 + 1_000_000) // SLOT_US
    assert chance(10, 2_000_000, 1) == pytest.approx(0.1)
    assert chance(10, 2_000_000, 2) == pytest.approx(0.1 / slots)


@pytest.mark.parametrize("text", ["pct", "pct:0", "pct:x", "random", "pct:3:4"])
def test_other_schedules_are_refused(text: str) -> None:
    with pytest.raises(ScenarioError, match="there is no schedule"):
        depth_of(text)


def test_runs_by_priorities_are_valid_and_repeat() -> None:
    scenario = generate(52, "gapless", faults="none")
    scenario = msgspec.structs.replace(scenario, run=msgspec.structs.replace(scenario.run, schedule="pct:3"))
    first, second = try_scenario(scenario), try_scenario(scenario)
    assert first.status == "valid"
    assert first == second


def test_a_finding_repeats_with_its_schedule() -> None:
    options = {"switched_off": ("active-only",)}
    report = search("gapless", 8, faults="none", processes=1, schedule="pct:2", options=options, shrink_seconds=1)
    assert report.finding is not None
    assert report.finding.minimal.run.schedule == "pct:2"
    assert "--schedule pct:2" in report.finding.repeat
    assert try_scenario(generate(report.finding.seed, "gapless", faults="none")).status == "valid"
