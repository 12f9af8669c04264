"""The status of a broker: which life it is in, and whether that life is out.

A number that only grows, so that two opinions merge by the maximum: twice the life, plus one once that life is
*excluded*: whatever it does counts no more, and it has to come back as a new life.

A broker that is excluded, or in a later life than its first, is **unsettled**: the tree around it is contracted, or
being handed back. When everybody around has taken a life in, it is *settled*, and as good as a first one. That is
not part of the status but a hint: to believe it too late only makes a hand-over larger than it need be.
"""

from collections.abc import Mapping

__all__ = ["Statuses", "alive_status", "excluded_status", "is_excluded", "is_unsettled", "life_of"]

Statuses = dict[str, int]
"""Broker to status; absent means 0: alive in its first life."""


def alive_status(life: int) -> int:
    """The status of a life that is in."""
    return 2 * life


def excluded_status(life: int) -> int:
    """The status of a life that is out."""
    return 2 * life + 1


def life_of(status: int) -> int:
    """The life that the status is about."""
    return status // 2


def is_excluded(status: int) -> bool:
    """Whether the life is out."""
    return status % 2 == 1


def is_unsettled(name: str, status: Mapping[str, int], settled: Mapping[str, int]) -> bool:
    """Whether the tree around the broker is changed, or changing, on its account."""
    value = status.get(name, 0)
    return is_excluded(value) or (value > 0 and settled.get(name) != life_of(value))
