"""The options of the `delta` protocol, each with the reason for its default. δ itself is the network's `f`."""

from typing import Literal

import msgspec

__all__ = ["REPAIRS", "DeltaOptions"]

REPAIRS = frozenset({"duplicates", "missed", "synchronise"})
"""What tests can switch off to see that the checkers notice."""


class DeltaOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Set under `[protocol.options]` in a scenario, or with `--option` on the command line."""

    legitimacy: Literal["wait", "relaxed"] = "wait"
    """What happens to a message that has bypassed more than δ of the last brokers on its way. `wait` keeps it, and what
    follows it, until a broker returns: the guarantee holds. `relaxed` sends it on, as the paper's evaluation does."""

    patience_ms: float = 1_500.0
    """How long a broker that is gone is waited for: its subscribers' publications are kept, its clients stay. Longer
    than a broker takes to restart; until it is over, what nobody can be given keeps its publishers' windows filled."""

    window: int = 1_000
    """How many publications a client keeps that have not reached every subscriber; further calls are refused. It bounds
    what any broker has to keep."""

    switched_off: tuple[str, ...] = ()
    """For tests only: any of `duplicates` (sequence vectors), `missed` (what was processed before a subscription was
    known is not for it) and `synchronise` (no publication before the sender has been told what it lacks)."""

    def __post_init__(self) -> None:
        unknown = [name for name in self.switched_off if name not in REPAIRS]
        if unknown:
            raise ValueError(f"there is no repair {unknown[0]!r} to switch off; it has: {', '.join(sorted(REPAIRS))}")
        if self.patience_ms < 0 or self.window < 1:
            raise ValueError("patience_ms cannot be negative, and window must be at least 1")
