"""The options of the `vcube` protocol."""

from typing import Literal

import msgspec

__all__ = ["REPAIRS", "VcubeOptions"]

REPAIRS = frozenset({"receivers", "starting-cut"})
"""What tests can switch off to see that the checkers notice."""


class VcubeOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Set under `[protocol.options]` in a scenario, or with `--option` on the command line."""

    initial_members: dict[str, tuple[str, ...]] = {}
    """By topic, brokers that are members from the start, and that all members know: as in the paper's experiments.
    Without it each broker joins when a client of its first asks for the topic."""

    topics_max: int = 10_000
    """How many topics the clients of one broker may use in its life: it keeps the barrier and the numbers of each, also
    after it has left. A call for one more is refused. (The paper's MAX_TOPICS.)"""

    client_window: int = 1_000
    """How many publications of a client may be on their way; one more is rejected. They wait in memory."""

    waiting_max: int = 10_000
    """How many messages of a topic may wait for their causes at a broker before it withholds acknowledgements. A
    source has one broadcast under way at most, so no more than one message of each source comes on top."""

    first: Literal["largest", "smallest"] = "largest"
    """Which sub-cube a broker sends to first. The largest is fastest, for who has the longest way ahead leaves first;
    the paper's loop (Algorithm 3, line 26) begins with the smallest."""

    barrier: Literal["direct", "all"] = "direct"
    """What a message names as its causes: the direct ones, or all that was delivered since the source's last message.
    The paper promises the first, and prints the second: line 36 of Algorithm 3 empties what line 49 subtracts."""

    measured: bool = False
    """Keep what experiments ask for: see `measures`. It grows with the run."""

    switched_off: tuple[str, ...] = ()
    """For tests only: any of `receivers` and `starting-cut`, which then are as the paper prints them; see the
    package's text for what they repair."""

    def __post_init__(self) -> None:
        unknown = [name for name in self.switched_off if name not in REPAIRS]
        if unknown:
            raise ValueError(f"there is no repair {unknown[0]!r} to switch off; it has: {', '.join(sorted(REPAIRS))}")
        for name in ("topics_max", "client_window", "waiting_max"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}, but must be at least 1")
