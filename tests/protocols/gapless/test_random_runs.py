"""Random runs with every kind of fault, and no violation; first of all the seeds that once showed one.

More of them by hand: `gapless sim search --protocol gapless --faults all --runs 5000`.
"""

import random
from typing import Any

import msgspec
import pytest

from gapless.registry import find_protocol
from gapless.simulator import GeneratorLimits, generate, run_scenario, try_scenario
from gapless.simulator.scenario import Delay, PublishAction

RUNS = 40
CHUNK = 20
UNKNOWN_MOST = 0.03
"""Share of runs in which so little happens that there is nothing to judge."""

ONCE_FAILED = {
    "none": (181, 182, 208, 230, 279, 392, 7790),
    "crash": (
        0, 1, 2, 10, 12, 21, 26, 32, 38, 43, 58, 61, 62, 68, 73, 89, 97, 100, 224, 246, 278, 350, 374, 383, 409,
        468, 494, 538, 615, 667, 868, 1143, 1167, 1195, 1336, 1574, 1715, 1734, 1758, 1785, 1889, 2196, 2345, 2387,
        2540, 2622, 2854, 2862, 2881, 2938, 3165, 3400, 3553, 3672, 3704, 4003, 4146, 4267, 4291, 4348, 4502, 4625,
        4965, 5022, 5935, 6023, 6151, 6485, 6537, 6642, 6650, 6908, 8620,
    ),
    "cut": (30, 66, 75, 83, 124, 201),
    "suspicion": (28, 34, 62, 84, 100, 102, 107, 116, 161, 182, 2496),
    "all": (97, 112, 468, 583, 615, 616, 631, 842, 1210, 1574, 2044, 2086, 2700, 3039, 4261, 5597, 6276, 7027, 8329),
}  # fmt: skip
"""By faults: seeds that showed a violation while the protocol was being made, with brokers that go on in a cut."""
GO_ON = {"partition": "go on"}


LATE = GeneratorLimits(
    brokers=(5, 8), publishers=(4, 6), subscribers=(4, 8), subscriptions=(40, 90), publications=(150, 250),
    active_ms=(3000, 5000),
)  # fmt: skip
LATE_ONCE_FAILED = {"crash": (99, 1312), "all": ()}


def run(seed: int, faults: str, options: dict[str, Any] | None = None) -> str:
    """The status of a run that must not fail."""
    outcome = try_scenario(generate(seed, "gapless", faults, options))
    chosen = "".join(f" --option {key}='{value}'" for key, value in (options or {}).items())
    repeat = f"gapless sim search --faults {faults} --first-seed {seed} --runs 1 --scale small{chosen}"
    assert not outcome.failed, f"{', '.join(outcome.symptoms)} {outcome.summary}\n{repeat}"
    return outcome.status


@pytest.mark.parametrize(
    ("faults", "seed"),
    [(faults, seed) for faults, seeds in ONCE_FAILED.items() for seed in seeds],
)
def test_what_once_failed(faults: str, seed: int) -> None:
    run(seed, faults, GO_ON)


@pytest.mark.parametrize("first", range(0, RUNS, CHUNK))
@pytest.mark.parametrize("faults", ONCE_FAILED)
def test_no_violation(faults: str, first: int) -> None:
    statuses = [run(seed, faults) for seed in range(first, first + CHUNK)]
    assert statuses.count("unknown") <= max(1, UNKNOWN_MOST * CHUNK)


@pytest.mark.parametrize("faults", LATE_ONCE_FAILED)
def test_no_violation_when_failures_are_noticed_late(faults: str) -> None:
    """So that much comes and goes meanwhile."""
    for seed in (*LATE_ONCE_FAILED[faults], *range(4)):
        scenario = generate(seed, "gapless", faults, limits=LATE)
        least = random.Random(seed).choice([200.0, 500.0, 1000.0])
        network = msgspec.structs.replace(scenario.network, detection=Delay(least, 1.3 * least))
        run_part = msgspec.structs.replace(scenario.run, settle_ms=9000.0)
        outcome = try_scenario(msgspec.structs.replace(scenario, network=network, run=run_part))
        assert not outcome.failed, (seed, outcome.symptoms)


@pytest.mark.parametrize("faults", ["none", "all"])
def test_when_all_is_over_nobody_keeps_an_event(faults: str) -> None:
    for seed in range(8):
        result = run_scenario(generate(seed, "gapless", faults, limits=GeneratorLimits(settle_ms=30_000.0)))
        assert result.state_sizes["retained"].max == 0, seed


@pytest.mark.parametrize("options", [{"coverage": False}, {"window": 5}, {"patience_ms": 100}], ids=str)
def test_no_violation_with_other_options(options: dict[str, Any]) -> None:
    limits = GeneratorLimits(settle_ms=60_000.0)
    for seed in range(6):
        outcome = try_scenario(generate(seed, "gapless", "all", options, limits))
        assert not outcome.failed, (seed, outcome.symptoms)


def test_it_claims_to_cope_with_all_of_this() -> None:
    spec = find_protocol("gapless")
    assert spec.guarantee == "gcd"
    assert spec.copes_with == {"crash", "restart", "cut", "suspicion", "disk", "blackout", "partition", "clock"}


@pytest.mark.parametrize("faults", ["none", "all"])
def test_no_violation_when_events_come_in_bursts(faults: str) -> None:
    for seed in range(8):
        scenario = generate(seed, "gapless", faults)
        actions = tuple(
            msgspec.structs.replace(action, count=1 + place % 4) if isinstance(action, PublishAction) else action
            for place, action in enumerate(scenario.actions)
        )
        outcome = try_scenario(msgspec.structs.replace(scenario, actions=actions))
        assert not outcome.failed, f"{faults} {seed}: {outcome.symptoms} {outcome.summary}"
