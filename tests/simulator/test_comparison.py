"""Comparing protocols on one scenario: which take part, what is measured, and that failures stay isolated."""

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from gapless.overlay import Overlay
from gapless.protocol import Effect, Input, ProtocolSpec, Received
from gapless.registry import find_protocol
from gapless.simulator import Entry, Figures, Scenario, compare, run_scenario
from gapless.simulator.run_metrics import Times
from gapless.simulator.scenario import (
    Action,
    AdvertiseAction,
    Client,
    Crash,
    Cut,
    Fault,
    Heal,
    LatencySpec,
    Network,
    ProtocolChoice,
    PublishAction,
    Reply,
    Restart,
    Run,
    SubscribeAction,
    UnsubscribeAction,
)  # fmt: skip
from gapless.simulator.unsupported import why_unfit

from .flooding import FLOODING, Flood, FloodingBroker

LOCAPS = find_protocol("locaps")
GRYPHON = find_protocol("gryphon")
GAPLESS = find_protocol("gapless")


def chain(
    brokers: int, clients: dict[str, str], *actions: Action, faults: Sequence[Fault] = (), **network: Any
) -> Scenario:
    return Scenario(
        network=Network("chain", brokers=brokers, f=int(bool(faults)), latency=LatencySpec(ms=10.0), **network),
        protocol=ProtocolChoice("locaps"),
        run=Run(settle_ms=1000.0),
        clients=tuple(Client(name, broker) for name, broker in clients.items()),
        actions=tuple(sorted(actions, key=lambda action: action.at_ms)),
        faults=tuple(faults),
    )


def figures(entry: Entry) -> Figures:
    assert entry.figures is not None, entry
    return entry.figures


ONE_READER = (
    AdvertiseAction(0.0, "writer", "a", "topic = 'x'"),
    SubscribeAction(100.0, "reader", "s", "topic = 'x'"),
    PublishAction(500.0, "writer", {"topic": "x"}, count=5, every_ms=10.0),
)
QUIET = chain(4, {"writer": "b0", "reader": "b3"}, *ONE_READER)


# ---- measures -------


@pytest.mark.parametrize("spec", [LOCAPS, GRYPHON], ids=lambda spec: spec.name)
def test_latencies_are_those_of_the_way(spec: ProtocolSpec) -> None:
    [entry] = compare(QUIET, [spec])
    assert figures(entry).subscribing == Times(1, 60.0, 60.0, 60.0)
    assert figures(entry).delivering == Times(5, 30.0, 30.0, 30.0)
    assert (figures(entry).due, figures(entry).lost, figures(entry).never_active) == (5, 0, 0)


def test_messages_bytes_and_state_are_those_of_the_run() -> None:
    [entry] = compare(QUIET, [LOCAPS])
    result = run_scenario(QUIET, with_messages=True, protocol=LOCAPS)
    assert result.trace is not None
    assert figures(entry).messages == result.messages == len(result.trace.messages)
    assert figures(entry).bytes == sum(row.bytes for row in result.trace.messages) > 0
    assert figures(entry).state_mean == figures(entry).state_most == 2


def test_state_is_checked_during_the_run() -> None:
    """Unacknowledged messages of a link exist only during the run."""
    [entry] = compare(QUIET, [GRYPHON])
    at_the_end = run_scenario(QUIET, protocol=GRYPHON).state_sizes
    assert at_the_end["unacknowledged"].max == 0
    assert figures(entry).state_most > 2


def test_lost_is_what_came_too_early_for_the_path_but_after_the_subscription_was_active() -> None:
    """The subscription is active after 20 ms, and the far publisher learns of it after 30 ms."""
    scenario = chain(
        6,
        {"near": "b1", "reader": "b2", "far": "b5"},
        AdvertiseAction(0.0, "near", "a", "TRUE"),
        AdvertiseAction(0.0, "far", "b", "TRUE"),
        SubscribeAction(500.0, "reader", "s", "TRUE"),
        PublishAction(510.0, "far", {"n": 1}),
        PublishAction(525.0, "far", {"n": 2}),
        PublishAction(535.0, "far", {"n": 3}),
        PublishAction(600.0, "near", {"n": 4}),
    )
    [entry] = compare(scenario, [GRYPHON])
    assert entry.outcome is not None
    assert entry.outcome.status == "valid"
    assert (figures(entry).due, figures(entry).lost) == (3, 1)
    assert (entry.held, entry.status) == ("best-effort", "invalid"), (
        "who waits for an event is not helped by a definition"
    )


def test_events_in_flight_when_a_subscription_ended_are_not_lost() -> None:
    ends = UnsubscribeAction(545.0, "reader", "s")
    [entry] = compare(chain(4, {"writer": "b0", "reader": "b3"}, *ONE_READER, ends), [LOCAPS])
    assert figures(entry).delivering.count == 2
    assert (figures(entry).due, figures(entry).lost) == (2, 0)


def test_times_are_summed_up() -> None:
    assert Times.of([]) == Times(0, None, None, None)
    assert Times.of(float(n) for n in range(1, 201)) == Times(200, 100.5, 198.0, 200.0)


# ---- guarantees


def test_the_strongest_guarantee_that_held_is_found() -> None:
    entries = compare(QUIET, [GAPLESS, LOCAPS, GRYPHON, FLOODING])
    assert [entry.claims for entry in entries] == ["gcd", "gcd", "gfd", "best-effort"]
    assert [entry.held for entry in entries] == ["gcd"] * 4


def test_and_if_the_claim_is_broken_what_is_left_of_it() -> None:
    """A flood with a stronger claim: the crash loses events, but none is duplicated."""
    bold: ProtocolSpec = msgspec.structs.replace(FLOODING, guarantee="gfd", copes_with=frozenset({"crash", "restart"}))
    faults = [Crash(532.0, "b1"), Restart(538.0, "b1")]
    [entry] = compare(msgspec.structs.replace(QUIET, faults=tuple(faults)), [bold])
    assert entry.outcome is not None
    assert entry.outcome.status == "invalid"
    assert entry.held == "best-effort"
    assert figures(entry).lost > 0


def test_a_protocol_without_promises_may_lose_events_up_to_its_bound() -> None:
    """A flood through a crash: deliveries are in the order that best effort requires."""
    brave: ProtocolSpec = msgspec.structs.replace(FLOODING, copes_with=frozenset({"crash", "restart"}))
    scenario = msgspec.structs.replace(QUIET, faults=(Crash(480.0, "b1"), Restart(525.0, "b1")))
    [entry] = compare(scenario, [brave])
    assert figures(entry).lost > 0
    assert (entry.status, entry.held, entry.broke) == ("valid", "best-effort", "gfd")
    assert entry.how == f"{figures(entry).lost} of 5 due events were never delivered"


def test_silence_holds_nothing() -> None:
    [entry] = compare(msgspec.structs.replace(QUIET, actions=QUIET.actions[:2]), [LOCAPS])
    assert entry.outcome is not None
    assert entry.outcome.status == "unknown"
    assert entry.held is None
    assert figures(entry).delivering == Times(0, None, None, None)


# ---- participants -


def _needs_many(overlay: Overlay, _f: int, _options: Any) -> str | None:
    return None if len(overlay.brokers) >= 9 else "needs nine brokers"


TOPICS_ONLY: ProtocolSpec = msgspec.structs.replace(FLOODING, topics_only=True)


@pytest.mark.parametrize(
    ("spec", "changes", "reason"),
    [
        (GRYPHON, {"faults": (Crash(500.0, "b1"),)}, "does not claim to tolerate crash"),
        (GRYPHON, {"faults": (Crash(5.0, "b1"), Restart(6.0, "b1"))}, "does not claim to tolerate crash or restart"),
        (LOCAPS, {"faults": (Crash(5.0, "b1"), Restart(6.0, "b1"))}, "does not claim to tolerate restart"),
        (GRYPHON, {"faults": (Cut(500.0, ("b0", "b1")), Heal(600.0, ("b0", "b1")))}, None),
        (LOCAPS, {"network": Network("chain", brokers=4, loss=0.1)}, "does not claim to tolerate loss"),
        (GRYPHON, {"network": Network("chain", brokers=4, loss=0.1, duplication=0.1)}, None),
        (TOPICS_ONLY, {}, None),
        (
            TOPICS_ONLY,
            {"actions": (SubscribeAction(0.0, "reader", "s", "topic = 'x' AND size > 3"),)},
            "supports only topics, but the scenario has other filters",
        ),
        (
            TOPICS_ONLY,
            {"actions": (PublishAction(0.0, "writer", {"topic": 7}),)},
            "supports only topics, but the scenario has events without one",
        ),
        (
            TOPICS_ONLY,
            {"replies": (Reply("reader", {"size": 1}),)},
            "supports only topics, but the scenario has events without one",
        ),
        (msgspec.structs.replace(FLOODING, refuses=_needs_many), {}, "needs nine brokers"),
        (LOCAPS, {"protocol": ProtocolChoice("locaps", {"covers": 1})}, "protocol.options: protocol 'locaps' has no"),
    ],
)  # fmt: skip
def test_unsuitable_protocols_say_why(spec: ProtocolSpec, changes: dict[str, Any], reason: str | None) -> None:
    found = why_unfit(msgspec.structs.replace(QUIET, **changes), spec)
    assert (found is None) == (reason is None), found
    assert reason is None or (found or "").startswith(reason)


def test_unsuitable_protocols_are_omitted_and_others_continue() -> None:
    scenario = msgspec.structs.replace(QUIET, faults=(Cut(600.0, ("b0", "b1")), Heal(700.0, ("b0", "b1"))))
    reported: list[str] = []
    entries = compare(scenario, [LOCAPS, GRYPHON], on_start=lambda spec: reported.append(spec.name))
    assert reported == ["locaps", "gryphon"]
    assert entries[0] == Entry("locaps", "gcd", unfit="does not claim to tolerate cut")
    assert figures(entries[1]).lost == 0


def test_options_are_for_the_protocol_that_the_scenario_names() -> None:
    scenario = msgspec.structs.replace(QUIET, protocol=ProtocolChoice("gryphon", {"acknowledge_ms": 1}))
    eager, _ = compare(scenario, [GRYPHON, LOCAPS])
    patient, _ = compare(QUIET, [GRYPHON, LOCAPS])
    assert figures(eager).messages > figures(patient).messages


class _FragileBroker(FloodingBroker):
    def step(self, item: Input, now: int) -> Sequence[Effect]:
        if isinstance(item, Received) and isinstance(item.message, Flood):
            assert item.message.event.seq < 2, "two is too much"
        return super().step(item, now)


def test_a_run_that_fails_has_a_row_too() -> None:
    fragile: ProtocolSpec = msgspec.structs.replace(FLOODING, broker=_FragileBroker)
    broken, whole = compare(QUIET, [fragile, LOCAPS])
    assert broken.outcome is not None
    assert broken.outcome.status == "broken"
    assert "two is too much" in broken.outcome.summary
    assert broken.figures is None
    assert figures(whole).lost == 0


def test_the_seed_is_the_scenarios_or_the_one_given() -> None:
    latency = LatencySpec(model="per-link", min_ms=1.0, max_ms=100.0)
    scenario = msgspec.structs.replace(QUIET, network=msgspec.structs.replace(QUIET.network, latency=latency))
    own, again, other = (compare(scenario, [LOCAPS], seed)[0] for seed in (None, 0, 1))
    assert own == again
    assert figures(own).delivering != figures(other).delivering
