"""Random runs of the protocol: no violation. `test_killers` shows that one is found without each of its rules.

More of them by hand: `gapless sim search --protocol gapless --faults all --runs 5000`.
"""

from pathlib import Path

import pytest

from gapless.protocols.gapless import inputs
from gapless.simulator import generate, load_scenario, search, try_scenario

SCENARIOS = Path(__file__).parent / "scenarios"
KEPT = sorted(SCENARIOS.glob("*.toml"))
EARLIER = sorted((SCENARIOS / "earlier").glob("*.toml"))


@pytest.mark.parametrize(
    ("faults", "runs"),
    [("none", 2), ("crash", 5), ("cut", 3), ("suspicion", 3), ("partition", 3), ("all", 5), ("beyond-f", 3)],
)
@pytest.mark.parametrize("times", [1, pytest.param(10, marks=pytest.mark.slow)])
def test_no_violation(faults: str, runs: int, times: int) -> None:
    report = search("gapless", runs * times, first_seed=7000, faults=faults, processes=1, scale="small")
    assert report.finding is None, report.finding.repeat


@pytest.mark.parametrize("path", KEPT, ids=lambda path: path.stem)
def test_seeds_that_once_failed_are_valid(path: Path) -> None:
    outcome = try_scenario(load_scenario(path))
    assert outcome.status == "valid", outcome.symptoms


@pytest.mark.slow
@pytest.mark.parametrize("path", EARLIER, ids=lambda path: path.stem)
def test_a_run_that_an_earlier_recovery_failed_is_valid(path: Path) -> None:
    outcome = try_scenario(load_scenario(path))
    assert outcome.status == "valid", outcome.symptoms


@pytest.mark.parametrize(
    ("faults", "seed"),
    [
        (
            "disk,blackout",
            121,
        ),  # brokers whose disks had synced nothing before a full outage were treated as if they had no memory
        ("crash,suspicion,delete", 147),  # a group that was moved back reads events that were deleted meanwhile
        ("disk,blackout,delete", 617),  # events were reported as lost although the broker still had them in memory
        (
            "disk,crash,delete",
            62018,
        ),  # a subscription that was live between two reads was not notified of all deletions
        ("disk,crash", 55),  # a member that moved missed a report of loss; others got a wrong one
    ],
)
def test_a_random_run_that_once_failed_is_valid(faults: str, seed: int) -> None:
    assert try_scenario(generate(seed, "gapless", faults=faults)).status == "valid"


@pytest.mark.parametrize("faults", ["crash", "all"])
def test_waiting_inputs_may_be_taken_one_in_each_step(faults: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "WORK_MAX", 1)
    for seed in range(7100, 7103):
        outcome = try_scenario(generate(seed, "gapless", faults=faults))
        assert outcome.status == "valid", (seed, outcome.symptoms)


def test_the_same_seed_gives_the_same_trace() -> None:
    first, second = (try_scenario(generate(7001, "gapless", faults="crash")) for _ in range(2))
    assert first == second
