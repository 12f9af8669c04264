"""How far the application of one subscription has come in the stream of the network.

While history is read, events come in the order of positions. So the position of the last event that was taken is where
another subscription can go on. What is published comes in causal order, which is not that of positions: there only the
network can say up to where nothing is missing, and its word counts as soon as all that was delivered before is taken.
"""

from gapless.events import Event
from gapless.positions import Position

__all__ = ["Progress"]


class Progress:
    """Of one subscription."""

    def __init__(self) -> None:
        self.position: Position | None = None
        """The application has taken everything up to here; None if the subscription has read no history."""
        self._reached: Position | None = None
        """Everything up to here was delivered, as the network says."""
        self._is_replay = False

    def begin(self, since: Position | None) -> None:
        """It reads history, from this position on."""
        self.position, self._is_replay = since, True

    def reach(self, position: Position, *, is_live: bool) -> None:
        """Everything up to this position was delivered; with `is_live`, what is published follows."""
        self._reached = position
        self._is_replay = self._is_replay and not is_live

    def take(self, last: Event) -> None:
        """The application has taken events, up to this one."""
        if self._is_replay:
            self._advance(last.position)

    def settle(self) -> None:
        """The application has taken all that was delivered, and knows of all that is missing."""
        if self._reached is not None:
            self._advance(self._reached)

    def _advance(self, position: Position) -> None:
        if self.position is None or position > self.position:
            self.position = position
