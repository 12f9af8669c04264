"""The members of a topic, as far as one broker knows (UPDATE of Algorithm 3).

For each broker the latest news counts, by that broker's own clock. Former members are remembered, so that older news
cannot restore them. The table has at most one entry for each broker.
"""

from collections.abc import Iterable

from gapless_papers.protocols.vcube.messages import Entry

__all__ = ["View"]


class View:
    """The members of one topic."""

    __slots__ = ("_clocks", "members")

    def __init__(self, members: int = 0) -> None:
        self.members = members
        """The members as a bit set with one bit for each broker of the hypercube."""
        self._clocks: dict[int, int] = {}

    def update(self, entries: Iterable[Entry]) -> None:
        """Merge news that is newer than the known state."""
        for broker, clock, is_member in entries:
            if clock > self._clocks.get(broker, -1):
                self._clocks[broker] = clock
                if is_member:
                    self.members |= 1 << broker
                else:
                    self.members &= ~(1 << broker)
