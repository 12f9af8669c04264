"""The events that a node has received, so that none is processed twice: the paper's `isReceived`.

Only the latest events are remembered one by one. When one of them is forgotten, it and all earlier ones of the same
publisher count as received. So memory is bounded by the remembered events and one number for each publisher. Errors are
on the safe side: an event that arrives very late is dropped, and none is processed twice.

A broker also remembers whether it forwarded an event: one that it recovered by gossip may still arrive along the tree,
and the brokers behind it wait for it there.
"""

from collections.abc import Iterable

from gapless_papers.protocols.epidemic.messages import EventId

__all__ = ["Received"]


class Received:
    """The events that a node has received."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._passed: dict[EventId, bool] = {}
        self._floors: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._passed)

    def __contains__(self, event: EventId) -> bool:
        return event in self._passed or event[1] <= self._floors.get(event[0], 0)

    def lacking(self, events: Iterable[EventId]) -> tuple[EventId, ...]:
        """Return the events that this node has not received. Most are received, so these are checked first."""
        passed, floors = self._passed, self._floors
        doubtful = [event for event in events if event not in passed]
        return tuple(event for event in doubtful if event[1] > floors.get(event[0], 0))

    def enter(self, event: EventId) -> bool:
        """Record the event; return whether it was new."""
        if event in self:
            return False
        self._passed[event] = False
        if len(self._passed) > self._most:
            publisher, seq = oldest = next(iter(self._passed))
            del self._passed[oldest]
            self._floors[publisher] = max(seq, self._floors.get(publisher, 0))
        return True

    def pass_on(self, event: EventId) -> bool:
        """Record that the event is forwarded; return whether this is the first time. Forgotten events count as
        forwarded."""
        if self._passed.get(event, True):
            return False
        self._passed[event] = True
        return True
