"""The state of a client: its subscriptions and its advertisements."""

from gapless.filters import Filter
from gapless.protocols.parts.messages import Cuts

__all__ = ["Held", "Offer"]


class Held:
    """A subscription as its client keeps it: its start, and its progress."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.cuts: Cuts = {}
        self.got: Cuts = {}
        """The last number of each publisher that arrived."""
        self.is_active = False

    def last(self) -> Cuts:
        """Return the ending cut, if the subscription ended now."""
        return {publisher: cut - 1 for publisher, cut in self.cuts.items()} | self.got


class Offer:
    """An advertisement as its client keeps it."""

    def __init__(self, name: str, pattern: Filter) -> None:
        self.name = name
        self.filter = pattern
        self.is_stable = False
        self.last = 0
        """The last event that may rely on the advertisement, once it is withdrawn."""
