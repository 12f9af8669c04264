"""When two halves of a network have gone on without each other, and meet again.

Only where brokers go on in a cut (`partition`) can that be. Each half has confirmed and delivered what the other never
heard of. When they meet, some give in, and nobody can tell any more what each subscription has missed of the other
half. So all are told between which positions that was: the **parting**. Everyone hears of it, like of who lives.
"""

from typing import TypeAlias

__all__ = ["TOGETHER", "Parting", "join", "parting", "to_tell"]

Parting: TypeAlias = tuple[int, int]
"""Up to the first position all was common; after the second, all is again."""

TOGETHER: Parting = (0, 0)
"""There was none."""


STEP_US = 100_000
SECOND_US = 1_000_000


def parting(since: int, until: int) -> Parting:
    """One that lasted from a position to another; in steps, for those who give in do so one after the other."""
    return max(1, since), (until // STEP_US + 1) * STEP_US


def to_tell(parted: Parting) -> Parting:
    """As an application is told of it: up to the full second, so that it is told once."""
    return parted[0], -(-parted[1] // SECOND_US) * SECOND_US


def join(one: Parting, other: Parting) -> Parting:
    """One parting out of two, if they overlap; otherwise the later one: the other was told before."""
    if TOGETHER in (one, other) or one[1] < other[0] or other[1] < one[0]:
        return max(one, other, key=lambda parting: parting[1])
    return min(one[0], other[0]), max(one[1], other[1])
