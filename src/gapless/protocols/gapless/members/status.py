"""The status of a broker: which life it is in, and whether those around have taken that life in.

A number that only grows, so that two opinions merge by the maximum: the life times `PHASES`, plus its phase.

- In an even phase the life is **settled**: everybody around has taken it in. A first life is from the beginning.
- In an odd phase it is **unsettled**: the tree around it is contracted, or being handed back. A later life begins so.
- In the last phase, an odd one, it is **excluded**: whatever it does counts no more, and it comes back as a new life.

A settled life may have to be taken in again (`handovers`): then the next phase is odd once more. If that brings it to
the last phase, the broker starts over like any other that is excluded.
"""

from gapless.protocols.gapless.lives import Status

__all__ = [
    "FIRST", "Statuses", "alive_status", "excluded_status", "is_excluded", "is_unsettled", "life_of", "next_phase",
]  # fmt: skip

Statuses = dict[str, Status]
"""Broker to status; absent means `FIRST`."""

FIRST = Status(0)
"""Settled in its first life."""

PHASES = 1024
"""Even, and as small as the number of times that a life may be taken in allows: lives are large numbers."""


def alive_status(life: int) -> Status:
    """The status of a life that begins."""
    return Status(life * PHASES + 1) if life else FIRST


def excluded_status(life: int) -> Status:
    """The status of a life that is out."""
    return Status(life * PHASES + PHASES - 1)


def next_phase(status: Status) -> Status:
    """The status of the same life once it is taken in, or has to be again."""
    return Status(status + 1)


def life_of(status: Status) -> int:
    """The life that the status is about."""
    return status // PHASES


def is_excluded(status: Status) -> bool:
    """Whether the life is out."""
    return status % PHASES == PHASES - 1


def is_unsettled(status: Status) -> bool:
    """Whether the tree around the broker is changed, or changing, on its account."""
    return status % 2 == 1
