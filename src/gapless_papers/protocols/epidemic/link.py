"""One link of the tree: each end tells the other which patterns are wanted behind it, whatever gets lost.

What the neighbour must know is a set. One change of it is under way at a time: all that differs from what the neighbour
confirmed, sent again until it is confirmed in turn. Versions tell a new change from one that arrives again. A fresh
connection starts over with the whole set, which replaces what the neighbour still believes. So the neighbour's set
converges to ours with probability 1 if not everything is lost for ever, and what waits is bounded by the set itself.
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
        """What the neighbour confirmed."""
        self._version = 0
        self._whole = False
        self._heard = 0

    def restart(self) -> None:
        """The connection is a new one: what the neighbour knows is uncertain."""
        self.under_way = None
        self._known = {}
        self._version = 0
        self._whole = True
        self._heard = 0

    def want(self, pattern: str, wanted: bool) -> None:
        """Is the pattern wanted on this side of the link?"""
        if wanted:
            self._wanted[pattern] = None
        else:
            self._wanted.pop(pattern, None)

    def next_change(self) -> Interest | None:
        """The change to send now, if there is one and none is under way."""
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
        """The neighbour has the change of this version."""
        change = self.under_way
        if change is None or change.version != version:
            return
        for pattern in change.removed:
            del self._known[pattern]
        self._known.update(dict.fromkeys(change.added))
        self._whole = False
        self.under_way = None

    def is_news(self, change: Interest) -> bool:
        """Does the neighbour say something that it has not said before?"""
        if change.version <= self._heard:
            return False
        self._heard = change.version
        return True
