"""Generated from `gapless.client.changes` by `scripts/generate_sync_client.py`. Edit that file instead."""

from typing import Self

from gapless.client.changes import ConnectionChange
from gapless.client.synchronous import Synchronous

__all__ = ["ConnectionChanges"]


class ConnectionChanges(Synchronous):
    """Iterates over the changes of a client's connection, from its current state until the client ends.

    If the client fails, iteration raises its error, too.
    """

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> ConnectionChange:
        found: ConnectionChange = self._next()
        return found
