"""Finds protocols by name, and imports only the requested one.

The product's own protocols are in `OURS`. Other packages register theirs as entry points of the group
`gapless.protocols`; `gapless_papers` does so in this project's `pyproject.toml`:

    [project.entry-points."gapless.protocols"]
    delta = "gapless_papers.protocols.delta:PROTOCOL"

An entry point refers to a `ProtocolSpec`, and has its name. Names are known without importing anything; entry points
are read only for a name that is not in `OURS`. A package cannot replace a protocol in `OURS`.
"""

import importlib
from functools import cache
from typing import TYPE_CHECKING

from gapless.errors import ProtocolError
from gapless.protocol import ProtocolSpec

if TYPE_CHECKING:  # reading metadata takes longer to import than a client takes to connect
    from importlib.metadata import EntryPoint

__all__ = ["find_protocol", "protocol_names", "protocols"]

GROUP = "gapless.protocols"
OURS = {"gapless": "gapless.protocols.gapless"}
"""The product's protocols, each with the package that contains its `PROTOCOL`."""


@cache
def find_protocol(name: str) -> ProtocolSpec:
    """Return the protocol of that name; raise an error that lists the existing ones if there is none."""
    if name in OURS:
        spec = importlib.import_module(OURS[name]).PROTOCOL
    elif name in _offered():
        spec = _load(_offered()[name])
    else:
        raise ProtocolError(f"there is no protocol {name!r}; choose one of: {', '.join(protocol_names())}")
    assert isinstance(spec, ProtocolSpec)
    return spec


def protocol_names() -> list[str]:
    """Return the names of all protocols, sorted, without importing them."""
    return sorted({*OURS, *_offered()})


def protocols() -> dict[str, ProtocolSpec]:
    """Return all protocols by name, sorted; this imports all of them."""
    return {name: find_protocol(name) for name in protocol_names()}


@cache
def _offered() -> "dict[str, EntryPoint]":
    from importlib.metadata import entry_points

    return {entry.name: entry for entry in entry_points(group=GROUP)}


def _load(entry: "EntryPoint") -> ProtocolSpec:
    try:
        spec = entry.load()
    except (ImportError, AttributeError) as error:
        raise ProtocolError(
            f"protocol {entry.name!r} cannot be loaded from {entry.value}: {error}; reinstall the package that has it"
        ) from error
    if not isinstance(spec, ProtocolSpec) or spec.name != entry.name:
        raise ProtocolError(
            f"{entry.value} is not a ProtocolSpec with the name {entry.name!r}; report this to the package's authors"
        )
    return spec
