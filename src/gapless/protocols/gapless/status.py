"""The status of a broker: which life it is in, and how far that life has come.

A number that only grows, so that two opinions merge by the maximum: four times the life, plus

- 0: *returning*: back, but not taken in by everybody around it (a first life needs no taking in),
- 1: *settled*: a full member of the tree,
- 2: *excluded*: whatever it does counts no more; it has to come back as a new life.

Brokers that are excluded or returning are **unsettled**: the tree around them is being handed over, or contracted.
"""

__all__ = ["Statuses", "excluded_life", "is_excluded", "is_unsettled", "life_of", "returning_life", "settled_life"]

Statuses = dict[str, int]
"""Broker to status; absent means 0: alive in its first life."""


def returning_life(life: int) -> int:
    """The status of a life that begins."""
    return 4 * life


def settled_life(life: int) -> int:
    """The status of a life that everybody has taken in."""
    return 4 * life + 1


def excluded_life(life: int) -> int:
    """The status of a life that is out."""
    return 4 * life + 2


def life_of(status: int) -> int:
    """The life that the status is about."""
    return status // 4


def is_excluded(status: int) -> bool:
    """Whether the life is out."""
    return status % 4 == 2


def is_unsettled(status: int) -> bool:
    """Whether the tree around the broker is changing or changed on its account."""
    return is_excluded(status) or (status % 4 == 0 and status > 0)
