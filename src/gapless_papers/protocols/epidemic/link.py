"""One link of the tree: each end reports to the other which patterns are wanted behind it, even if messages are lost.

The state to transfer is a set. One change of it is in flight at a time: the whole difference to the set that the
neighbour confirmed, repeated until it is confirmed. Versions distinguish a new change from a repeated one. A new
connection starts again with the whole set, which replaces the neighbour's copy. So the neighbour's set converges to
ours with probability 1 as long as the link does not lose everything, and the pending state is bounded by the set
itself.
"""

from gapless_papers.protocols.epidemic.messages import Interest

__all__ = ["Link"]


class Link:
    """One end of a link."""

    def __init__(self, peer: str) -> None:
        self.peer = peer
        self.timer = f"interest/{peer}"
        self.under_way: Interest | None = None
        self._wanted: dict[str, None] = {}
        self._known: dict[str, None] = {}
        """The set that the neighbour confirmed."""
        self._version = 0
        self._whole = False
        self._last_version = 0

    def restart(self) -> None:
        """Start again on a new connection, because the neighbour's state is unknown."""
        self.under_way = None
        self._known = {}
        self._version = 0
        self._whole = True
        self._last_version = 0

    def want(self, pattern: str, wanted: bool) -> None:
        """Set whether the pattern is wanted on this side of the link."""
        if wanted:
            self._wanted[pattern] = None
        else:
            self._wanted.pop(pattern, None)

    def next_change(self) -> Interest | None:
        """Return the next change to send, unless one is in flight."""
        if self.under_way is not None:
            return None
        added = tuple(pattern for pattern in self._wanted if pattern not in self._known)
        removed = tuple(pattern for pattern in self._known if pattern not in self._wanted)
        if not (added or removed or self._whole):
            return None
        self._version += 1
        self.under_way = Interest(self._version, self._whole, added, removed)
        return self.under_way

    def confirm(self, version: int) -> None:
        """Record that the neighbour has applied the change with this version."""
        change = self.under_way
        if change is None or change.version != version:
            return
        for pattern in change.removed:
            del self._known[pattern]
        self._known.update(dict.fromkeys(change.added))
        self._whole = False
        self.under_way = None

    def is_news(self, change: Interest) -> bool:
        """Return whether the neighbour's change is new rather than repeated."""
        if change.version <= self._last_version:
            return False
        self._last_version = change.version
        return True
