"""Single acknowledgements, nacks and dead letters in whole runs, verified by the checker."""

import pytest
from msgspec.structs import replace

from gapless.checkers import check
from gapless.simulator import run_scenario
from gapless.simulator.scenario import (
    AckAction,
    AckEachAction,
    Action,
    AdvertiseAction,
    Client,
    Crash,
    Fault,
    InProgressAction,
    NackAction,
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


def play(*actions: Action, faults: tuple[Fault, ...] = ()) -> Trace:
    scenario = Scenario(
        Network("chain", brokers=4),
        ProtocolChoice("gapless"),
        run=Run(settle_ms=40_000.0),
        clients=tuple(Client(name, b) for name, b in (("ann", "b0"), ("bob", "b3"), ("cat", "b1"), ("dan", "b2"))),
        actions=(
            AdvertiseAction(0.0, "ann", "a", "x > 0"),
            SubscribeAction(100.0, "dan", "d", "dead_letter.subscription = 'n'"),
            PublishAction(2_000.0, "ann", {"x": 1}, 10, 20.0),
            *actions,
        ),
        faults=faults,
    )
    trace = run_scenario(scenario).trace
    assert trace is not None
    return trace


def attach(client: str, at_ms: float = 300.0, *, group: bool = False, most: int = 0) -> SubscribeAction:
    return SubscribeAction(
        at_ms, client, client[0], "x > 0", name="n", ack="manual", group=group, redeliver_s=3.0, max_deliveries=most
    )


def got(trace: Trace, subscription: str) -> list[str]:
    found = [row for row in trace.history if row.subscription_id and row.subscription_id.startswith(subscription)]
    return [row.event_id for row in found]


@pytest.mark.parametrize("group", [False, True])
@pytest.mark.parametrize("delay_ms", [0.0, 700.0])
def test_nacked_events_are_redelivered_and_the_run_is_valid(group: bool, delay_ms: float) -> None:
    trace = play(
        attach("bob", group=group),
        NackAction(2_300.0, "bob", "b", delay_ms),
        AckEachAction(3_300.0, "bob", "b"),
        InProgressAction(3_400.0, "bob", "b"),
        AckAction(6_000.0, "bob", "b"),
        faults=(Crash(2_500.0, "b3"), Restart(9_000.0, "b3")),
    )
    assert check(trace).status == "valid"
    again = got(trace, "b/again")
    assert again
    assert set(again) <= set(got(trace, "b"))


@pytest.mark.parametrize("group", [False, True])
def test_a_dead_letter_represents_its_event(group: bool) -> None:
    trace = play(
        attach("bob", group=group, most=1),
        NackAction(2_300.0, "bob", "b"),
        AckAction(4_000.0, "bob", "b"),
        UnsubscribeAction(5_000.0, "bob", "b"),
        attach("cat", 6_000.0, group=group, most=1),
        AckAction(9_000.0, "cat", "c"),
    )
    assert check(trace).status == "valid"
    assert len(got(trace, "d")) == 1
    assert got(trace, "c") == [], "the event of the letter is acknowledged, too"


def test_the_next_client_receives_unacknowledged_events() -> None:
    trace = play(
        attach("bob"),
        AckEachAction(2_300.0, "bob", "b"),
        UnsubscribeAction(3_000.0, "bob", "b"),
        attach("cat", 4_000.0),
    )
    assert check(trace).status == "valid"
    assert len(set(got(trace, "b")) - set(got(trace, "c"))) == 1


def test_the_checker_reports_a_redelivery_after_an_acknowledgement(monkeypatch: pytest.MonkeyPatch) -> None:
    from gapless.protocols.gapless.durable.progress import ProgressTracker

    write = ProgressTracker.write
    monkeypatch.setattr(ProgressTracker, "write", lambda self, known: replace(write(self, known), done={}))
    trace = play(
        attach("bob"),
        AckEachAction(2_300.0, "bob", "b"),
        UnsubscribeAction(3_000.0, "bob", "b"),
        attach("cat", 4_000.0),
    )
    assert check(trace).status == "invalid", "the register forgets what was acknowledged out of order"
