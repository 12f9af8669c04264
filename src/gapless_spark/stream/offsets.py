"""Offsets: a position of the whole network, and what is needed to read the same batch again in the same parts.

    {"network": "shop", "position": "p1793280000000000", "cuts": ["p1793279990000000"]}

A query can start after one event (`"p1793280000000000-17-orders-1a2b"`). All positions that it plans itself, ends of
batches and cuts, are network-wide, so the causes of a batch's events are in the same batch or an earlier one. `cuts`
divide the batch that ends there; `gone` counts the events missed so far, if the query allows that.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from gapless.errors import SparkError
from gapless.positions import Position

__all__ = ["check_offset", "offset", "positions"]


def offset(network: str, position: Position, cuts: Sequence[Position] = (), gone: int = 0) -> dict[str, Any]:
    """Return an offset in the form that Spark stores."""
    fields: dict[str, Any] = {"network": network, "position": str(position)}
    if cuts:
        fields["cuts"] = list(map(str, cuts))
    if gone:
        fields["gone"] = gone
    return fields


def check_offset(network: str, given: Mapping[str, Any]) -> Position:
    """Return the position of an offset; raise a `SparkError` if it does not belong to this network."""
    name = given.get("network")
    try:
        position = Position(given.get("position", ""))
    except ValueError as error:
        raise _no_offset(given, str(error)) from None
    if not isinstance(name, str):
        raise _no_offset(given, "it has no network")
    if name != network:
        raise SparkError(
            f"the checkpoint belongs to network {name!r}, but these brokers are of network {network!r}; use "
            f"brokers of {name!r}, or another checkpointLocation"
        )
    return position


def _no_offset(given: Mapping[str, Any], why: str) -> SparkError:
    return SparkError(
        f"the checkpoint contains {dict(given)!r}, which is not an offset of this source ({why}); "
        "use another checkpoint"
    )


def positions(network: str, start: Mapping[str, Any], end: Mapping[str, Any]) -> list[Position]:
    """Return the ends of the parts of a batch."""
    first, last = check_offset(network, start), check_offset(network, end)
    return [first, *(cut for cut in map(Position, end.get("cuts", ())) if first < cut < last), last]
