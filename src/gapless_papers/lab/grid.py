"""Expands an experiment into its cases, one for each run, with a key that identifies finished runs.

The key is a hash of everything that a run depends on: the case itself and the code that carries it out. Two cases with
the same key give the same result on any machine; if the case or the code changes, the key changes.
"""

import hashlib
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from itertools import product
from typing import Any

import msgspec

from gapless.errors import ExperimentError
from gapless_papers.lab.experiment import Axis, Experiment, Scalar

__all__ = ["Case", "cases_of", "code_version"]

CASES_MAX = 100_000
"""An experiment with more cases than this is rejected as a mistake."""

_PARTS = ("errors.py", "events.py", "filters", "overlay", "protocol", "protocols", "simulator", "trace")
"""The parts of `gapless` that take part in a run."""
_PAPERS_PARTS = ("protocols", "lab/conduct.py", "lab/measures.py", "lab/observer.py", "lab/workloads")
"""The parts of this package that take part in a run."""


class Case(msgspec.Struct, frozen=True):
    """One run of an experiment."""

    experiment: str
    axes: dict[str, Scalar]
    """The values that identify the case: protocol, seed, and the axes of its grid."""
    workload: str
    parameters: dict[str, Any]
    protocol: str
    options: dict[str, Any]
    seed: int
    measure: tuple[str, ...]
    trace: bool

    @property
    def name(self) -> str:
        """Return the name of the case within its experiment."""
        return ",".join(f"{axis}={_text(value)}" for axis, value in self.axes.items())

    @property
    def run(self) -> str:
        """Return the name of the case's run."""
        return f"{self.experiment}/{self.name}"

    def key(self) -> str:
        """Return the hash of the case and the code; equal keys mean equal results."""
        text = msgspec.json.encode([code_version(), self], order="deterministic")
        return hashlib.sha256(text).hexdigest()[:24]


def cases_of(experiment: Experiment, *, quick: bool = False) -> list[Case]:
    """Return all runs that the experiment asks for, in the order of its grids."""
    found: dict[str, Case] = {}
    for grid in experiment.grid:
        axes = {name: values for name, values in grid.items() if name != "seeds"}
        seeds = grid.get("seeds", experiment.seeds)
        if quick:
            axes = {name: experiment.quick.grid.get(name, values) for name, values in axes.items()}
            seeds = seeds if experiment.quick.seeds is None else experiment.quick.seeds
        for case in _crossed(experiment, axes, list(range(seeds)) if isinstance(seeds, int) else seeds, quick):
            found.setdefault(case.name, case)
            if len(found) > CASES_MAX:
                raise ExperimentError(f"{experiment.file}: the grid has more than {CASES_MAX:,} runs")
    if not found:
        raise ExperimentError(f"{experiment.file}: the grid is empty, so there is nothing to run")
    return list(found.values())


def _crossed(experiment: Experiment, axes: dict[str, Axis], seeds: list[int], quick: bool) -> list[Case]:
    fixed = {**experiment.parameters, **(experiment.quick.parameters if quick else {})}
    names = [*axes, "seed"]
    return [
        _case(experiment, dict(zip(names, values, strict=True)), fixed) for values in product(*axes.values(), seeds)
    ]


def _case(experiment: Experiment, axes: dict[str, Scalar], fixed: dict[str, Any]) -> Case:
    protocol = str(axes.get("protocol", ""))
    parameters = dict(fixed)
    options = dict(experiment.options.get(protocol, {}))
    for axis, value in axes.items():
        if axis.startswith("options."):
            options[axis.removeprefix("options.")] = value
        elif axis not in ("protocol", "seed"):
            parameters[axis] = value
    workload = experiment.workload
    if experiment.scenario:
        workload, parameters = "scenario", {"document": experiment.document, "changes": parameters}
        protocol = protocol or experiment.document["protocol"]["name"]
    return Case(
        experiment=experiment.name, axes=axes, workload=workload, parameters=parameters, protocol=protocol,
        options=options, seed=int(axes["seed"]), measure=experiment.measure, trace=experiment.trace,
    )  # fmt: skip


def _text(value: Scalar) -> str:
    return ("true" if value else "false") if isinstance(value, bool) else str(value)


@cache
def code_version() -> str:
    """Return a hash of all source that takes part in a run, independent of where the packages are installed."""
    digest = hashlib.sha256()
    for package, parts in (("gapless", _PARTS), ("gapless_papers", _PAPERS_PARTS)):
        for part in parts:
            place = files(package).joinpath(part)
            assert place.is_file() or place.is_dir(), f"{place} is not used by any run; remove it from the list"
            for name, source in _sources(place, f"{package}/{part}"):
                digest.update(f"{name}\0".encode())
                digest.update(source)
    return digest.hexdigest()


def _sources(place: Traversable, name: str) -> Iterator[tuple[str, bytes]]:
    """Yield the name and the text of each module of a package, sorted by name."""
    if place.is_dir():
        for entry in sorted(place.iterdir(), key=lambda entry: entry.name):
            yield from _sources(entry, f"{name}/{entry.name}")
    elif name.endswith(".py"):
        yield name, place.read_bytes()
