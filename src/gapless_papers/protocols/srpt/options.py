"""The options of the `srpt` protocol."""

from typing import Literal

import msgspec

__all__ = ["SrptOptions"]


class SrptOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Set under `[protocol.options]` in a scenario, or with `--option` on the command line."""

    initial_members: dict[str, tuple[str, ...]] = {}
    """By topic, brokers to which the tree leads from the start: as in the paper's experiments. Without it each broker
    joins when a client of its first subscribes."""

    first: Literal["largest", "smallest"] = "largest"
    """Of its children in a tree that is there from the start, which one a broker sends to first: as for `vcube`."""
