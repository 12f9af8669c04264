"""Dropped history: a reader learns the numbers only of publishers whose events may have matched."""

import pytest

from gapless.checkers import check
from gapless.simulator import run_scenario
from gapless.simulator.scenario import (
    Action,
    AdvertiseAction,
    Client,
    LatencySpec,
    Network,
    ProtocolChoice,
    PublishAction,
    Run,
    Scenario,
    SubscribeAction,
    UnadvertiseAction,
)


def reports(*before: Action) -> dict[str, list[int]]:
    story = Scenario(
        name="dropped",
        network=Network(shape="chain", brokers=3, f=1, latency=LatencySpec(ms=5.0)),
        protocol=ProtocolChoice("gapless", {"history_s": 1.0}),
        clients=(Client("ann", "b0"), Client("pat", "b0"), Client("bob", "b2")),
        actions=(
            SubscribeAction(100.0, "bob", "first", "topic = 'a'", name="keep"),
            AdvertiseAction(0.0, "ann", "a", "topic = 'a'"),
            *before,
            PublishAction(500.0, "ann", {"topic": "a"}, count=40),
            PublishAction(510.0, "pat", {"topic": "b"}, count=40),
            PublishAction(4_000.0, "ann", {"topic": "a"}, count=1),
            SubscribeAction(6_000.0, "bob", "read", "topic = 'a'", since_ms=450.0),
        ),
        run=Run(settle_ms=10_000.0),
    )
    result = run_scenario(story, check_invariants=True)
    assert result.trace is not None
    assert check(result.trace).status == "valid"
    found: dict[str, list[int]] = {}
    for row in result.trace.skipped:
        if row.subscription_id == "read":
            found.setdefault(row.publisher, []).extend(range(row.from_seq, row.to_seq + 1))
    return found


def test_a_publisher_that_advertises_something_else_is_not_named() -> None:
    found = reports(AdvertiseAction(0.0, "pat", "b", "topic = 'b'"))
    assert list(found) == ["ann"]
    assert found["ann"][0] == 1


@pytest.mark.parametrize(
    "advertised",
    [
        (AdvertiseAction(0.0, "pat", "b", "TRUE"),),
        (  # it is unknown whose dropped events would have matched
            AdvertiseAction(0.0, "pat", "b", "topic = 'b'"),
            AdvertiseAction(0.0, "pat", "all", "TRUE"),
            UnadvertiseAction(3_000.0, "pat", "all"),
        ),
        (
            AdvertiseAction(0.0, "pat", "all", "TRUE"),
            UnadvertiseAction(3_000.0, "pat", "all"),
            AdvertiseAction(3_500.0, "pat", "b", "topic = 'b'"),
        ),
    ],
    ids=["matches", "matched", "advertised again"],
)
def test_a_publisher_whose_events_may_have_matched_is_named(advertised: tuple[Action, ...]) -> None:
    assert sorted(reports(*advertised)) == ["ann", "pat"]
