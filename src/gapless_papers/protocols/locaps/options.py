"""The options of the `locaps` protocol."""

from typing import Literal

import msgspec

__all__ = ["REPAIRS", "LocapsOptions"]

REPAIRS = frozenset({"late-publishers", "numbers", "own-markers", "pivots", "together", "two-steps"})
"""The repairs that tests can switch off to check that the checkers detect it."""


class LocapsOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Set under `[protocol.options]` in a scenario, or with `--option` on the command line."""

    coverage: bool = True
    """Algorithm 2: pivots answer for publishers. False is Algorithm 1: every marker comes from its publisher."""

    paths: Literal["one", "f+1"] = "f+1"
    """The number of paths that messages take. On a tree, `f+1` adds LoCaMu's links, which bypass f brokers, and
    survives f failures; `one` is the bare tree, and survives none."""

    full_markers: bool = False
    """With `f+1` paths: a broker with a covering subscription answers alone, as section V-A allows if all paths meet.
    Then a subscription there starts at once. If false, it waits for the next f brokers as well, as in section VI-B."""

    cascade: bool = False
    """On graphs: markers go to all subscribers of a publisher, and publishers answer them with their own (Algorithm 1,
    lines 14 to 21)."""

    done_ms: int = 50
    """On graphs: how long a broker waits before it reports processed messages to their origins. Longer means fewer
    messages, and more state."""

    switched_off: tuple[str, ...] = ()
    """For tests only: any of `late-publishers`, `numbers`, `own-markers`, `pivots` and, on graphs, `together` and
    `two-steps`; see the package's text for what they repair."""

    def __post_init__(self) -> None:
        if self.done_ms < 1:
            raise ValueError("done_ms must be at least 1")
        unknown = [name for name in self.switched_off if name not in REPAIRS]
        if unknown:
            raise ValueError(
                f"there is no repair {unknown[0]!r} to switch off; the repairs are: {', '.join(sorted(REPAIRS))}"
            )
