"""Memory with a bound: the oldest goes first."""

from typing import Any

__all__ = ["forget_oldest"]


def forget_oldest(entries: dict[Any, Any], most: int) -> None:
    """Leave no more than so many entries, those that were entered last."""
    while len(entries) > most:
        del entries[next(iter(entries))]
