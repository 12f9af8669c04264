"""One trial: run a scenario and let the checkers judge it.

A run can go wrong in two ways, by a verdict or by breaking down, and both get a short name, the symptom: the kind of
the first anomaly, or the kind of the breakdown. The shrinker holds on to the symptom. A trace that the recorder or
the checkers refuse (an event that is published twice, for example) is a breakdown too.

Two anomalies are none, and a trace alone does not show it; of both losses the publisher is told, and so is everybody
who is still there and to whom the event was due:

- More than f brokers fail with a cause, a subscription gets an effect of it and ends, and only then the publisher of
  the cause is back, without which nobody knows of the loss.
- They fail with an effect. A subscription that came when it had been published gets its cause, which was on its way,
  and starts after the effect: that it was one, only those knew who are gone.
"""

import traceback
from typing import Literal

import msgspec

from gapless.checkers import Anomaly, Verdict, check, summarize
from gapless.errors import TraceError
from gapless.protocol import ProtocolSpec
from gapless.simulator.failures import NodeError, RunawayError
from gapless.simulator.result import Result
from gapless.simulator.scenario import Scenario
from gapless.simulator.scenario_run import run_scenario

__all__ = ["Outcome", "excuse", "try_run", "try_scenario"]

LOST = "told-loss"
"""The symptom of a run in which something was lost, and told, though no more went wrong than the protocol claims."""


class Outcome(msgspec.Struct, frozen=True):
    """What became of a scenario."""

    status: Literal["valid", "unknown", "invalid", "broken"]
    """As in a verdict; `broken` if there is none, because a node failed or the run never ended."""
    symptoms: tuple[str, ...] = ()
    """The kinds of anomaly, gravest first, or of the breakdown; empty if all is well."""
    verdict: Verdict | None = None
    summary: str = ""
    """Of a breakdown."""
    traceback_text: str = ""

    @property
    def failed(self) -> bool:
        """Is this a violation?"""
        return bool(self.symptoms)


def try_scenario(scenario: Scenario, protocol: ProtocolSpec | None = None) -> Outcome:
    """Run and judge."""
    return try_run(scenario, protocol)[0]


def try_run(
    scenario: Scenario, protocol: ProtocolSpec | None = None, seed: int | None = None, *, with_messages: bool = False
) -> tuple[Outcome, Result | None]:
    """Run and judge; the run itself comes along unless it broke down."""
    try:
        result = run_scenario(scenario, seed, with_messages, protocol=protocol)
        assert result.trace is not None
        verdict = check(result.trace)
    except NodeError as error:
        return Outcome("broken", (f"exception {error.cause}",), None, str(error), error.traceback_text), None
    except RunawayError as error:
        return Outcome("broken", ("runaway",), None, str(error)), None
    except (TraceError, AssertionError) as error:
        text = "".join(traceback.format_exception(error))
        return Outcome("broken", ("bad trace",), None, str(error), text), None
    verdict = excuse(verdict, result)
    if result.lost_publications and not scenario.run.may_lose:
        count = sum(lost.last - lost.first + 1 for lost in result.lost_publications)
        lost = f"{count} publications were confirmed and are lost, which was told"
        return Outcome("invalid", (*verdict.counts, LOST), verdict, lost), result
    return Outcome(verdict.status, tuple(verdict.counts), verdict), result


def excuse(verdict: Verdict, result: Result) -> Verdict:
    """The verdict without losses of which a subscription could not be told, for it had ended, or came later."""
    if not verdict.anomalies or not result.lost_publications or result.trace is None:
        return verdict
    subscriptions = {row.subscription_id: row for row in result.trace.subscriptions}
    published = {row.event_id: row.published_ms for row in result.trace.events}
    came = {(row.subscription_id, row.event_id) for row in result.trace.history}
    told = {
        f"{lost.publisher}:{seq}": lost.time_ms
        for lost in result.lost_publications
        for seq in range(lost.first, lost.last + 1)
    }

    def is_excused(anomaly: Anomaly) -> bool:
        subscription, event = subscriptions.get(anomaly.subscription or ""), anomaly.event or ""
        if subscription is None or event not in told or (anomaly.subscription, event) in came:
            return False
        if anomaly.kind == "missing-effect":
            return subscription.active_ms is None or published[event] < subscription.active_ms
        ended = subscription.ended_ms
        if ended is None or told[event] < ended:
            return False
        # What it was to read out of history may have been admitted by those who went on without these.
        was_read = anomaly.kind == "gap" and published[event] < subscription.requested_ms
        return anomaly.kind == "causal-inversion" or was_read

    left = tuple(anomaly for anomaly in verdict.anomalies if not is_excused(anomaly))
    if len(left) == len(verdict.anomalies):
        return verdict
    if left:
        return msgspec.structs.replace(verdict, anomalies=left, reason=summarize(left))
    reason = "of what is lost, all to whom it was due and who were still there when that was known were told"
    return msgspec.structs.replace(verdict, anomalies=(), status="valid", reason=reason)
