"""The starting cut of one subscription, at the subscriber's broker.

For each publisher the cut is one number: what comes before it is left out, everything from it on is delivered. It is
fixed once and for all, by whichever is complete first:

- the publisher's own marker, or
- partial markers of all f + 1 brokers of one pivot's set. The start is the **largest** of their numbers, because each
  of them vouches only for what it passed on itself.

Where the publisher's broker stands among the f + 1, fewer partial markers come, and the marker from there settles it.

From the first partial marker of a publisher until its cut is fixed its events are kept, and delivered from the start
on. The paper keeps a buffer for each partial pivot and waits until every one holds an event, to compare them: an
event shows where a path stands. Numbers show it without waiting, and on a tree each event passes all partial pivots,
so the buffers would be nested and the first contains the others. (Without failures nothing in it is ever at or after
the start: FIFO links bring it before the last partial marker because it passed that broker before. What a buffer is
for is events that come by another way.)
"""

from collections.abc import Collection, Iterable

from gapless.events import Event
from gapless_papers.protocols.locaps.messages import Cuts
from gapless_papers.protocols.locaps.starts import Starts

__all__ = ["StartingCut"]


class StartingCut(Starts):
    """What one subscription knows of where it starts."""

    def __init__(self, partial_markers: int, switched_off: Collection[str] = ()) -> None:
        super().__init__(switched_off)
        self._wanted = partial_markers
        self._partial: dict[str, dict[str, Cuts]] = {}
        """By publisher and pivot: the number that each broker of the pivot's set has sent."""

    def take_partial(self, pivot: str, broker: str, cuts: Cuts) -> Cuts:
        """The word of one broker of a pivot's set; returns the starts that are complete with it."""
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
        """These starts have been fixed: what was kept for them, from the starts on."""
        publishers = list(publishers)
        for publisher in publishers:
            self._partial.pop(publisher, None)
        return super().release(publishers)

    def forget(self, publisher: str) -> None:
        """The publisher has left: what was not complete will never be. A start that is fixed stays."""
        self._partial.pop(publisher, None)
        super().forget(publisher)
