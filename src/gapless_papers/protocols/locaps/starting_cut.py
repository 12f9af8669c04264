"""The starting cut of one subscription, at the subscriber's broker.

For each publisher the cut is one number: earlier events are omitted, and all from it on are delivered. It is fixed
once, by whichever is complete first:

- the publisher's own marker, or
- partial markers of all f + 1 brokers of one pivot's set. The start is the **largest** of their numbers, because each
  of them guarantees only the events that it forwarded itself.

If the publisher's broker is among the f + 1, fewer partial markers arrive, and its own marker fixes the start.

From the first partial marker of a publisher until its cut is fixed, its events are buffered; then they are delivered
from the start on. The paper keeps a buffer for each partial pivot and waits until every one contains an event, to
compare them: an event shows the state of a path. Numbers show it without waiting. On a tree each event passes all
partial pivots, so the buffers would be nested, and the first contains the others. (Without failures no event in it is
ever at or after the start: FIFO links deliver it before the last partial marker because it passed that broker before. A
buffer is needed only for events that arrive by another path.)
"""

from collections.abc import Collection, Iterable

from gapless.events import Event
from gapless_papers.protocols.locaps.messages import Cuts
from gapless_papers.protocols.locaps.starts import Starts

__all__ = ["StartingCut"]


class StartingCut(Starts):
    """The starting cut of one subscription, as far as it is known."""

    def __init__(self, partial_markers: int, switched_off: Collection[str] = ()) -> None:
        super().__init__(switched_off)
        self._wanted = partial_markers
        self._partial: dict[str, dict[str, Cuts]] = {}
        """By publisher and pivot: the number sent by each broker of the pivot's set."""

    def take_partial(self, pivot: str, broker: str, cuts: Cuts) -> Cuts:
        """Process the marker of one broker of a pivot's set; return the starts that it completes."""
        complete: Cuts = {}
        for publisher, cut in cuts.items():
            if publisher in self.starts:
                continue
            self._buffers.setdefault(publisher, [])
            numbers = self._partial.setdefault(publisher, {}).setdefault(pivot, {})
            numbers[broker] = cut
            if len(numbers) == self._wanted:
                complete[publisher] = max(numbers.values())
        return self._fix_by_partial(complete)

    def release(self, publishers: Iterable[str]) -> list[Event]:
        """Return the buffered events at or after these starts, which have just been fixed."""
        publishers = list(publishers)
        for publisher in publishers:
            self._partial.pop(publisher, None)
        return super().release(publishers)

    def forget(self, publisher: str) -> None:
        """Drop the incomplete markers of a publisher that has left. A start that is fixed stays."""
        self._partial.pop(publisher, None)
        super().forget(publisher)
