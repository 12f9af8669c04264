"""What a node has had already, so that nothing is handled twice: the paper's `isReceived`.

Only the latest events are remembered one by one. When one of them is forgotten, it and everything before it of the same
publisher counts as had. So the memory is bounded, by what is remembered and one number for each publisher, and its
error is on the safe side: an event that comes very late is dropped, none is ever taken for new a second time.

A broker also remembers whether it passed an event on: one that it recovered by gossip may still come along the tree
after that, and those behind it wait for it there.
"""

from collections.abc import Iterable

from gapless_papers.protocols.epidemic.messages import EventId

__all__ = ["Received"]


class Received:
    """The events that a node has had."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._passed: dict[EventId, bool] = {}
        self._floors: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._passed)

    def __contains__(self, event: EventId) -> bool:
        return event in self._passed or event[1] <= self._floors.get(event[0], 0)

    def lacking(self, events: Iterable[EventId]) -> tuple[EventId, ...]:
        """Those of the events that are not here; most are, so what is remembered is asked first."""
        passed, floors = self._passed, self._floors
        doubtful = [event for event in events if event not in passed]
        return tuple(event for event in doubtful if event[1] > floors.get(event[0], 0))

    def enter(self, event: EventId) -> bool:
        """Note the event; was it new?"""
        if event in self:
            return False
        self._passed[event] = False
        if len(self._passed) > self._most:
            publisher, seq = oldest = next(iter(self._passed))
            del self._passed[oldest]
            self._floors[publisher] = max(seq, self._floors.get(publisher, 0))
        return True

    def pass_on(self, event: EventId) -> bool:
        """Note that the event is passed on; was it not yet? What is not remembered counts as passed."""
        if self._passed.get(event, True):
            return False
        self._passed[event] = True
        return True
