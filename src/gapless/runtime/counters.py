"""Counts the traffic through a node's links, for metrics."""

from collections import Counter

__all__ = ["Counters"]


class Counters:
    """The traffic counters of one node."""

    __slots__ = ("bytes_in", "bytes_out", "frames_in", "lost", "messages_in", "messages_out", "refused")

    def __init__(self) -> None:
        self.frames_in = 0
        self.messages_in = 0
        self.messages_out = 0
        self.lost = 0
        """Messages dropped because their peer had no connection."""
        self.refused: Counter[str] = Counter()
        """The number of connections that this node ended and of calls that it denied, by code."""
        self.bytes_in = 0
        """Bytes read from connections that are closed; open ones are counted separately."""
        self.bytes_out = 0

    @property
    def refusals(self) -> int:
        """Return the number of refusals of all kinds."""
        return self.refused.total()
