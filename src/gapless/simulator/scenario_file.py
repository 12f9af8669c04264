"""Reads scenario files: from TOML to a validated `Scenario`, or an error that names the place.

Errors in the file have the usual form (`toml_file`); `scenario_checks` validates the scenario as a
whole.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias, get_args

import msgspec

from gapless.errors import ScenarioError
from gapless.protocol import ProtocolSpec
from gapless.simulator import scenario as parts
from gapless.simulator.scenario import Scenario
from gapless.simulator.scenario_checks import check_scenario
from gapless.toml_file import check_keys, convert, hint, parse_toml, read_text, rows_of

__all__ = ["load_scenario", "parse_scenario"]

_TABLES: dict[str, type[msgspec.Struct]] = {
    "": Scenario,
    "network": parts.Network,
    "network.latency": parts.LatencySpec,
    "network.detection": parts.Delay,
    "network.reconnect": parts.Delay,
    "network.node_model": parts.NodeModelSpec,
    "protocol": parts.ProtocolChoice,
    "run": parts.Run,
}
_ROWS: dict[str, type[msgspec.Struct]] = {"clients": parts.Client, "replies": parts.Reply}


def _by_tag(union: Any) -> dict[str, type[msgspec.Struct]]:
    return {member.__struct_config__.tag: member for member in get_args(union)}


_TAGGED_ROWS = {"actions": ("do", _by_tag(parts.Action)), "faults": ("kind", _by_tag(parts.Fault))}


def load_scenario(path: str | Path, *, protocol: ProtocolSpec | None = None) -> Scenario:
    """Read a scenario file, and return its validated contents. A given `protocol` replaces the scenario's own."""
    try:
        return parse_scenario(read_text(path, ScenarioError), protocol=protocol)
    except ScenarioError as error:
        raise ScenarioError(f"{path}: {error}") from None


def parse_scenario(text: str, *, protocol: ProtocolSpec | None = None) -> Scenario:
    """Parse the text of a scenario file, and return its validated contents."""
    document = parse_toml(text, ScenarioError)
    for place, table, struct, tag in _tables_of(document):
        check_keys(place, table, [*((tag,) if tag else ()), *struct.__struct_encode_fields__], ScenarioError)
    scenario = convert(document, Scenario, ScenarioError)
    check_scenario(scenario, protocol)
    return scenario


_Found: TypeAlias = tuple[str, Mapping[str, Any], type[msgspec.Struct], str | None]


def _tables_of(document: Mapping[str, Any]) -> Iterator[_Found]:
    """Yield each table of the file with its place, its struct, and the key that selected the struct."""
    for place, struct in _TABLES.items():
        table: Any = document
        for key in place.split(".") if place else ():
            table = table.get(key) if isinstance(table, Mapping) else None
        if isinstance(table, Mapping):
            yield place, table, struct, None
    for key, struct in _ROWS.items():
        for place, row in _rows_of(document, key):
            yield place, row, struct, None
    for key, (tag, structs) in _TAGGED_ROWS.items():
        for place, row in _rows_of(document, key):
            yield place, row, _struct_of(place, row, tag, structs), tag


def _rows_of(document: Mapping[str, Any], key: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    return ((f"{key}[{number}]", row) for number, row in enumerate(rows_of(document, key, ScenarioError)))


def _struct_of(
    place: str, row: Mapping[str, Any], tag: str, structs: Mapping[str, type[msgspec.Struct]]
) -> type[msgspec.Struct]:
    choice = row.get(tag)
    if choice is None:
        raise ScenarioError(f"{place}: needs a {tag!r}: one of {', '.join(structs)}")
    if choice not in structs:
        raise ScenarioError(f"{place}.{tag}: there is no {choice!r}; {hint(str(choice), structs)}")
    return structs[choice]
