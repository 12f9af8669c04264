"""Bounds collections by dropping their oldest entries."""

from typing import Any

__all__ = ["forget_oldest"]


def forget_oldest(entries: dict[Any, Any], most: int) -> None:
    """Drop the oldest entries until at most `most` remain."""
    while len(entries) > most:
        del entries[next(iter(entries))]
