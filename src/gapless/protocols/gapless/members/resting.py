"""How long a broker stays away that was excluded again and again.

Its smallest story: b1 no longer hears b0, and b0 hears b1 well. b0 is excluded, learns it, and returns at once; b1
still does not hear it, so the hand-over stands still until b0 is excluded again; and so on, a life every two seconds,
while nothing gets through. With each short life it stays away for twice as long, and the others go on meanwhile.
"""

__all__ = ["Rests"]

SHORT_US = 10_000_000
"""A shorter life counts as a failure."""
FREE = 1
"""So many short lives are nothing unusual: a broker may return while others are in a hand-over."""
FIRST_US = 2_000_000
MOST_US = 30_000_000


class Rests:
    """One broker's memory of its short lives."""

    def __init__(self) -> None:
        self._began = 0
        self._short = 0

    def begin(self, now: int) -> None:
        """A later life begins."""
        self._began = now

    def end(self, now: int) -> int:
        """A life was excluded: how long to stay away."""
        is_first = self._began == 0
        self._short = 0 if is_first or now - self._began >= SHORT_US else self._short + 1
        if self._short <= FREE:
            return 0
        return min(MOST_US, FIRST_US << min(self._short - FREE - 1, 10))
