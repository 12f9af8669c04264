"""All brokers lose their memory. A subscription that begins before the publisher has returned lacks nothing.

    b0 - b1 - b2

`ann` publishes at b0. All brokers crash without disks, and are restarted. `ann` cannot reach any broker for a while.
"""

import pytest

from gapless.checkers import check
from gapless.protocol import Effect
from gapless.simulator.scenario import (
    AdvertiseAction,
    Client,
    Crash,
    Cut,
    Delay,
    Fault,
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
from gapless.trace import Trace

from .test_reported_losses import came, losses, run

BROKERS = ("b0", "b1", "b2")


def scenario() -> Scenario:
    away: tuple[Fault, ...] = tuple(Cut(4_995.0, ("ann", name)) for name in BROKERS)
    back: tuple[Fault, ...] = tuple(Heal(20_000.0, ("ann", name)) for name in BROKERS)
    return Scenario(
        name="lost memory",
        network=Network(
            shape="chain", brokers=3, f=1, latency=LatencySpec(ms=5.0), detection=Delay(50.0, 60.0)
        ),
        protocol=ProtocolChoice("gapless"),
        clients=(Client("ann", "b0"), Client("bob", "b2"), Client("cat", "b2"), Client("dan", "b1")),
        actions=(
            AdvertiseAction(0.0, "ann", "a", "x > 0"),
            SubscribeAction(1_000.0, "bob", "old", "x > 0"),
            PublishAction(2_000.0, "ann", {"x": 1}, count=2),
            PublishAction(4_970.0, "ann", {"x": 2}, count=3),
            SubscribeAction(10_000.0, "cat", "new", "x > 0"),
            SubscribeAction(10_000.0, "dan", "new_durable", "x > 0", name="keep"),
            SubscribeAction(10_000.0, "dan", "all", "x > 0", since_ms=0.0),
            PublishAction(30_000.0, "ann", {"x": 3}, count=2),
        ),
        faults=(
            Cut(4_960.0, ("b1", "b2")),
            *away,
            *(Crash(5_000.0, name) for name in BROKERS),
            Heal(5_100.0, ("b1", "b2")),
            *(Restart(5_500.0, name) for name in BROKERS),
            *back,
        ),
        run=Run(settle_ms=30_000.0, may_lose=True),
    )  # fmt: skip


@pytest.fixture(scope="module")
def outcome() -> tuple[Trace, list[Effect]]:
    return run(scenario())


def test_only_what_is_reported_is_missing(outcome: tuple[Trace, list[Effect]]) -> None:
    assert check(outcome[0]).status == "valid"


def test_an_earlier_subscription_is_notified_of_what_it_lacks(outcome: tuple[Trace, list[Effect]]) -> None:
    assert came(outcome[0], "old") == dict.fromkeys(["ann:1", "ann:2", "ann:6", "ann:7"], 1)
    assert losses(outcome[0], "old") == [("ann", 3), ("ann", 4), ("ann", 5)]


@pytest.mark.parametrize("subscription", ["new", "new_durable"])
def test_a_later_subscription_receives_no_report(subscription: str, outcome: tuple[Trace, list[Effect]]) -> None:
    assert came(outcome[0], subscription) == dict.fromkeys(["ann:6", "ann:7"], 1)
    assert losses(outcome[0], subscription) == []


def test_a_later_reader_of_everything_is_notified_of_all_deleted_ranges(outcome: tuple[Trace, list[Effect]]) -> None:
    assert came(outcome[0], "all") == dict.fromkeys(["ann:6", "ann:7"], 1)
    assert losses(outcome[0], "all") == [("ann", number) for number in range(1, 6)]
