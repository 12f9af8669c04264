"""The options of the `delta` protocol, each with the reason for its default. δ itself is the network's `f`."""

from typing import Literal

import msgspec

__all__ = ["REPAIRS", "DeltaOptions"]

REPAIRS = frozenset({"duplicates", "missed", "synchronise"})
"""The repairs that tests can switch off to check that the checkers detect it."""


class DeltaOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Set under `[protocol.options]` in a scenario, or with `--option` on the command line."""

    legitimacy: Literal["wait", "relaxed"] = "wait"
    """How to treat a message that has bypassed more than δ of the last brokers on its path. `wait` keeps it, and all
    messages behind it, until a broker returns, which preserves the guarantee. `relaxed` forwards it, as the paper's
    evaluation does.
    """

    patience_ms: float = 1_500.0
    """How long to wait for an unreachable broker: events for its subscribers are kept, and its clients stay. Longer
    than the restart of a broker. Meanwhile, undeliverable events fill their publishers' windows.
    """

    window: int = 1_000
    """How many unconfirmed publications a client keeps; further calls are refused. This bounds what brokers have to
    keep.
    """

    switched_off: tuple[str, ...] = ()
    """For tests only: any of `duplicates` (sequence vectors), `missed` (events processed before a subscription was
    known are not delivered to it) and `synchronise` (no publications before the sender has received what it lacks).
    """

    def __post_init__(self) -> None:
        unknown = [name for name in self.switched_off if name not in REPAIRS]
        if unknown:
            raise ValueError(
                f"there is no repair {unknown[0]!r} to switch off; the repairs are: {', '.join(sorted(REPAIRS))}"
            )
        if self.patience_ms < 0 or self.window < 1:
            raise ValueError("patience_ms cannot be negative, and window must be at least 1")
