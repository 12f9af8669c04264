"""Offsets: a position of the whole network, and what has to be known to read the same batch again in the same parts.

    {"network": "shop", "position": 1793280000000000, "cuts": [1793279990000000]}

`cuts` divide the batch that ends there; `gone` counts the events that were missed so far, if a query may miss some.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from gapless.errors import SparkError

__all__ = ["check_offset", "offset", "positions"]


def offset(network: str, position: int, cuts: Sequence[int] = (), gone: int = 0) -> dict[str, Any]:
    """An offset, as Spark keeps it."""
    told: dict[str, Any] = {"network": network, "position": position}
    if cuts:
        told["cuts"] = list(cuts)
    if gone:
        told["gone"] = gone
    return told


def check_offset(network: str, given: Mapping[str, Any]) -> int:
    """Its position; a `SparkError` if it is none of this network."""
    name, position = given.get("network"), given.get("position")
    if not isinstance(name, str) or not isinstance(position, int):
        raise SparkError(f"the checkpoint holds {dict(given)!r}, which is no offset of this source; use another one")
    if name != network:
        raise SparkError(
            f"the checkpoint is of network {name!r}, but these brokers are of network {network!r}; "
            f"name brokers of {name!r}, or use another checkpointLocation"
        )
    return position


def positions(network: str, start: Mapping[str, Any], end: Mapping[str, Any]) -> list[int]:
    """The ends of the parts of a batch."""
    first, last = check_offset(network, start), check_offset(network, end)
    return [first, *(cut for cut in end.get("cuts", ()) if first < cut < last), last]
