"""The options of the `vcube` protocol."""

from typing import Literal

import msgspec

__all__ = ["REPAIRS", "VcubeOptions"]

REPAIRS = frozenset({"receivers", "starting-cut"})
"""The repairs that tests can switch off to check that the checkers detect it."""


class VcubeOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Set under `[protocol.options]` in a scenario, or with `--option` on the command line."""

    initial_members: dict[str, tuple[str, ...]] = {}
    """By topic, brokers that are members from the start and known to all members, as in the paper's experiments.
    Without it each broker joins when its first client asks for the topic."""

    topics_max: int = 10_000
    """How many topics the clients of one incarnation of a broker can use: it keeps the barrier and the numbers of each,
    also after it has left. A call for one more is refused. (The paper's MAX_TOPICS.)"""

    client_window: int = 1_000
    """How many publications of a client can be in flight or queued in memory; one more is rejected."""

    waiting_max: int = 10_000
    """How many messages of a topic can wait for their causes at a broker before it withholds acknowledgements. A source
    has one broadcast in flight at most, so the total exceeds this by at most one message per source."""

    first: Literal["largest", "smallest"] = "largest"
    """The sub-cube that a broker sends to first. The largest is fastest, because its copy has the longest path; the
    paper's loop (Algorithm 3, line 26) begins with the smallest."""

    barrier: Literal["direct", "all"] = "direct"
    """The causes that a message names: the direct ones, or all messages delivered since the source's last one. The
    paper promises the first. Its Algorithm 3 gives the second if the function of line 36 gets its set by reference:
    then it empties the set that line 49 subtracts."""

    measured: bool = False
    """Whether to keep the measurements for experiments: see `measures`. They grow with the run."""

    switched_off: tuple[str, ...] = ()
    """For tests only: any of `receivers` and `starting-cut`, which then behave as printed in the paper; see the
    package's docstring for what they repair."""

    def __post_init__(self) -> None:
        unknown = [name for name in self.switched_off if name not in REPAIRS]
        if unknown:
            raise ValueError(
                f"there is no repair {unknown[0]!r} to switch off; the repairs are: {', '.join(sorted(REPAIRS))}"
            )
        for name in ("topics_max", "client_window", "waiting_max"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}, but must be at least 1")
