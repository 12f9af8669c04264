"""The delivery counts and the flags of redelivered events, in whole runs.

The checker decides which events may be redelivered; these tests compare the numbers with the calls that were made.
"""

from collections import Counter, defaultdict
from typing import Any, NamedTuple

import pytest

from gapless.checkers import check
from gapless.names import ExtendAck, Nack
from gapless.protocol import Deliver
from gapless.simulator import run_scenario
from gapless.simulator.engine import Simulation
from gapless.simulator.generator import generate
from gapless.simulator.recording import Recording
from gapless.simulator.scenario import (
    AdvertiseAction,
    Client,
    InProgressAction,
    NackAction,
    Network,
    ProtocolChoice,
    PublishAction,
    Run,
    Scenario,
    SubscribeAction,
)


class Seen(NamedTuple):
    deliveries: dict[tuple[str, str], list[Deliver]]
    given_back: Counter[str]
    extended: Counter[str]


def play(scenario: Scenario, monkeypatch: pytest.MonkeyPatch) -> Seen:
    names = {each.subscription: each.name for each in scenario.actions if isinstance(each, SubscribeAction)}
    seen = Seen(defaultdict(list), Counter(), Counter())
    recorded, given = Recording._delivered, Simulation.give

    def record(self: Recording, slot: Any, effect: Deliver, now: int) -> None:
        if names.get(effect.subscription):
            seen.deliveries[names[effect.subscription], effect.event.id].append(effect)
        recorded(self, slot, effect, now)

    def give(self: Simulation, slot: Any, call: Any) -> None:
        if isinstance(call, Nack | ExtendAck):
            counted = seen.given_back if isinstance(call, Nack) else seen.extended
            counted[names[call.subscription]] += len(call.counts)
        given(self, slot, call)

    with monkeypatch.context() as patch:
        patch.setattr(Recording, "_delivered", record)
        patch.setattr(Simulation, "give", give)
        trace = run_scenario(scenario).trace
    assert trace is not None
    assert check(trace).status == "valid"
    return seen


def test_in_a_group_each_delivery_of_an_event_counts_one_more(monkeypatch: pytest.MonkeyPatch) -> None:
    most = extended = 0
    for seed in (291, 1104, 1377):  # members of groups return events with `nack`
        scenario = generate(seed, "gapless", faults="none")
        assert any(isinstance(each, NackAction) for each in scenario.actions)
        seen = play(scenario, monkeypatch)
        for deliveries in seen.deliveries.values():
            counts = [each.deliveries for each in deliveries]
            assert counts == sorted(set(counts)), "each counts more than the one before"
            assert all(each.redelivered is (each.deliveries > 1) for each in deliveries)
            most = max(most, *counts)
        extended += seen.extended.total()
    assert most > 2
    assert extended


def test_without_a_group_what_was_given_back_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = Scenario(
        Network("chain", brokers=4),
        ProtocolChoice("gapless"),
        run=Run(settle_ms=40_000.0),
        clients=(Client("ann", "b0"), Client("bob", "b3")),
        actions=(
            AdvertiseAction(0.0, "ann", "a", "x > 0"),
            SubscribeAction(300.0, "bob", "b", "x > 0", name="n", ack="manual"),
            PublishAction(2_000.0, "ann", {"x": 1}, 3, 20.0),
            InProgressAction(2_900.0, "bob", "b"),
            *(NackAction(3_000.0 + 1_000.0 * n, "bob", "b", 10.0) for n in range(4)),
        ),
    )
    seen = play(scenario, monkeypatch)
    assert seen.given_back["n"] == 4
    again = [each for deliveries in seen.deliveries.values() for each in deliveries[1:]]
    assert [each.deliveries for each in again] == [2, 3, 4, 5]
    assert all(each.redelivered for each in again)
    assert all(deliveries[0].deliveries == 1 for deliveries in seen.deliveries.values())
