"""More than f brokers are lost, and other brokers have received a part of their journals. Exactly the subscriptions
that lack events are notified, once, and so is the publisher.

    b0 - b1 - b2 - b3 - b4

`ann` is at b2, whose journal b1 holds (f = 1). Her events 3 to 5 have reached b3 and b4, but not b0, when b1 and b2 are
lost.
"""

import msgspec
import pytest

from gapless.checkers import check
from gapless.protocol import Effect, PublicationsLost
from gapless.simulator.scenario import Client, Crash, Cut, Forget, Heal, Restart, Scenario, SubscribeAction
from gapless.trace import Trace

from .test_reported_losses import LOST, came, losses, run, scenario

DEAD = ("b1", "b2")
NEVER_BACK = tuple(Forget(9_000.0, name, "b0") for name in DEAD)
BACK_EMPTY = tuple(Restart(6_000.0, name) for name in DEAD)
ALL = {f"ann:{number}" for number in range(1, 9)}
NEAR = ("near", "far", "near_durable")
SUBSCRIBED_MS = 1_000.0


def partly_received(faults: tuple[Restart, ...] | tuple[Forget, ...], *, is_cut: bool = True) -> Scenario:
    plain = scenario()
    places = {"ann": "b2", "pat": "b3", "bob": "b0", "cat": "b0", "dan": "b0"}
    cut = (Cut(4_990.0, ("b0", "b1")), Heal(5_500.0, ("b0", "b1"))) if is_cut else ()
    return msgspec.structs.replace(
        plain,
        clients=(*(Client(name, broker) for name, broker in places.items()), Client("nan", "b3"), Client("fay", "b4")),
        actions=(
            *plain.actions,
            SubscribeAction(SUBSCRIBED_MS, "nan", "near", "x > 0"),
            SubscribeAction(SUBSCRIBED_MS, "fay", "far", "x > 0"),
            SubscribeAction(SUBSCRIBED_MS, "nan", "near_durable", "x > 0", name="near"),
            SubscribeAction(35_000.0, "nan", "reader", "x > 0", since_ms=0.0),
        ),
        faults=(*cut[:1], *(Crash(5_030.0, name) for name in DEAD), *cut[1:], *faults),
    )


@pytest.fixture(scope="module", params=[BACK_EMPTY, NEVER_BACK], ids=["back empty", "never back"])
def outcome(request: pytest.FixtureRequest) -> tuple[Trace, list[Effect]]:
    return run(partly_received(request.param))


def test_only_what_is_reported_is_missing(outcome: tuple[Trace, list[Effect]]) -> None:
    verdict = check(outcome[0])
    assert verdict.status == "valid"
    assert not verdict.anomalies


@pytest.mark.parametrize("subscription", NEAR)
def test_subscriptions_that_received_the_events_get_no_report_of_loss(
    subscription: str, outcome: tuple[Trace, list[Effect]]
) -> None:
    assert came(outcome[0], subscription) == dict.fromkeys(ALL, 1)
    assert losses(outcome[0], subscription) == []


@pytest.mark.parametrize("subscription", ["all", "some", "durable"])
def test_subscriptions_that_lack_the_events_are_notified_once(
    subscription: str, outcome: tuple[Trace, list[Effect]]
) -> None:
    assert losses(outcome[0], subscription) == LOST
    assert not {f"{publisher}:{seq}" for publisher, seq in LOST} & came(outcome[0], subscription).keys()


@pytest.mark.parametrize("subscription", ["other", "impossible", "late"])
def test_a_subscription_that_lacks_nothing_receives_no_report(
    subscription: str, outcome: tuple[Trace, list[Effect]]
) -> None:
    assert losses(outcome[0], subscription) == []


def test_a_reader_of_history_is_notified_of_deleted_ranges(outcome: tuple[Trace, list[Effect]]) -> None:
    assert losses(outcome[0], "reader")[-3:] == LOST


def test_the_publisher_is_notified_once_of_missing_deliveries(outcome: tuple[Trace, list[Effect]]) -> None:
    [lost] = [effect for effect in outcome[1] if isinstance(effect, PublicationsLost)]
    assert list(lost.ranges) == [(3, 5)]


def test_subscriptions_that_have_everything_receive_no_report_though_history_has_lost_it() -> None:
    trace, _ = run(partly_received(BACK_EMPTY, is_cut=False))
    assert check(trace).status == "valid"
    for subscription in ("all", "durable", *NEAR):
        assert losses(trace, subscription) == []
        assert came(trace, subscription).keys() >= ALL
    assert losses(trace, "reader")[-3:] == LOST
