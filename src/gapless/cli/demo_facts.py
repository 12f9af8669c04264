"""Extracts the facts shown by the simulated demo from the trace of its run."""

from collections.abc import Sequence
from itertools import pairwise

import msgspec

from gapless.checkers import Verdict, check
from gapless.cli.latencies import SubscriptionLatency, subscription_latencies
from gapless.simulator import Scenario, run_scenario
from gapless.simulator.scenario import Crash
from gapless.trace import Trace

__all__ = ["DemoRun", "Journey", "crash_of", "journey_of", "run_and_judge"]


class DemoRun(msgspec.Struct, frozen=True):
    """A simulated run with its trace and its verdict."""

    scenario: Scenario
    trace: Trace
    verdict: Verdict
    latencies: dict[str, SubscriptionLatency]


class Journey(msgspec.Struct, frozen=True):
    """The experience of a client whose broker crashed: where it moved, and which events it received."""

    client: str
    old_broker: str
    new_broker: str
    silent_ms: float
    """The longest time around the crash without a delivery."""
    published_before: int
    published_after: int
    delivered: int
    """Number of events delivered to this client in the whole run."""


def run_and_judge(scenario: Scenario, switched_off: Sequence[str] = ()) -> DemoRun:
    """Run the scenario with some rules of the protocol disabled, and check its trace."""
    if switched_off:
        options = {**scenario.protocol.options, "switched_off": list(switched_off)}
        protocol = msgspec.structs.replace(scenario.protocol, options=options)
        scenario = msgspec.structs.replace(scenario, protocol=protocol)
    trace = run_scenario(scenario, with_messages=True).trace
    assert trace is not None
    latencies = {row.subscription: row for row in subscription_latencies(scenario, trace)}
    return DemoRun(scenario, trace, check(trace), latencies)


def crash_of(scenario: Scenario) -> Crash:
    """Return the only crash of the demo."""
    return next(fault for fault in scenario.faults if isinstance(fault, Crash))


def journey_of(run: DemoRun, client: str) -> Journey:
    """Return the experience of the client when its broker crashed."""
    crash = crash_of(run.scenario)
    acts = [row for row in run.trace.history if row.client == client]
    published = [row.time_ms for row in acts if row.kind == "publish"]
    delivered = [row.time_ms for row in acts if row.kind == "deliver"]
    around = [later - earlier for earlier, later in pairwise(delivered) if later > crash.at_ms]
    asked = [row.receiver for row in run.trace.messages if row.sender == client]
    return Journey(
        client=client,
        old_broker=crash.broker,
        new_broker=asked[-1],
        silent_ms=max(around),
        published_before=sum(time <= crash.at_ms for time in published),
        published_after=sum(time > crash.at_ms for time in published),
        delivered=len(delivered),
    )
