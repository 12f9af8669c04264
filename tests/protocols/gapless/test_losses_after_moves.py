"""More than f brokers are lost, after a subscription has moved twice. It is notified of exactly the events that it
lacks, and not of those that it received, or that did not match, while it was live.

    b0 - b1 - b2 - b3 - b4 - b5

`ann` is at b5, whose journal b4 holds (f = 1). Both are lost, with all her events.
"""

import pytest

from gapless.checkers import check
from gapless.simulator import run_scenario
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

MOVES = tuple(
    fault for begins_ms in (5_000.0, 15_000.0) for fault in (Crash(begins_ms, "b0"), Restart(begins_ms + 2_000.0, "b0"))
)
"""`bob` moves away from his broker and returns, twice."""


def run(*actions: PublishAction, lost_ms: float, faults: tuple[Fault, ...] = ()) -> Trace:
    """Run the scenario and return the trace. The subscription `bob` begins after one second, at b0."""
    scenario = Scenario(
        name="lost after moves",
        network=Network(
            shape="chain", brokers=6, f=1, latency=LatencySpec(ms=5.0), detection=Delay(50.0, 60.0)
        ),
        protocol=ProtocolChoice("gapless"),
        clients=(Client("ann", "b5"), Client("bob", "b0")),
        actions=(
            AdvertiseAction(0.0, "ann", "a", "x > 0"),
            SubscribeAction(1_000.0, "bob", "two", "x = 2"),
            *actions,
            PublishAction(lost_ms + 20_000.0, "ann", {"x": 2}),
        ),
        faults=(
            *MOVES,
            *faults,
            *(Crash(lost_ms, name) for name in ("b4", "b5")),
            *(Restart(lost_ms + 5_000.0, name) for name in ("b4", "b5")),
        ),
        run=Run(settle_ms=30_000.0, may_lose=True),
    )  # fmt: skip
    trace = run_scenario(scenario).trace
    assert trace is not None
    assert check(trace).status == "valid"
    return trace


def reported(trace: Trace) -> list[int]:
    return sorted(seq for row in trace.skipped for seq in range(row.from_seq, row.to_seq + 1))


def received(trace: Trace) -> list[str]:
    return [row.event_id for row in trace.history if row.subscription_id == "two"]


@pytest.mark.parametrize("published_ms", [2_000.0, 10_000.0, 20_000.0])
def test_events_that_all_brokers_processed_while_it_was_live_are_not_reported(published_ms: float) -> None:
    trace = run(PublishAction(published_ms, "ann", {"x": 1}, count=3), lost_ms=25_000.0)
    assert reported(trace) == []
    assert received(trace) == ["ann:4"]


def test_only_lost_events_are_reported_and_only_received_ones_arrive() -> None:
    actions = (
        PublishAction(2_000.0, "ann", {"x": 2}, count=2),
        PublishAction(10_000.0, "ann", {"x": 2}, count=2),
        PublishAction(20_000.0, "ann", {"x": 1}),
        PublishAction(25_000.0, "ann", {"x": 2}, count=2),
    )
    trace = run(*actions, lost_ms=25_030.0, faults=(Cut(24_990.0, ("b3", "b4")), Heal(26_000.0, ("b3", "b4"))))
    assert reported(trace) == [6, 7]
    assert received(trace) == ["ann:1", "ann:2", "ann:3", "ann:4", "ann:8"]
