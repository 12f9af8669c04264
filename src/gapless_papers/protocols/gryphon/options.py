"""The options of the `gryphon` protocol."""

import msgspec

__all__ = ["REPAIRS", "GryphonOptions"]

REPAIRS = frozenset({"flooding", "repeats"})
"""What tests can switch off to see that the checkers notice."""


class GryphonOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Set under `[protocol.options]` in a scenario, or with `--option` on the command line."""

    acknowledge_ms: int = 100
    """How long an acknowledgement waits for a packet to ride on, and a receiver until it asks again."""

    repeat_ms: int = 350
    """What stays unacknowledged for so long is sent again; less than `acknowledge_ms` and a round trip is a waste."""

    buffer: int = 10_000
    """Packets that one end of a link keeps unacknowledged. When they are so many, those who would add to them wait."""

    switched_off: tuple[str, ...] = ()
    """For tests only: `flooding` (events keep to stable paths) or `repeats` (what a link loses is lost)."""

    def __post_init__(self) -> None:
        for name in ("acknowledge_ms", "repeat_ms", "buffer"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1")
        unknown = [name for name in self.switched_off if name not in REPAIRS]
        if unknown:
            raise ValueError(f"there is no repair {unknown[0]!r} to switch off; it has: {', '.join(sorted(REPAIRS))}")
