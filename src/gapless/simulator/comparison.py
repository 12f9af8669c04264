"""Runs several protocols on one scenario, checks each against its guarantee, and measures all in the same way.

Lost events count as well. The definitions of the guarantees say nothing about events before a
starting cut; but a client whose subscription is active relies on receiving everything published
from then on. So a protocol that lost something held best effort at most, whatever the order of its
deliveries.

All runs have the same tree, latencies, seed, and calls. Options in the scenario apply to the
protocol that it names; all others use their defaults. A protocol that does not support the scenario
is skipped with the reason, and one that fails has a row like any other.
"""

from collections.abc import Callable, Sequence

import msgspec

from gapless.checkers import Status, Verdict, check
from gapless.protocol import Guarantee, ProtocolSpec
from gapless.simulator.run_metrics import Figures, metrics_of_run
from gapless.simulator.scenario import ProtocolChoice, PublishAction, Scenario
from gapless.simulator.trial import Outcome, try_run
from gapless.simulator.unsupported import why_unfit
from gapless.trace import Trace

__all__ = ["GUARANTEES", "Entry", "compare"]

GUARANTEES: tuple[Guarantee, ...] = ("gcd", "topic-causal", "gfd", "best-effort")
"""The guarantees from the strongest to the weakest. Each forbids everything that the next one forbids."""
WEAKEST = GUARANTEES[-1]
"""The guarantee that allows losses."""

_SAMPLES = 100
"""The number of samples of each broker's state, by default."""


class Entry(msgspec.Struct, frozen=True):
    """The result of one protocol in a comparison: it was skipped, failed, or has a verdict and figures."""

    protocol: str
    claims: Guarantee
    unfit: str | None = None
    """Why the protocol was skipped; None if it was run."""
    outcome: Outcome | None = None
    held: Guarantee | None = None
    """The strongest guarantee that the run kept. None if it kept none, or could not be checked."""
    figures: Figures | None = None
    broke: Guarantee | None = None
    """The weakest guarantee, stronger than the promised one, that the run violated."""
    how: str = ""
    """How the run violated that guarantee, as a sentence."""

    @property
    def status(self) -> Status:
        """Return whether the protocol kept its promise. A protocol that failed or lost events did not."""
        assert self.outcome is not None, "the protocol was skipped"
        if self.outcome.status == "broken":
            return "invalid"
        lost = self.figures is not None and self.figures.lost and self.claims != WEAKEST
        return "invalid" if self.outcome.status == "valid" and lost else self.outcome.status


def compare(
    scenario: Scenario, specs: Sequence[ProtocolSpec], seed: int | None = None,
    on_start: Callable[[ProtocolSpec], None] | None = None,
) -> list[Entry]:  # fmt: skip
    """Run and measure one protocol after the other. `on_start` is called with each before its run."""
    entries = []
    for spec in specs:
        if on_start is not None:
            on_start(spec)
        entries.append(_entry(_for(scenario, spec), spec, seed))
    return entries


def _entry(scenario: Scenario, spec: ProtocolSpec, seed: int | None) -> Entry:
    reason = why_unfit(scenario, spec)
    if reason is not None:
        return Entry(spec.name, spec.guarantee, unfit=reason)
    outcome, result = try_run(scenario, spec, seed, with_messages=True)
    if result is None or result.trace is None:
        return Entry(spec.name, spec.guarantee, outcome=outcome)
    figures = metrics_of_run(result)
    verdicts = {guarantee: _verdict(result.trace, guarantee, spec.guarantee, outcome) for guarantee in GUARANTEES}
    faults = {guarantee: _fault(guarantee, verdict, figures) for guarantee, verdict in verdicts.items()}
    held = next((guarantee for guarantee, fault in faults.items() if fault is None), None)
    stronger = GUARANTEES[: GUARANTEES.index(spec.guarantee)]
    broke = next((guarantee for guarantee in reversed(stronger) if faults[guarantee]), None)
    how = "" if broke is None else faults[broke] or ""
    return Entry(spec.name, spec.guarantee, outcome=outcome, held=held, figures=figures, broke=broke, how=how)


def _verdict(trace: Trace, guarantee: Guarantee, claims: Guarantee, outcome: Outcome) -> Verdict:
    """Return the verdict of the checker on the run for this guarantee."""
    if guarantee == claims and outcome.verdict is not None:
        return outcome.verdict
    return check(msgspec.structs.replace(trace, runs=[msgspec.structs.replace(trace.runs[0], guarantee=guarantee)]))


def _fault(guarantee: Guarantee, verdict: Verdict, figures: Figures) -> str | None:
    """Return how the run violated the guarantee: an empty string if that is unknown, or None if it kept it."""
    if verdict.anomalies:
        return verdict.anomalies[0].message
    if figures.lost and guarantee != WEAKEST:
        return f"{figures.lost:,} of {figures.due:,} due events were never delivered"
    return None if verdict.status == "valid" else ""


def _for(scenario: Scenario, spec: ProtocolSpec) -> Scenario:
    """Return the scenario for this protocol, with samples of its state."""
    options = scenario.protocol.options if scenario.protocol.name == spec.name else {}
    run = scenario.run
    if not run.sample_ms:
        run = msgspec.structs.replace(run, sample_ms=_length_ms(scenario) / _SAMPLES)
    return msgspec.structs.replace(scenario, protocol=ProtocolChoice(spec.name, options), run=run)


def _length_ms(scenario: Scenario) -> float:
    """Return the minimum length of a run of the scenario."""
    if scenario.run.until_ms is not None:
        return scenario.run.until_ms
    acts = [row.at_ms for row in (*scenario.actions, *scenario.faults)]
    series = [row for row in scenario.actions if isinstance(row, PublishAction)]
    acts += [row.at_ms + max(0, row.count - 1) * row.every_ms for row in series]
    return max(acts, default=0.0) + scenario.run.settle_ms
