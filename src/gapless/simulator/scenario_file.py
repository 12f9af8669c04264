"""Reads scenario files: from TOML to a `Scenario` that has been checked, or an error that names the place.

Keys are looked at first, by hand, because a misspelt key deserves a better answer than "unknown field". Then msgspec
checks types and ranges of words, and `scenario_checks` whether it all makes sense together.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeAlias, get_args

import msgspec

from gapless.errors import ScenarioError
from gapless.protocol import ProtocolSpec
from gapless.simulator import scenario as parts
from gapless.simulator.scenario import Scenario
from gapless.simulator.scenario_checks import check_scenario

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
    """The scenario in this file, checked. A protocol given here stands in for the one that it names."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ScenarioError(f"{path}: cannot be read: {reason}") from None
    try:
        return parse_scenario(text, protocol=protocol)
    except ScenarioError as error:
        raise ScenarioError(f"{path}: {error}") from None


def parse_scenario(text: str, *, protocol: ProtocolSpec | None = None) -> Scenario:
    """The scenario in this text, checked."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ScenarioError(f"this is not TOML: {error}") from None
    for place, table, struct, tag in _tables_of(document):
        _check_keys(place, table, struct, tag)
    try:
        scenario = msgspec.convert(document, Scenario)
    except msgspec.ValidationError as error:
        raise ScenarioError(_with_place(str(error))) from None
    check_scenario(scenario, protocol)
    return scenario


_Found: TypeAlias = tuple[str, Mapping[str, Any], type[msgspec.Struct], str | None]


def _tables_of(document: Mapping[str, Any]) -> Iterator[_Found]:
    """Each table of the file with its place, its struct, and the key that chose the struct."""
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
    rows = document.get(key, [])
    if not isinstance(rows, list) or not all(isinstance(row, Mapping) for row in rows):
        raise ScenarioError(f"{key}: write each entry as a table that starts with [[{key}]]")
    return ((f"{key}[{number}]", row) for number, row in enumerate(rows))


def _struct_of(
    place: str, row: Mapping[str, Any], tag: str, structs: Mapping[str, type[msgspec.Struct]]
) -> type[msgspec.Struct]:
    choice = row.get(tag)
    if choice is None:
        raise ScenarioError(f"{place}: needs a {tag!r}: one of {', '.join(structs)}")
    if choice not in structs:
        raise ScenarioError(f"{place}.{tag}: there is no {choice!r}; {_hint(str(choice), list(structs))}")
    return structs[choice]


def _check_keys(place: str, table: Mapping[str, Any], struct: type[msgspec.Struct], tag: str | None) -> None:
    known = [*((tag,) if tag else ()), *struct.__struct_encode_fields__]
    for key in table:
        if key not in known:
            where = f"{place}.{key}" if place else key
            raise ScenarioError(f"{where}: there is no such key; {_hint(key, known)}")


def _hint(word: str, known: list[str]) -> str:
    close = get_close_matches(word, known, 1)
    return f"did you mean {close[0]!r}?" if close else f"there are: {', '.join(known)}"


def _with_place(message: str) -> str:
    """msgspec's sentence, with the place in front and in our notation."""
    found = re.fullmatch(r"(.*) - at `(?:key in )?\$\.?(.*)`", message)
    sentence, place = found.groups() if found else (message, "")
    sentence = sentence.replace("Object missing required field", "needs a value for").replace("`", "'")
    return f"{place}: {sentence}" if place else sentence
