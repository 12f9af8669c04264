"""The interface of workloads: parameters, and what they produce."""

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import msgspec

from gapless.simulator import Scenario
from gapless_papers.lab.measures import Measure, Pair

__all__ = ["DirectWorkload", "ScenarioWorkload", "Workload"]


class Workload(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Base of workloads. The fields are the parameters; a run depends on them, the protocol and the seed, and on
    nothing else.
    """

    own_measures: ClassVar[tuple[str, ...]] = ()
    """The names of the measures that it defines itself."""

    def cost(self) -> float:
        """Return the relative duration of a run among those of the same workload: long runs start first."""
        return 1.0


class ScenarioWorkload(Workload, frozen=True):
    """A workload whose run is a scenario."""

    def scenario(self, protocol: str, options: Mapping[str, Any], seed: int) -> Scenario:
        """Return the scenario of a run."""
        raise NotImplementedError

    def computed(self, protocol: str, seed: int) -> Mapping[str, Iterable[Pair]] | None:
        """Return the measures if a model can compute them; None if the scenario must be run."""
        return None

    def counts(self, subscription: str) -> bool:
        """Return whether a subscription is measured, or only part of the set-up."""
        return True

    def measures(self) -> Mapping[str, Measure]:
        """Return the measures that this workload defines, by name."""
        return {}


class DirectWorkload(Workload, frozen=True):
    """A workload that is computed without a protocol, such as a property of the shape of a tree."""

    def results(self, seed: int) -> Mapping[str, Iterable[Pair]]:
        """Return all measures that it defines."""
        raise NotImplementedError
