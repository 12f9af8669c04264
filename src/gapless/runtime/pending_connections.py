"""Connections that wait outside, and have not proved anything yet. There is room for so many.

If there is no room, a waiting connection has to go for the new one. The other way round, a peer that takes all places
and says nothing would keep everybody out. The one that goes has waited longest, of those from the host with the most.
An honest peer says at once who it is, so it does not wait for long.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Generic, TypeVar

__all__ = ["PendingConnections"]

T = TypeVar("T")


class PendingConnections(Generic[T]):
    """No more than `most` at a time."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._hosts: dict[T, str] = {}
        """The longest waiting first."""
        self._counts: Counter[str] = Counter()

    def __iter__(self) -> Iterator[T]:
        return iter(list(self._hosts))

    def __len__(self) -> int:
        return len(self._hosts)

    def add(self, item: T, host: str) -> T | None:
        """Add one; the one that has to go for it, if there is no room."""
        victim = None
        if len(self._hosts) >= self._most:
            largest = max(self._counts, key=self._counts.__getitem__)
            victim = next(each for each, its_host in self._hosts.items() if its_host == largest)
            self.discard(victim)
        self._hosts[item] = host
        self._counts[host] += 1
        return victim

    def discard(self, item: T) -> None:
        """It is let in, or gone."""
        host = self._hosts.pop(item, None)
        if host is not None:
            self._counts[host] -= 1
            if not self._counts[host]:
                del self._counts[host]
