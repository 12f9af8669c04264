"""Runs one case: builds the network, runs it and measures it. The result depends on nothing but the case."""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import msgspec

from gapless.errors import ExperimentError
from gapless.overlay import Overlay
from gapless.protocol import convert_options
from gapless.registry import find_protocol
from gapless.simulator.networks import overlay_of
from gapless.simulator.scenario_run import prepare, run_prepared
from gapless.trace import Trace
from gapless_papers.lab.grid import Case
from gapless_papers.lab.measures import ALWAYS, MEASURES, Observed, Pair
from gapless_papers.lab.observer import Observer
from gapless_papers.lab.workloads import WORKLOADS, DirectWorkload, ScenarioWorkload

__all__ = ["Metric", "conduct"]


class Metric(NamedTuple):
    """One measured number of a run."""

    metric: str
    subject: str
    value: float


def conduct(case: Case) -> tuple[list[Metric], Trace | None]:
    """Return all requested metrics, and the trace if it is wanted."""
    workload = msgspec.convert(case.parameters, WORKLOADS[case.workload])
    if isinstance(workload, DirectWorkload):
        found = workload.results(case.seed)
        return [Metric(name, subject, float(value)) for name in case.measure for subject, value in found[name]], None
    assert isinstance(workload, ScenarioWorkload)
    known = workload.computed(case.protocol, case.seed)
    if known is not None:
        return _known(case, known), None
    run = _observe(workload, case)
    return list(_measured(workload, case, run)), run.result.trace if case.trace else None


def _known(case: Case, known: Mapping[str, Iterable[Pair]]) -> list[Metric]:
    unknown = [name for name in case.measure if name not in known]
    if unknown or case.trace:
        what = "a trace" if case.trace else unknown[0]
        raise ExperimentError(f"{what} needs a run, but a model computes this case without one; set is_model = false")
    names = [*(name for name in ALWAYS if name in known), *case.measure]
    return [Metric(name, subject, float(value)) for name in names for subject, value in known[name]]


def _observe(workload: ScenarioWorkload, case: Case) -> Observed:
    scenario = workload.scenario(case.protocol, case.options, case.seed)
    spec = find_protocol(case.protocol)
    overlay: Overlay = overlay_of(scenario.network)
    observer = Observer(
        keeps_trace=case.trace, run=case.run, protocol=spec.name, guarantee=spec.guarantee, scenario=scenario.name,
        seed=case.seed, brokers=len(overlay.brokers), f=scenario.network.f,
        options=msgspec.json.encode(convert_options(spec, scenario.protocol.options)).decode(),
        with_messages=case.trace,
    )  # fmt: skip
    simulation = prepare(scenario, observer, case.seed, case.trace)
    result = run_prepared(scenario, simulation)
    return Observed(scenario, simulation, result, observer, workload.counts)


def _measured(workload: ScenarioWorkload, case: Case, run: Observed) -> Iterator[Metric]:
    known = {**ALWAYS, **MEASURES, **workload.measures()}
    for name in (*ALWAYS, *case.measure):
        for subject, value in known[name](run):
            yield Metric(name, subject, float(value))
