"""Runs several protocols on one scenario, judges each by what it claims, and measures them all in the same way.

Same tree, same latencies, same seed, same calls at the same times. Options in the scenario are for the protocol that it
names; all others run with their defaults. A protocol that does not take the scenario is left out with the reason, and
one that breaks down has its row like any other: the rest goes on.
"""

from collections.abc import Callable, Sequence

import msgspec

from gapless.checkers import check
from gapless.protocol import Guarantee, ProtocolSpec
from gapless.simulator.figures import Figures, figures_of
from gapless.simulator.scenario import ProtocolChoice, PublishAction, Scenario
from gapless.simulator.trial import Outcome, try_run
from gapless.simulator.unfit import why_unfit
from gapless.trace import Trace

__all__ = ["GUARANTEES", "Entry", "compare"]

GUARANTEES: tuple[Guarantee, ...] = ("gcd", "topic-causal", "gfd", "best-effort")
"""From the strongest to the weakest: each forbids all that the next one does."""

_SAMPLES = 100
"""How often the state of each broker is looked at, unless the scenario says."""


class Entry(msgspec.Struct, frozen=True):
    """One protocol of a comparison: it was left out, or has an outcome; with figures unless it broke down."""

    protocol: str
    claims: Guarantee
    unfit: str | None = None
    """Why it was left out."""
    outcome: Outcome | None = None
    held: Guarantee | None = None
    """The strongest guarantee that the run kept; None if not even the weakest, or nothing could be judged."""
    figures: Figures | None = None


def compare(
    scenario: Scenario, specs: Sequence[ProtocolSpec], seed: int | None = None,
    on_start: Callable[[ProtocolSpec], None] | None = None,
) -> list[Entry]:  # fmt: skip
    """Run and measure one protocol after the other. `on_start` is told which one is next."""
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
    held = _strongest(result.trace, spec.guarantee, outcome)
    return Entry(spec.name, spec.guarantee, outcome=outcome, held=held, figures=figures_of(result))


def _for(scenario: Scenario, spec: ProtocolSpec) -> Scenario:
    """The scenario with this protocol, and with a look at the state now and then."""
    options = scenario.protocol.options if scenario.protocol.name == spec.name else {}
    run = scenario.run
    if not run.sample_ms:
        run = msgspec.structs.replace(run, sample_ms=_length_ms(scenario) / _SAMPLES)
    return msgspec.structs.replace(scenario, protocol=ProtocolChoice(spec.name, options), run=run)


def _length_ms(scenario: Scenario) -> float:
    """How long the run takes at least."""
    if scenario.run.until_ms is not None:
        return scenario.run.until_ms
    acts = [row.at_ms for row in (*scenario.actions, *scenario.faults)]
    series = [row for row in scenario.actions if isinstance(row, PublishAction)]
    acts += [row.at_ms + max(0, row.count - 1) * row.every_ms for row in series]
    return max(acts, default=0.0) + scenario.run.settle_ms


def _strongest(trace: Trace, claims: Guarantee, outcome: Outcome) -> Guarantee | None:
    for guarantee in GUARANTEES:
        status = outcome.status if guarantee == claims else check(_judged_by(trace, guarantee)).status
        if status == "valid":
            return guarantee
    return None


def _judged_by(trace: Trace, guarantee: Guarantee) -> Trace:
    return msgspec.structs.replace(trace, runs=[msgspec.structs.replace(trace.runs[0], guarantee=guarantee)])
