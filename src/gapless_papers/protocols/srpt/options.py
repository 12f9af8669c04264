"""The options of the `srpt` protocol."""

from typing import Literal

import msgspec

__all__ = ["SrptOptions"]


class SrptOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Set under `[protocol.options]` in a scenario, or with `--option` on the command line."""

    initial_members: dict[str, tuple[str, ...]] = {}
    """For each topic, the brokers that its tree contains from the start, as in the paper's experiments. By default
    each broker joins when its first client subscribes."""

    first: Literal["largest", "smallest"] = "largest"
    """The child to which a broker sends first, in a tree that exists from the start; see `vcube`."""
