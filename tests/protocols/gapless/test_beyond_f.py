"""More than f: what is lost is told, in its place, to whoever should have got it and to whoever published it.

    b0 - b1 - b2 - b3 - b4

`ann` is at b4, whose backup is b3 (f = 1); `bob` is at b0.
"""

from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from gapless.events import Event
from gapless.overlay import binary
from gapless.protocol import Confirmed, Effect, Input, PublicationsLost, Skipped
from gapless.protocols.gapless.client import GaplessClient
from gapless.protocols.gapless.clients import desk, publications
from gapless.protocols.gapless.members.membership import Membership
from gapless.protocols.gapless.members.status import alive_status, excluded_status
from gapless.protocols.gapless.tombstones import tombstone
from gapless.simulator import generate, load_scenario, run_scenario, try_scenario
from gapless.simulator.scenario import (
    AdvertiseAction,
    Client,
    Crash,
    Cut,
    Delay,
    Fault,
    Forget,
    Heal,
    LatencySpec,
    Network,
    ProtocolChoice,
    PublishAction,
    Restart,
    Run,
    Scenario,
    SubscribeAction,
)
from gapless.simulator.trial import try_run

DEAD = ("b3", "b4")


def scenario(*faults: Fault, partition: str = "go on", **options: object) -> Scenario:
    """Ann publishes 1 and 2, which bob gets, then 3 to 5, which are confirmed and do not get farther than b3."""
    return Scenario(
        name="beyond f",
        network=Network(
            shape="chain",
            brokers=5,
            f=1,
            latency=LatencySpec(ms=5.0),
            detection=Delay(50.0, 60.0),
        ),
        protocol=ProtocolChoice("gapless", {"partition": partition, **options}),
        clients=(Client("ann", "b4"), Client("bob", "b0")),
        actions=(
            AdvertiseAction(0.0, "ann", "a", "TRUE"),
            SubscribeAction(10.0, "bob", "s", "TRUE"),
            PublishAction(2_000.0, "ann", {"x": 1}, count=2),
            PublishAction(5_000.0, "ann", {"x": 2}, count=3),
            PublishAction(20_000.0, "ann", {"x": 3}, count=2),
        ),
        faults=(
            Cut(4_990.0, ("b2", "b3")),
            *(Crash(5_030.0, name) for name in DEAD),
            Heal(5_500.0, ("b2", "b3")),
            *faults,
        ),
        run=Run(settle_ms=20_000.0, may_lose=True),
    )


def delivered(found: Scenario) -> list[str]:
    trace = run_scenario(found).trace
    assert trace is not None
    return [row.event_id for row in trace.history if row.subscription_id == "s"]


def told(found: Scenario) -> set[tuple[str, int]]:
    trace = run_scenario(found).trace
    assert trace is not None
    return {(row.publisher, seq) for row in trace.skipped for seq in range(row.from_seq, row.to_seq + 1)}


BACK_WITHOUT_MEMORY = tuple(Restart(6_000.0, name) for name in DEAD)
BACK_AS_THEY_WERE = tuple(Restart(6_000.0, name, memory=True) for name in DEAD)
NEVER_BACK = tuple(Forget(6_000.0, name, "b1") for name in DEAD)


@pytest.mark.parametrize("partition", ["wait", "go on"])
@pytest.mark.parametrize("faults", [BACK_WITHOUT_MEMORY, NEVER_BACK])
def test_what_is_lost_is_told_with_its_numbers_and_the_subscription_goes_on(
    partition: str, faults: tuple[Fault, ...]
) -> None:
    found = scenario(*faults, partition=partition)
    outcome, _ = try_run(found)
    assert outcome.status == "valid", outcome
    assert told(found) == {("ann", 3), ("ann", 4), ("ann", 5)}
    assert delivered(found) == ["ann:1", "ann:2", "ann:6", "ann:7"]
    assert outcome.verdict is not None
    assert outcome.verdict.reported_losses == 3


def test_without_tombstones_the_same_is_a_silent_gap() -> None:
    found = scenario(*BACK_WITHOUT_MEMORY, switched_off=["tombstones"])
    outcome, _ = try_run(found)
    assert outcome.symptoms == ("gap",)
    assert not told(found)


def test_a_loss_is_a_violation_where_no_more_fail_than_may() -> None:
    found = scenario(*BACK_WITHOUT_MEMORY)
    found = msgspec.structs.replace(found, run=Run(settle_ms=20_000.0))
    assert try_scenario(found).symptoms == ("told-loss",)


def test_who_all_come_back_with_what_they_had_lose_nothing_where_brokers_wait() -> None:
    found = scenario(*BACK_AS_THEY_WERE, partition="wait")
    assert try_scenario(found).status == "valid"
    assert not told(found)
    assert delivered(found) == [f"ann:{seq}" for seq in range(1, 8)]


def test_who_all_come_back_with_their_disks_lose_nothing_where_brokers_wait() -> None:
    found = scenario(*BACK_WITHOUT_MEMORY, partition="wait")
    found = msgspec.structs.replace(found, network=msgspec.structs.replace(found.network, disks=Delay(1.0, 2.0)))
    assert try_scenario(found).status == "valid"
    assert not told(found)
    assert delivered(found) == [f"ann:{seq}" for seq in range(1, 8)]


@pytest.mark.parametrize("memory", [True, False])
def test_what_they_come_back_with_when_the_others_have_gone_round_them_is_lost(memory: bool) -> None:
    found = scenario(*(Restart(7_000.0, name, memory=memory) for name in DEAD))
    found = msgspec.structs.replace(found, network=msgspec.structs.replace(found.network, disks=Delay(1.0, 2.0)))
    assert try_scenario(found).status == "valid"
    assert told(found) == {("ann", 3), ("ann", 4), ("ann", 5)}
    assert delivered(found) == ["ann:1", "ann:2", "ann:6", "ann:7"]


def test_who_waits_for_somebody_goes_on_when_an_operator_says_that_it_will_not_return() -> None:
    assert delivered(scenario(partition="wait")) == ["ann:1", "ann:2"]
    assert delivered(scenario(*NEVER_BACK, partition="wait"))[-1] == "ann:7"


@pytest.fixture
def effects(monkeypatch: pytest.MonkeyPatch) -> list[Effect]:
    found: list[Effect] = []
    step = GaplessClient.step

    def noted(self: GaplessClient, item: Input, now: int) -> Sequence[Effect]:
        caused = step(self, item, now)
        found.extend(caused)
        return caused

    monkeypatch.setattr(GaplessClient, "step", noted)
    return found


def test_the_publisher_learns_what_was_confirmed_and_is_lost(effects: list[Effect]) -> None:
    run_scenario(scenario(*BACK_WITHOUT_MEMORY))
    lost = [effect for effect in effects if isinstance(effect, PublicationsLost)]
    assert [effect.ranges for effect in lost] == [[(3, 5)]]
    assert Confirmed(5) in effects[: effects.index(lost[0])]


def test_a_publisher_that_comes_to_a_broker_which_knows_the_tombstone_learns_it_too(effects: list[Effect]) -> None:
    run_scenario(load_scenario(Path(__file__).parent / "scenarios" / "told_where_it_comes.toml"))
    assert [effect.ranges for effect in effects if isinstance(effect, PublicationsLost)] == [[(1, 1)]]


@pytest.mark.parametrize("seed", [200011, 200037, 200133])
def test_whoever_published_what_subscriptions_are_told_to_be_lost_learns_it_once(
    seed: int, effects: list[Effect], monkeypatch: pytest.MonkeyPatch
) -> None:
    buried: set[tuple[str, int]] = set()

    def noted(publisher: str, seq: int, stamp: int = 0, *, is_anybodys: bool = False) -> Event:
        buried.add((publisher, seq))
        return tombstone(publisher, seq, stamp, is_anybodys=is_anybodys)

    for module in (desk, publications):
        monkeypatch.setattr(module, "tombstone", noted)
    found = generate(seed, "gapless", "beyond-f")
    assert try_scenario(found).status == "valid"
    told = [seq for item in effects if isinstance(item, PublicationsLost) for seq in _numbers(item.ranges)]
    skipped = {
        (publisher, seq)
        for item in effects
        if isinstance(item, Skipped)
        for publisher, ranges in item.lost.items()
        for seq in _numbers(ranges)
    }
    assert buried & skipped
    assert {seq for _, seq in buried & skipped} <= set(told)


def _numbers(ranges: list[tuple[int, int]]) -> list[int]:
    return [seq for first, last in ranges for seq in range(first, last + 1)]


def test_a_broker_that_is_forgotten_counts_for_no_majority() -> None:
    member = Membership("b3", 0, binary(2), 1, needs_majority=True)
    for name in ("b1", "b0"):
        member.suspect(name)
    assert member.is_cut_off()
    member.forget({"b0": 0, "b1": 0})
    member.merge({"b0": excluded_status(0), "b1": excluded_status(0)})
    assert not member.is_cut_off()
    assert member.is_forgotten("b0")
    member.merge({"b0": alive_status(1)})
    assert not member.is_forgotten("b0")


@pytest.mark.parametrize("seed", [11, 18, 36, 65, 69, 80, 113, 150, 187, 253])
def test_seeds_that_once_lost_something_in_silence_are_valid(seed: int) -> None:
    assert try_scenario(generate(seed, "gapless", "beyond-f", scale="mixed")).status == "valid"


@pytest.mark.parametrize("seed", range(6))
def test_random_deaths_of_more_than_f_are_never_silent(seed: int) -> None:
    found = generate(seed, "gapless", "beyond-f")
    assert sum(isinstance(fault, Crash) for fault in found.faults) > found.network.f
    assert try_scenario(found).status in ("valid", "unknown")
