"""A bounded set of connections that are not authenticated yet.

If it is full, adding a connection closes a pending one. Otherwise a peer that occupies all places and sends nothing
would block all others. The closed connection is the oldest of the host with the most pending ones. A regular peer
authenticates at once, so it is rarely closed.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Generic, TypeVar

__all__ = ["PendingConnections"]

T = TypeVar("T")


class PendingConnections(Generic[T]):
    """Holds at most `most` connections, and chooses which one to close if there are more."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._hosts: dict[T, str] = {}
        """The host of each connection, the oldest connection first."""
        self._counts: Counter[str] = Counter()

    def __iter__(self) -> Iterator[T]:
        return iter(list(self._hosts))

    def __len__(self) -> int:
        return len(self._hosts)

    def add(self, item: T, host: str) -> T | None:
        """Add a connection. Return the one to close if there was no room, or None."""
        victim = None
        if len(self._hosts) >= self._most:
            largest = max(self._counts, key=self._counts.__getitem__)
            victim = next(each for each, its_host in self._hosts.items() if its_host == largest)
            self.discard(victim)
        self._hosts[item] = host
        self._counts[host] += 1
        return victim

    def discard(self, item: T) -> None:
        """Remove a connection that was accepted or closed."""
        host = self._hosts.pop(item, None)
        if host is not None:
            self._counts[host] -= 1
            if not self._counts[host]:
                del self._counts[host]
