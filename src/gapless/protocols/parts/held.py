"""The state that clients keep for their subscriptions and advertisements."""

from gapless.filters import Filter
from gapless.protocols.parts.messages import Cuts

__all__ = ["Held", "Offer"]


class Held:
    """A subscription in the state of its client, with its starting cut and its progress."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.cuts: Cuts = {}
        self.got: Cuts = {}
        """For each publisher, the last number that was delivered."""
        self.is_active = False

    def last(self) -> Cuts:
        """Return the last number of each publisher, which is the ending cut if the subscription ends now."""
        return {publisher: cut - 1 for publisher, cut in self.cuts.items()} | self.got


class Offer:
    """An advertisement in the state of its client."""

    def __init__(self, name: str, pattern: Filter) -> None:
        self.name = name
        self.filter = pattern
        self.is_stable = False
        self.last = 0
        """The number of the last event that may rely on the advertisement, after it is withdrawn."""
