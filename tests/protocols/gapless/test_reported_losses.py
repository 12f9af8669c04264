"""More than f brokers are lost. The losses are reported exactly and once, to the publisher and the affected
subscriptions.

    b0 - b1 - b2 - b3 - b4

`ann` is at b4, whose journal b3 holds (f = 1); the subscribers are at b0. Her events 3 to 5 are confirmed, and have
reached only b3, when both brokers are lost.
"""

from collections import Counter
from collections.abc import Sequence

import msgspec
import pytest

from gapless.checkers import check
from gapless.protocol import Effect, Input, PublicationsLost, Skipped
from gapless.protocols.gapless.client import GaplessClient
from gapless.simulator import run_scenario
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
from gapless.trace import Trace

DEAD = ("b3", "b4")
NEVER_BACK = tuple(Forget(9_000.0, name, "b1") for name in DEAD)
BACK_EMPTY = tuple(Restart(6_000.0, name) for name in DEAD)
LOST = [("ann", 3), ("ann", 4), ("ann", 5)]


def scenario(*faults: Fault) -> Scenario:
    return Scenario(
        name="more than f",
        network=Network(
            shape="chain", brokers=5, f=1, latency=LatencySpec(ms=5.0), detection=Delay(50.0, 60.0)
        ),
        protocol=ProtocolChoice("gapless"),
        clients=(Client("ann", "b4"), Client("pat", "b2"), *(Client(name, "b0") for name in ("bob", "cat", "dan"))),
        actions=(
            AdvertiseAction(0.0, "ann", "a", "kind = 'x' AND x > 0"),
            AdvertiseAction(0.0, "pat", "a", "kind = 'y'"),
            SubscribeAction(1_000.0, "bob", "all", "TRUE"),
            SubscribeAction(1_000.0, "bob", "some", "x = 2"),
            SubscribeAction(1_000.0, "bob", "other", "kind = 'y'"),
            SubscribeAction(1_000.0, "cat", "impossible", "x < 0"),
            SubscribeAction(1_000.0, "dan", "durable", "x > 0", name="keep"),
            PublishAction(2_000.0, "ann", {"kind": "x", "x": 1}, count=2),
            PublishAction(2_000.0, "pat", {"kind": "y"}, count=2),
            PublishAction(5_000.0, "ann", {"kind": "x", "x": 2}, count=3),
            PublishAction(20_000.0, "ann", {"kind": "x", "x": 2}, count=2),
            PublishAction(20_000.0, "pat", {"kind": "y"}, count=2),
            SubscribeAction(30_000.0, "cat", "late", "x > 0"),
            PublishAction(40_000.0, "ann", {"kind": "x", "x": 3}, count=1),
        ),
        faults=(
            Cut(4_990.0, ("b2", "b3")),
            *(Crash(5_030.0, name) for name in DEAD),
            Heal(5_500.0, ("b2", "b3")),
            *faults,
        ),
        run=Run(settle_ms=30_000.0, may_lose=True),
    )  # fmt: skip


def run(played: Scenario) -> tuple[Trace, list[Effect]]:
    effects: list[Effect] = []
    step = GaplessClient.step

    def noted(self: GaplessClient, item: Input, now: int) -> Sequence[Effect]:
        caused = step(self, item, now)
        effects.extend(caused)
        return caused

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(GaplessClient, "step", noted)
        trace = run_scenario(played).trace
    assert trace is not None
    return trace, effects


@pytest.fixture(scope="module", params=[BACK_EMPTY, NEVER_BACK], ids=["back empty", "never back"])
def outcome(request: pytest.FixtureRequest) -> tuple[Trace, list[Effect]]:
    return run(scenario(*request.param))


def losses(trace: Trace, subscription: str) -> list[tuple[str, int]]:
    rows = [row for row in trace.skipped if row.subscription_id == subscription]
    return sorted((row.publisher, seq) for row in rows for seq in range(row.from_seq, row.to_seq + 1))


def came(trace: Trace, subscription: str) -> Counter[str]:
    return Counter(row.event_id for row in trace.history if row.subscription_id == subscription)


def test_only_what_is_reported_is_missing(outcome: tuple[Trace, list[Effect]]) -> None:
    verdict = check(outcome[0])
    assert verdict.status == "valid"
    assert not verdict.anomalies


@pytest.mark.parametrize("subscription", ["all", "some", "durable"])
def test_a_subscription_is_notified_of_exactly_the_lost_events_and_once(
    subscription: str, outcome: tuple[Trace, list[Effect]]
) -> None:
    assert losses(outcome[0], subscription) == LOST


@pytest.mark.parametrize("subscription", ["other", "impossible", "late"])
def test_a_subscription_that_lacks_nothing_receives_no_report(
    subscription: str, outcome: tuple[Trace, list[Effect]]
) -> None:
    assert losses(outcome[0], subscription) == []


def test_everything_else_comes_once(outcome: tuple[Trace, list[Effect]]) -> None:
    assert came(outcome[0], "all") == dict.fromkeys(
        ["ann:1", "ann:2", "ann:6", "ann:7", "ann:8", "pat:1", "pat:2", "pat:3", "pat:4"], 1
    )
    assert came(outcome[0], "durable") == dict.fromkeys(["ann:1", "ann:2", "ann:6", "ann:7", "ann:8"], 1)
    assert came(outcome[0], "late") == {"ann:8": 1}


def test_the_publisher_is_notified_once_of_all_losses(outcome: tuple[Trace, list[Effect]]) -> None:
    [lost] = [effect for effect in outcome[1] if isinstance(effect, PublicationsLost)]
    assert list(lost.ranges) == [(3, 5)]


def test_members_of_a_shared_subscription_are_notified_once_though_its_coordinator_moves() -> None:
    plain = scenario(*BACK_EMPTY, Crash(50_000.0, "b1"))
    shared = msgspec.structs.replace(
        plain,
        clients=(*plain.clients, Client("eve", "b1"), Client("fay", "b0")),
        actions=(
            *plain.actions,
            SubscribeAction(1_000.0, "eve", "first", "x > 0", name="crew", group=True, ack="manual"),
            SubscribeAction(1_200.0, "fay", "second", "x > 0", name="crew", group=True, ack="manual"),
        ),
    )
    _, effects = run(shared)
    outcome = [(each.subscription, each.lost) for each in effects if isinstance(each, Skipped)]
    assert [ranges for subscription, ranges in outcome if subscription == "first"] == [{"ann": [(3, 5)]}]
    assert [ranges for subscription, ranges in outcome if subscription == "second"] == [{"ann": [(3, 5)]}]
