"""The options of the `locaps` protocol."""

import msgspec

__all__ = ["REPAIRS", "LocapsOptions"]

REPAIRS = frozenset({"late-publishers", "pivots"})
"""What tests can switch off to see that the checkers notice."""


class LocapsOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Set under `[protocol.options]` in a scenario, or with `--option` on the command line."""

    coverage: bool = True
    """Algorithm 2: pivots answer for publishers. Off gives Algorithm 1: every marker comes from its publisher."""

    switched_off: tuple[str, ...] = ()
    """For tests only: any of `late-publishers` and `pivots`; see the package's text for what they repair."""

    def __post_init__(self) -> None:
        unknown = [name for name in self.switched_off if name not in REPAIRS]
        if unknown:
            raise ValueError(f"there is no repair {unknown[0]!r} to switch off; it has: {', '.join(sorted(REPAIRS))}")
