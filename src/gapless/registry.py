"""Finds protocols by name, and imports only the one that is asked for.

The product's own protocols stand in `OURS`. Other packages offer theirs as entry points of the group
`gapless.protocols`; `gapless_papers` does so in this project's `pyproject.toml`:

    [project.entry-points."gapless.protocols"]
    delta = "gapless_papers.protocols.delta:PROTOCOL"

An entry point names a `ProtocolSpec`, and has its name. Names are known without importing anything; the entry points
are read only for a name that is not ours. A package that takes one of our names is not listened to.
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
"""The product's protocols, each with the package whose `PROTOCOL` it is."""


@cache
def find_protocol(name: str) -> ProtocolSpec:
    """The protocol of that name, or an error that lists those there are."""
    if name in OURS:
        spec = importlib.import_module(OURS[name]).PROTOCOL
    elif name in _offered():
        spec = _load(_offered()[name])
    else:
        raise ProtocolError(f"there is no protocol {name!r}; choose one of: {', '.join(protocol_names())}")
    assert isinstance(spec, ProtocolSpec)
    return spec


def protocol_names() -> list[str]:
    """The names of all protocols, sorted; nothing is imported for it."""
    return sorted({*OURS, *_offered()})


def protocols() -> dict[str, ProtocolSpec]:
    """All protocols by name, sorted; this imports all of them."""
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
        raise ProtocolError(f"{entry.value} is no ProtocolSpec of the name {entry.name!r}; tell the package's authors")
    return spec
