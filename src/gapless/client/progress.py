"""How far the application of one subscription has come in the stream of the network.

While history is read, events come in the order of positions. So the position of the last event that was taken is where
another subscription can go on. Live events come in causal order, which is not that of positions: there only the
network knows up to where nothing is missing, and its report counts as soon as all earlier deliveries are taken.
"""

from gapless.events import Event
from gapless.positions import Position

__all__ = ["Progress"]


class Progress:
    """Of one subscription."""

    def __init__(self) -> None:
        self._position: Position | None = None
        self._last: Event | None = None
        """The last event taken, while history is read."""
        self._reached: Position | None = None
        """Everything up to here was delivered, as the network says."""
        self._is_replay = False

    def begin(self, since: Position | None) -> None:
        """It reads history, from this position on."""
        self._position, self._last, self._is_replay = since, None, True

    def reach(self, position: Position, *, is_live: bool) -> None:
        """Everything up to this position was delivered; with `is_live`, what is published follows."""
        self._reached = position
        self._is_replay = self._is_replay and not is_live

    def take(self, last: Event) -> None:
        """The application has taken events, up to this one."""
        if self._is_replay:
            self._last = last

    def settle(self) -> None:
        """The application has taken all that was delivered, and knows of all that is missing."""
        if self._reached is not None:
            self._advance(self._reached)

    @property
    def position(self) -> Position | None:
        """The application has taken everything up to here; None if the subscription has read no history."""
        if self._last is not None:
            self._advance(self._last.position)
            self._last = None
        return self._position

    def _advance(self, position: Position) -> None:
        if self._position is None or position > self._position:
            self._position = position
