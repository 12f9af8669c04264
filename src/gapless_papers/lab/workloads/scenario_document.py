"""A scenario file as a workload: its parameters are paths into the file."""

from collections.abc import Mapping
from typing import Any

import msgspec

from gapless.errors import ScenarioError
from gapless.simulator import Scenario
from gapless.simulator.scenario import ProtocolChoice
from gapless.simulator.scenario_checks import check_scenario
from gapless_papers.lab.workloads.workload import ScenarioWorkload

__all__ = ["ScenarioDocument"]


class ScenarioDocument(ScenarioWorkload, frozen=True):
    """The scenario, and the values to set at some paths of it."""

    document: dict[str, Any]
    changes: dict[str, Any] = msgspec.field(default_factory=dict)

    def scenario(self, protocol: str, options: Mapping[str, Any], seed: int) -> Scenario:
        """Return the scenario with the values set, checked."""
        changed = self.document
        for place, value in self.changes.items():
            changed = _changed(changed, place.split("."), value, place)
        try:
            found = msgspec.convert(changed, Scenario)
        except msgspec.ValidationError as error:
            raise ScenarioError(str(error)) from None
        own = found.protocol.options if found.protocol.name == protocol else {}
        scenario = msgspec.structs.replace(found, protocol=ProtocolChoice(protocol, {**own, **options}))
        check_scenario(scenario)
        return scenario


def _changed(table: dict[str, Any], keys: list[str], value: Any, place: str) -> dict[str, Any]:
    key, rest = keys[0], keys[1:]
    below = table.get(key, {})
    if rest and not isinstance(below, dict):
        raise ScenarioError(f"{place}: {key!r} is not a table of the scenario")
    return {**table, key: _changed(below, rest, value, place) if rest else value}
