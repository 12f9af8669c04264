"""Reads experiments from TOML, and checks that every case can run. An error names the place in the file.

Everything is checked before Spark starts: keys, workload, protocols and their options, parameters of every case, and
measures. Figures and claims may only refer to metrics that are measured.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from gapless.errors import ExperimentError, ProtocolError, ScenarioError
from gapless.protocol import convert_options
from gapless.registry import find_protocol
from gapless.simulator import Scenario, load_scenario
from gapless.toml_file import check_keys, convert, hint, parse_toml, read_text, rows_of, with_place
from gapless_papers.lab.experiment import Claim, Experiment, FigureSpec, Interpretation, Quick, Range, Reading, Scalar
from gapless_papers.lab.grid import Case, cases_of
from gapless_papers.lab.measures import ALWAYS, MEASURES
from gapless_papers.lab.workloads import WORKLOADS, DirectWorkload, ScenarioDocument, Workload

__all__ = ["load_experiment", "parse_experiment", "workload_of"]

_UNWRITTEN = ("name", "file", "document")
"""Fields of an experiment that do not come from its file."""


def load_experiment(path: str | Path) -> Experiment:
    """Return the experiment in this file, checked."""
    try:
        text = read_text(path, _MistakeError)
    except _MistakeError as error:
        raise ExperimentError(f"{path}: {error}") from None
    return parse_experiment(text, Path(path))


def parse_experiment(text: str, file: Path) -> Experiment:
    """Return the experiment in this text, checked. Scenario files are looked up next to `file`."""
    try:
        document = parse_toml(text, _MistakeError)
        _check_all_keys(document)
        experiment = convert({**document, "name": file.stem, "file": str(file)}, Experiment, _MistakeError)
        experiment = _with_interpretations(_with_scenario(experiment, file.parent))
        _check(experiment)
    except _MistakeError as error:
        raise ExperimentError(f"{file}: {error}") from None
    return experiment


def workload_of(case: Case) -> Workload:
    """Return the workload with the parameters of the case."""
    return msgspec.convert(case.parameters, WORKLOADS[case.workload])


class _MistakeError(Exception):
    """A mistake in the file; the caller adds the file's name."""


# ---- keys ---------------------------------------------------------------------------------------------------


def _check_all_keys(document: Mapping[str, Any]) -> None:
    check_keys("", document, [key for key in _keys(Experiment) if key not in _UNWRITTEN], _MistakeError)
    check_keys("quick", document.get("quick"), _keys(Quick), _MistakeError)
    for key in ("grid", "figures", "claims"):
        rows_of(document, key, _MistakeError)
    senses = document.get("interpretations")
    for name, sense in senses.items() if isinstance(senses, Mapping) else ():
        check_keys(f"interpretations.{name}", sense, _keys(Interpretation), _MistakeError)
    for key, struct in (("figures", FigureSpec), ("claims", Claim)):
        for number, row in enumerate(document.get(key, [])):
            check_keys(f"{key}[{number}]", row, _keys(struct), _MistakeError)
            reading = row.get("y")
            check_keys(f"{key}[{number}].y", reading, _keys(Reading), _MistakeError)
            for name in ("subjects", "values"):
                within = reading.get(name) if isinstance(reading, Mapping) else None
                check_keys(f"{key}[{number}].y.{name}", within, _keys(Range), _MistakeError)


def _keys(struct: type[msgspec.Struct]) -> list[str]:
    return list(struct.__struct_encode_fields__)


# ---- does it make sense? ------------------------------------------------------------------------------------


def _with_scenario(experiment: Experiment, folder: Path) -> Experiment:
    if bool(experiment.workload) == bool(experiment.scenario):
        raise _MistakeError("an experiment has a workload or a scenario, but not both")
    if not experiment.scenario:
        if experiment.workload not in WORKLOADS or experiment.workload == "scenario":
            known = [name for name in WORKLOADS if name != "scenario"]
            raise _MistakeError(f"workload: there is no {experiment.workload!r}; {hint(experiment.workload, known)}")
        return experiment
    try:
        scenario: Scenario = load_scenario(folder / experiment.scenario)
    except ScenarioError as error:
        raise _MistakeError(f"scenario: {error}") from None
    return msgspec.structs.replace(experiment, document=msgspec.to_builtins(scenario))


def _with_interpretations(experiment: Experiment) -> Experiment:
    """Restrict each claim to the runs of its interpretation."""
    claims = []
    for number, claim in enumerate(experiment.claims):
        if claim.interpretation:
            known = experiment.interpretations
            if claim.interpretation not in known:
                meant = hint(claim.interpretation, known)
                raise _MistakeError(f"claims[{number}].interpretation: there is no {claim.interpretation!r}; {meant}")
            where = known[claim.interpretation].where
            against = None if claim.against is None else {**where, **claim.against}
            claim = msgspec.structs.replace(claim, where={**where, **claim.where}, against=against)
        claims.append(claim)
    return msgspec.structs.replace(experiment, claims=tuple(claims))


def _check(experiment: Experiment) -> None:
    _check_grid(experiment)
    _check_measures(experiment)
    _check_protocols(experiment)
    _check_parameters(cases_of(experiment))
    _check_quick(experiment)
    _check_parameters(cases_of(experiment, quick=True))
    for number, figure in enumerate(experiment.figures):
        _check_figure(f"figures[{number}]", figure, experiment)
    for number, claim in enumerate(experiment.claims):
        _check_claim(f"claims[{number}]", claim, experiment)


def _axes(experiment: Experiment) -> list[str]:
    return list(dict.fromkeys(name for grid in experiment.grid for name in grid if name != "seeds"))


def _check_grid(experiment: Experiment) -> None:
    if not experiment.grid:
        raise _MistakeError("the grid is empty, so there is nothing to run; write at least one [[grid]]")
    for number, grid in enumerate(experiment.grid):
        if not grid:
            raise _MistakeError(f"grid[{number}]: the grid is empty, so there is nothing to run")
        _check_seeds(f"grid[{number}].seeds", grid.get("seeds", experiment.seeds))
        for name, values in grid.items():
            if name != "seeds":
                _check_axis(f"grid[{number}].{name}", values)


def _check_quick(experiment: Experiment) -> None:
    if experiment.quick.seeds is not None:
        _check_seeds("quick.seeds", experiment.quick.seeds)
    for name, values in experiment.quick.grid.items():
        if name not in _axes(experiment):
            raise _MistakeError(
                f"quick.grid.{name}: there is no such axis in the grid; {hint(name, _axes(experiment))}"
            )
        _check_axis(f"quick.grid.{name}", values)


def _check_seeds(place: str, seeds: Any) -> None:
    if isinstance(seeds, list):
        if seeds and all(isinstance(seed, int) for seed in seeds):
            return
    elif isinstance(seeds, int) and seeds >= 1:
        return
    raise _MistakeError(f"{place}: {seeds!r} gives no runs; write the number of seeds, or a list of them")


def _check_axis(place: str, values: Any) -> None:
    if not isinstance(values, list) or not all(isinstance(value, Scalar) for value in values):
        raise _MistakeError(f"{place}: an axis of the grid is a list of values")
    if not values:
        raise _MistakeError(f"{place}: the axis is empty, so there is nothing to run")


def _check_measures(experiment: Experiment) -> None:
    known = _measures(experiment)
    if not experiment.measure:
        raise _MistakeError(f"measure: nothing is measured; the measures are: {', '.join(known)}")
    for name in experiment.measure:
        if name not in known:
            raise _MistakeError(f"measure: there is no {name!r}; {hint(name, known)}")


def _measures(experiment: Experiment) -> list[str]:
    workload = WORKLOADS.get(experiment.workload, ScenarioDocument)
    general = () if issubclass(workload, DirectWorkload) else MEASURES
    return [*workload.own_measures, *general]


def _check_protocols(experiment: Experiment) -> None:
    takes_protocol = not issubclass(WORKLOADS.get(experiment.workload, ScenarioDocument), DirectWorkload)
    for number, grid in enumerate(experiment.grid):
        if takes_protocol and not experiment.scenario and "protocol" not in grid:
            raise _MistakeError(f"grid[{number}]: needs a 'protocol': a list of names")
        if not takes_protocol and "protocol" in grid:
            raise _MistakeError(
                f"grid[{number}].protocol: workload {experiment.workload!r} runs no protocol; leave it out"
            )
    for case in {(case.protocol, str(case.options)): case for case in cases_of(experiment)}.values():
        if takes_protocol:
            try:
                convert_options(find_protocol(case.protocol), case.options)
            except ProtocolError as error:
                raise _MistakeError(f"protocol: {error}") from None
    for name in experiment.options:
        try:
            find_protocol(name)
        except ProtocolError as error:
            raise _MistakeError(f"options: {error}") from None


def _check_parameters(cases: list[Case]) -> None:
    looked_at: set[bytes] = set()
    for case in cases:
        text = msgspec.json.encode([case.parameters, case.protocol, case.options], order="deterministic")
        if text in looked_at:
            continue
        looked_at.add(text)
        known = _keys(WORKLOADS[case.workload])
        for name in case.parameters:
            if name not in known:
                raise _MistakeError(f"there is no parameter {name!r} of {case.workload!r}; {hint(name, known)}")
        try:
            workload = workload_of(case)
            if isinstance(workload, ScenarioDocument):
                workload.scenario(case.protocol, case.options, case.seed)
        except (msgspec.ValidationError, ScenarioError) as error:
            raise _MistakeError(f"{case.name}: {with_place(str(error))}") from None


def _check_figure(place: str, figure: FigureSpec, experiment: Experiment) -> None:
    _check_reading(place, figure.y, experiment)
    axes = [*_axes(experiment), "seed"]
    if figure.kind in ("lines", "bars") and not figure.x:
        raise _MistakeError(f"{place}: needs an 'x': one of {', '.join(axes)}")
    if figure.kind == "distribution" and not figure.bins:
        raise _MistakeError(f"{place}: needs 'bins': their upper ends")
    for name in (*([figure.x] if figure.x else []), *figure.series, *figure.where):
        _check_axis_name(place, name, axes)
    _check_legend(f"{place}.legend", figure, cases_of(experiment))


def _check_legend(place: str, figure: FigureSpec, cases: list[Case]) -> None:
    for values in {tuple(case.axes.get(axis) for axis in figure.series) for case in cases}:
        try:
            figure.label(values)
        except (LookupError, ValueError, TypeError, AttributeError):
            raise _MistakeError(
                f"{place}: {figure.legend!r} cannot be filled in with the axes of 'series': {', '.join(figure.series)}"
            ) from None


def _check_claim(place: str, claim: Claim, experiment: Experiment) -> None:
    _check_reading(place, claim.y, experiment)
    if (claim.paper is None) == (claim.shape is None):
        raise _MistakeError(f"{place}: a claim has a number ('paper') or a 'shape', but not both")
    if claim.shape is not None and not claim.along:
        raise _MistakeError(f"{place}: needs 'along': the axis along which it is {claim.shape}")
    if (claim.against is None) != (claim.as_ == "value"):
        raise _MistakeError(f'{place}: \'against\' goes with as = "ratio", "increase" or "reduction"')
    if claim.of == "deviation" and (claim.paper is None or claim.against is not None or claim.along):
        raise _MistakeError(f"{place}: a deviation is compared with the paper's number, not with other runs")
    if claim.out_of is not None and (claim.paper is None or claim.against is not None or claim.of == "deviation"):
        raise _MistakeError(f"{place}: 'out_of' goes with the mean of a number of the paper, not with other runs")
    axes = [*_axes(experiment), "seed"]
    for name in (*claim.where, *(claim.against or {}), *([claim.along] if claim.along else []), *claim.by):
        _check_axis_name(place, name, axes)


def _check_reading(place: str, reading: Reading, experiment: Experiment) -> None:
    measured = [*experiment.measure, *ALWAYS]
    if reading.metric not in measured:
        raise _MistakeError(f"{place}.y.metric: {reading.metric!r} is not measured; {hint(reading.metric, measured)}")


def _check_axis_name(place: str, name: str, axes: list[str]) -> None:
    if name not in axes:
        raise _MistakeError(f"{place}: there is no axis {name!r} in the grid; {hint(name, axes)}")
