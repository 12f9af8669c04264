"""What a workload is: parameters, and what they come to."""

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import msgspec

from gapless.simulator import Scenario
from gapless_papers.lab.measures import Measure, Pair

__all__ = ["DirectWorkload", "ScenarioWorkload", "Workload"]


class Workload(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The fields are the parameters. A run is a function of them, the protocol and the seed, and of nothing else."""

    own_measures: ClassVar[tuple[str, ...]] = ()
    """The names of what it measures itself."""

    def cost(self) -> float:
        """How long a run takes, compared with others of the same workload: long ones are started first."""
        return 1.0


class ScenarioWorkload(Workload, frozen=True):
    """A scenario with parameters."""

    def scenario(self, protocol: str, options: Mapping[str, Any], seed: int) -> Scenario:
        """What happens."""
        raise NotImplementedError

    def worked_out(self, protocol: str, seed: int) -> Mapping[str, Iterable[Pair]] | None:
        """Measures of a run that need no run, because they follow from the scenario; None where it has to be run."""
        return None

    def counts(self, subscription: str) -> bool:
        """Whether a subscription is measured, or only there for others."""
        return True

    def measures(self) -> Mapping[str, Measure]:
        """What only this workload can measure, by name."""
        return {}


class DirectWorkload(Workload, frozen=True):
    """Something that is worked out without a protocol, such as what the shape of a tree comes to."""

    def results(self, seed: int) -> Mapping[str, Iterable[Pair]]:
        """All of its own measures."""
        raise NotImplementedError
