"""Shared subscriptions, in whole runs of the protocols that support them: the receiver of each event, and
redeliveries."""

from collections.abc import Callable
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
    Reply,
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
SETTLE_MS = 40_000.0
EVENTS = 60


def play(
    protocol: str, *actions: Action, faults: tuple[Fault, ...] = (), disks: bool = False, **options: Any
) -> Trace:  # fmt: skip
    """Run a scenario in which ann publishes 60 events. All others can be in a group; bob answers his events, and dan
    receives all."""
    scenario = Scenario(
        Network("chain", brokers=4, disks=Delay(1.0, 1.0) if disks else None),
        ProtocolChoice(protocol, options),
        run=Run(settle_ms=SETTLE_MS),
        clients=tuple(
            Client(name, broker)
            for name, broker in (("ann", "b0"), ("bob", "b3"), ("cat", "b1"), ("dan", "b3"), ("eve", "b0"))
        ),
        actions=(
            AdvertiseAction(0.0, "ann", "a", "x > 0"),
            AdvertiseAction(0.0, "bob", "b", "y > 0"),
            SubscribeAction(100.0, "dan", "d", "x > 0 OR y > 0"),
            PublishAction(2_000.0, "ann", {"x": 1}, EVENTS, 20.0),
            *actions,
        ),
        replies=(Reply("bob", {"y": 1}, at_most=100),),
        faults=faults,
    )
    trace = run_scenario(scenario).trace
    assert trace is not None
    return trace


def got(trace: Trace, subscription: str) -> list[int]:
    return [int(row.event_id.split(":")[1]) for row in trace.history if row.subscription_id == subscription]


def again(trace: Trace, subscription: str) -> list[int]:
    start = subscription + "/again"
    return [int(row.event_id.split(":")[1]) for row in trace.history if (row.subscription_id or "").startswith(start)]


def share(client: str, at_ms: float = 300.0, **choices: Any) -> SubscribeAction:
    return SubscribeAction(at_ms, client, client[0], "x > 0", name="n", group=True, **choices)


def confirms(client: str, until_ms: float = 7_000.0) -> list[Action]:
    return [AckAction(at, client, client[0]) for at in range(2_000, int(until_ms), 100)]


ALL = list(range(1, EVENTS + 1))


def out_of_sight(client: str, begin_ms: float, end_ms: float) -> tuple[Fault, ...]:
    around = [(client, f"b{number}") for number in range(4)]
    return tuple([Cut(begin_ms, pair) for pair in around] + [Heal(end_ms, pair) for pair in around])


@pytest.fixture(params=KEEPS_NAMES)
def story(request: pytest.FixtureRequest) -> Story:
    return partial(play, request.param)


@pytest.fixture(params=KEEPS_DISKS)
def story_on_disks(request: pytest.FixtureRequest) -> Story:
    return partial(play, request.param, disks=True)


def test_each_event_goes_to_one_of_them(story: Story) -> None:
    trace = story(share("bob"), share("cat"), share("eve", 320.0))
    assert check(trace).status == "valid"
    parts = [got(trace, name) for name in "bce"]
    assert sorted(number for part in parts for number in part) == ALL
    assert all(len(part) > EVENTS / 6 for part in parts), "they take turns"
    assert got(trace, "group:n") == ALL


def test_one_alone_gets_everything(story: Story) -> None:
    trace = story(share("bob"))
    assert check(trace).status == "valid"
    assert got(trace, "b") == ALL


def test_a_client_that_joins_later_writes_a_part_from_then_on(story: Story) -> None:
    trace = story(share("bob"), share("cat", 2_200.0))
    assert check(trace).status == "valid"
    assert sorted(got(trace, "b") + got(trace, "c")) == ALL
    assert got(trace, "c")[0] > 5


def test_an_event_not_acknowledged_in_time_is_redelivered_to_another_member(story: Story) -> None:
    lazy = share("cat", ack="manual", redeliver_s=3.0)
    trace = story(share("bob", redeliver_s=3.0), lazy)
    assert check(trace).status == "valid"
    assert got(trace, "c"), "it was given something that it does not confirm"
    assert set(got(trace, "c")) <= set(again(trace, "b"))
    assert sorted({*got(trace, "b"), *again(trace, "b")}) == ALL


def test_events_acknowledged_in_time_are_not_redelivered_to_others(story: Story) -> None:
    trace = story(share("bob", redeliver_s=3.0), share("cat", ack="manual", redeliver_s=3.0), *confirms("cat"))
    assert check(trace).status == "valid"
    assert sorted(got(trace, "b") + got(trace, "c")) == ALL
    assert not again(trace, "b")
    assert not again(trace, "c")


@pytest.mark.parametrize("gone", ["bob", "cat"])
def test_a_leaving_member_leaves_unacknowledged_events(story: Story, gone: str) -> None:
    stays = "cat" if gone == "bob" else "bob"
    leaver = share(gone, ack="manual")
    trace = story(leaver, share(stays, 800.0), UnsubscribeAction(2_600.0, gone, gone[0]))
    assert check(trace).status == "valid"
    assert got(trace, gone[0])
    assert sorted({*got(trace, stays[0]), *again(trace, stays[0])}) == ALL


@pytest.mark.parametrize("gone", ["bob", "cat"])
def test_an_unreachable_member_loses_unacknowledged_events(story: Story, gone: str) -> None:
    """In one run the coordinator crashes after bob has attached, and in another run before."""
    stays = "cat" if gone == "bob" else "bob"
    faults = out_of_sight(gone, 2_600.0, 20_000.0)
    bob = share("bob", ack="manual" if gone == "bob" else "auto")
    cat = share("cat", 500.0, ack="manual" if gone == "cat" else "auto")
    trace = story(bob, cat, faults=faults, session_s=100.0)
    verdict = check(trace)
    assert verdict.status == "valid", verdict.reason
    assert got(trace, gone[0])
    assert sorted({*again(trace, stays[0]), *got(trace, stays[0])}) == ALL


@pytest.mark.parametrize("broker", ["b0", "b1", "b2", "b3"])
def test_a_broker_dies(story: Story, broker: str) -> None:
    trace = story(
        share("bob"), share("cat"), share("eve", 350.0), faults=(Crash(2_400.0, broker), Restart(6_000.0, broker))
    )
    verdict = check(trace)
    assert verdict.status == "valid", verdict.reason
    assert got(trace, "group:n") == ALL


def test_all_brokers_are_killed_at_once(story_on_disks: Story) -> None:
    faults: list[Fault] = [Crash(2_500.0, f"b{number}") for number in range(4)]
    faults += [Restart(2_600.0 + 50 * number, f"b{number}") for number in range(4)]
    trace = story_on_disks(share("bob"), share("cat"), faults=tuple(faults))
    verdict = check(trace)
    assert verdict.status == "valid", verdict.reason
    assert got(trace, "group:n") == ALL


def test_the_group_continues_where_it_stopped(story: Story) -> None:
    trace = story(
        share("bob"), share("cat"), UnsubscribeAction(2_500.0, "bob", "b"), UnsubscribeAction(2_500.0, "cat", "c"),
        share("eve", 5_000.0),
    )  # fmt: skip
    assert check(trace).status == "valid"
    assert sorted({*got(trace, "b"), *got(trace, "c"), *got(trace, "e"), *again(trace, "e")}) == ALL
    assert got(trace, "group:n") == ALL


def test_redeliveries_after_the_whole_group_was_away_are_marked(story: Story) -> None:
    leave = (UnsubscribeAction(2_600.0, "bob", "b"), UnsubscribeAction(2_600.0, "cat", "c"))
    trace = story(share("bob", ack="manual"), share("cat", ack="manual"), *leave, share("eve", 6_000.0))
    assert check(trace).status == "valid"
    had = {*got(trace, "b"), *got(trace, "c")}
    assert len(had) > 5
    assert had <= {*again(trace, "e")}, "nobody has confirmed it"
    assert max(again(trace, "e")) <= 30, "what was published after they left was delivered to nobody"
    assert sorted(again(trace, "e") + got(trace, "e")) == ALL


def test_shared_and_exclusive_attachments_do_not_mix(story: Story) -> None:
    trace = story(share("bob"), SubscribeAction(1_000.0, "cat", "c", "x > 0", name="n"))
    assert check(trace).status == "valid"
    assert got(trace, "b") == ALL
    assert "c" not in [row.subscription_id for row in trace.subscriptions]
