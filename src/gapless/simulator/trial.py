"""Runs one scenario and checks its trace.

A run can fail in two ways, by a verdict or by an error, and both get a short name, the symptom: the
kind of the first anomaly, or the kind of the error. The shrinker preserves the symptom. A trace
that the recorder or the checkers refuse (an event that is published twice, for example) is an error
too.
"""

import traceback
from typing import Literal

import msgspec

from gapless.checkers import Verdict, check
from gapless.errors import TraceError
from gapless.protocol import ProtocolSpec
from gapless.simulator.expected_anomalies import drop_expected
from gapless.simulator.failures import NodeError, RunawayError
from gapless.simulator.result import Result
from gapless.simulator.scenario import DeleteEvents, Scenario
from gapless.simulator.scenario_run import run_scenario

__all__ = ["Outcome", "is_invariant", "try_run", "try_scenario"]

LOST = "reported-loss"
"""The symptom of a run with reported losses, although no more brokers failed than the protocol tolerates."""


class Outcome(msgspec.Struct, frozen=True):
    """The outcome of one run of a scenario."""

    status: Literal["valid", "unknown", "invalid", "broken"]
    """The status of the verdict, or `broken` if there is none, because a node failed or the run never ended."""
    symptoms: tuple[str, ...] = ()
    """The kinds of anomalies, most severe first, or the kind of the error; empty if there are none."""
    verdict: Verdict | None = None
    summary: str = ""
    """A description of the error, if there was one."""
    traceback_text: str = ""

    @property
    def failed(self) -> bool:
        """Return whether the outcome is a violation."""
        return bool(self.symptoms)


def try_scenario(scenario: Scenario, protocol: ProtocolSpec | None = None, *, invariants: bool = True) -> Outcome:
    """Run and check a scenario. If the protocol has invariants and tolerates all faults of the scenario, check them
    after every step.
    """
    return try_run(scenario, protocol, invariants=invariants)[0]


def is_invariant(symptom: str) -> bool:
    """Return whether the symptom is a violated invariant. Without the checks, the run would have continued."""
    return symptom.startswith("invariant ")


def try_run(
    scenario: Scenario,
    protocol: ProtocolSpec | None = None,
    seed: int | None = None,
    *,
    with_messages: bool = False,
    invariants: bool = False,
) -> tuple[Outcome, Result | None]:
    """Run the scenario and check its trace. Return the outcome, and the result of the run unless it failed."""
    try:
        result = run_scenario(
            scenario, seed, with_messages, protocol=protocol, check_invariants=invariants and not scenario.run.may_lose
        )
        assert result.trace is not None
        verdict = check(result.trace)
    except NodeError as error:
        return Outcome("broken", (error.symptom,), None, str(error), error.traceback_text), None
    except RunawayError as error:
        return Outcome("broken", ("runaway",), None, str(error)), None
    except (TraceError, AssertionError) as error:
        text = "".join(traceback.format_exception(error))
        return Outcome("broken", ("bad trace",), None, str(error), text), None
    verdict = drop_expected(verdict, result, scenario)
    is_deleted = any(isinstance(fault, DeleteEvents) for fault in scenario.faults)
    may_miss = is_deleted or bool(scenario.protocol.options.get("history_s"))
    if (result.lost_publications or (result.lost_deliveries and not may_miss)) and not scenario.run.may_lose:
        count = sum(lost.last - lost.first + 1 for lost in result.lost_publications)
        lost = (
            f"{count} confirmed publications were lost and reported to publishers, and "
            f"{result.lost_deliveries} to subscriptions"
        )
        return Outcome("invalid", (*verdict.counts, LOST), verdict, lost), result
    return Outcome(verdict.status, tuple(verdict.counts), verdict), result
