"""The position of one subscription's application in the stream of the network.

While history is read, events arrive in the order of positions. So the position of the last taken event is where another
subscription can continue. Live events arrive in causal order, which is not that of positions: only the network knows up
to where nothing is missing, and its report takes effect as soon as all earlier deliveries are taken.
"""

from gapless.events import Event
from gapless.positions import Position

__all__ = ["Progress"]


class Progress:
    """The progress of one subscription."""

    def __init__(self) -> None:
        self._position: Position | None = None
        self._last: Event | None = None
        """The last event taken, while history is read."""
        self._reached: Position | None = None
        """The position up to which everything was delivered, as reported by the network."""
        self._is_replay = False

    def begin(self, since: Position | None) -> None:
        """Note that it reads history, from this position on."""
        self._position, self._last, self._is_replay = since, None, True

    def reach(self, position: Position, *, is_live: bool) -> None:
        """Note that everything up to this position was delivered; with `is_live`, live events follow."""
        self._reached = position
        self._is_replay = self._is_replay and not is_live

    def take(self, last: Event) -> None:
        """Note that the application has taken events, up to this one."""
        if self._is_replay:
            self._last = last

    def settle(self) -> None:
        """Note that the application has taken all deliveries, and received all reports of missing events."""
        if self._reached is not None:
            self._advance(self._reached)

    @property
    def position(self) -> Position | None:
        """Return the position up to which the application has taken everything; None if the subscription has read no
        history."""
        if self._last is not None:
            self._advance(self._last.position)
            self._last = None
        return self._position

    def _advance(self, position: Position) -> None:
        if self._position is None or position > self._position:
            self._position = position
