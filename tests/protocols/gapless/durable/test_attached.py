"""Durable subscriptions with one client at a time, in whole runs."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, TypeAlias

import pytest

from gapless.checkers import check
from gapless.registry import protocols
from gapless.simulator import run_scenario
from gapless.simulator.scenario import (
    AckAction,
    Action,
    AdvertiseAction,
    Client,
    Crash,
    Cut,
    Delay,
    Fault,
    Heal,
    Network,
    ProtocolChoice,
    PublishAction,
    Restart,
    Run,
    Scenario,
    SubscribeAction,
    UnsubscribeAction,
)
from gapless.trace import Trace

KEEPS_NAMES = [name for name, spec in protocols().items() if spec.keeps_names]
KEEPS_DISKS = [name for name in KEEPS_NAMES if protocols()[name].keeps_disks]
Story: TypeAlias = Callable[..., Trace]
SETTLE_MS = 12_000.0


def play(
    protocol: str, *actions: Action, faults: tuple[Fault, ...] = (), disks: bool = False, **options: Any
) -> Trace:  # fmt: skip
    scenario = Scenario(
        Network("chain", brokers=4, disks=Delay(1.0, 1.0) if disks else None),
        ProtocolChoice(protocol, options),
        run=Run(settle_ms=SETTLE_MS),
        clients=tuple(Client(name, broker) for name, broker in (("ann", "b0"), ("bob", "b3"), ("cat", "b1"))),
        actions=(
            AdvertiseAction(0.0, "ann", "a", "x > 0"),
            PublishAction(600.0, "ann", {"x": 1}, 60, 20.0),
            *actions,
        ),
        faults=faults,
    )
    trace = run_scenario(scenario).trace
    assert trace is not None
    return trace


@pytest.fixture(params=KEEPS_NAMES)
def story(request: pytest.FixtureRequest) -> Story:
    return partial(play, request.param)


@pytest.fixture(params=KEEPS_DISKS)
def story_on_disks(request: pytest.FixtureRequest) -> Story:
    return partial(play, request.param, disks=True)


def got(trace: Trace, subscription: str) -> list[int]:
    return [int(row.event_id.split(":")[1]) for row in trace.history if row.subscription_id == subscription]


BOB = SubscribeAction(300.0, "bob", "s1", "x > 0", name="n")
CAT = SubscribeAction(2_500.0, "cat", "s2", "x > 0", name="n")


def blackout() -> Iterator[Fault]:
    for number in range(4):
        yield Crash(1_500.0, f"b{number}")
        yield Restart(1_600.0 + 50 * number, f"b{number}")


def test_it_continues_elsewhere(story: Story) -> None:
    trace = story(BOB, UnsubscribeAction(1_000.0, "bob", "s1"), CAT)
    assert check(trace).status == "valid"
    first, second = got(trace, "s1"), got(trace, "s2")
    assert got(trace, "name:n") == list(range(1, 61))
    assert 5 < second[0] <= len(first) + 1 < 30, "what came while it left may come again"


def test_opening_the_store_removes_the_file(story: Story) -> None:
    trace = story(BOB, SubscribeAction(1_000.0, "cat", "s2", "x > 0", name="n"))
    assert check(trace).status == "valid"
    assert got(trace, "name:n") == list(range(1, 61))
    [row] = [row for row in trace.subscriptions if row.subscription_id == "s1"]
    assert row.ended_ms is not None


def test_unacknowledged_events_are_redelivered(story: Story) -> None:
    bob = SubscribeAction(300.0, "bob", "s1", "x > 0", name="n", ack="manual")
    trace = story(bob, AckAction(1_000.0, "bob", "s1"), CAT)
    assert check(trace).status == "valid"
    first, second = got(trace, "s1"), got(trace, "s2")
    assert len(first) == 60
    assert second == list(range(second[0], 61))
    assert 5 < second[0] < 30
    assert got(trace, "name:n") == list(range(1, 61))


def test_another_filter_is_refused_in_a_run_too(story: Story) -> None:
    trace = story(BOB, SubscribeAction(1_000.0, "cat", "s2", "x > 5", name="n"))
    assert got(trace, "s1") == list(range(1, 61))
    assert [row.subscription_id for row in trace.subscriptions] == ["s1", "name:n"]


def test_all_brokers_are_killed_while_no_client_is_connected(story_on_disks: Story) -> None:
    trace = story_on_disks(BOB, UnsubscribeAction(1_000.0, "bob", "s1"), CAT, faults=tuple(blackout()))
    assert check(trace).status == "valid"
    assert got(trace, "name:n") == list(range(1, 61))


def test_a_keeper_dies_while_somebody_listens(story: Story) -> None:
    trace = story(BOB, CAT, faults=(Crash(800.0, "b1"), Restart(1_800.0, "b1")))
    assert check(trace).status == "valid"
    assert got(trace, "name:n") == list(range(1, 61))


def test_a_client_away_for_longer_than_its_session_continues(story: Story) -> None:
    around = [("bob", f"b{number}") for number in range(1, 4)]
    faults = [Cut(900.0, pair) for pair in around] + [Heal(4_000.0, pair) for pair in around]
    trace = story(BOB, faults=tuple(faults), session_s=1.0)
    assert check(trace).status == "valid"
    assert got(trace, "s1") == list(range(1, 61))
