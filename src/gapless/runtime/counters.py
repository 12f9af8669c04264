"""What went through a node's links, for metrics."""

from collections import Counter

__all__ = ["Counters"]


class Counters:
    """Of one node."""

    __slots__ = ("bytes_in", "bytes_out", "frames_in", "lost", "messages_in", "messages_out", "refused")

    def __init__(self) -> None:
        self.frames_in = 0
        self.messages_in = 0
        self.messages_out = 0
        self.lost = 0
        """Messages sent to a peer without a connection."""
        self.refused: Counter[str] = Counter()
        """Connections that were ended by us, and calls that were denied, by code."""
        self.bytes_in = 0
        """Of connections that are over; those that last count for themselves."""
        self.bytes_out = 0

    @property
    def refusals(self) -> int:
        """Of every kind."""
        return self.refused.total()
