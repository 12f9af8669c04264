"""Computes the position up to which one subscription's application has taken all events.

While history is read, events arrive in the order of positions. So another subscription can continue from the position
of the last taken event. Live events arrive in causal order, which differs from the order of positions. Only the network
knows up to which position nothing is missing. Its report takes effect as soon as all earlier deliveries are taken.
"""

from gapless.events import Event
from gapless.positions import Position

__all__ = ["Progress"]


class Progress:
    """The position of one subscription's application."""

    def __init__(self) -> None:
        self._position: Position | None = None
        self._last: Event | None = None
        """The last event that the application took from history."""
        self._reached: Position | None = None
        """The position up to which everything was delivered, as the network last reported."""
        self._is_replay = False

    def begin(self, since: Position | None) -> None:
        """Record that the subscription reads history, beginning after this position."""
        self._position, self._last, self._is_replay = since, None, True

    def reach(self, position: Position, *, is_live: bool) -> None:
        """Record that everything up to this position was delivered. With `is_live`, history ends there and live events
        follow.
        """
        self._reached = position
        self._is_replay = self._is_replay and not is_live

    def take(self, last: Event) -> None:
        """Record that the application has taken all events up to this one."""
        if self._is_replay:
            self._last = last

    def settle(self) -> None:
        """Record that the application has taken all deliveries and received all reports of missing events."""
        if self._reached is not None:
            self._advance(self._reached)

    @property
    def position(self) -> Position | None:
        """Return the position up to which the application has taken everything, or None if the subscription never had
        one.
        """
        if self._last is not None:
            self._advance(self._last.position)
            self._last = None
        return self._position

    def _advance(self, position: Position) -> None:
        if self._position is None or position > self._position:
            self._position = position
