"""The options of the `gryphon` protocol."""

import msgspec

__all__ = ["REPAIRS", "GryphonOptions"]

REPAIRS = frozenset({"flooding", "repeats"})
"""The repairs that tests can switch off to check that the checkers detect it."""


class GryphonOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Set under `[protocol.options]` in a scenario, or with `--option` on the command line."""

    acknowledge_ms: int = 100
    """How long an acknowledgement waits for a packet to carry it, and how long a receiver waits before it repeats a
    request."""

    repeat_ms: int = 350
    """When to repeat unacknowledged packets; less than `acknowledge_ms` plus a round trip wastes messages."""

    buffer: int = 10_000
    """The number of unacknowledged packets that one end of a link keeps. Once it is reached, senders must wait."""

    switched_off: tuple[str, ...] = ()
    """For tests only: `flooding` (events stay on stable paths) or `repeats` (packets lost by a link are not
    repeated)."""

    def __post_init__(self) -> None:
        for name in ("acknowledge_ms", "repeat_ms", "buffer"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1")
        unknown = [name for name in self.switched_off if name not in REPAIRS]
        if unknown:
            raise ValueError(
                f"there is no repair {unknown[0]!r} to switch off; the repairs are: {', '.join(sorted(REPAIRS))}"
            )
