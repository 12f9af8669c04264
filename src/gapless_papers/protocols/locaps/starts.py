"""Where one subscription starts, for each publisher: a number that is fixed once, and the events buffered until then.

How it is fixed differs on the bare tree (`starting_cut`) and on a graph (`path_start`).

**Numbers** (repair `numbers`). Partial markers carry numbers, so the last of them fixes the start. The paper's carry
none: it waits until an event is in the buffer of each partial pivot and starts with the latest of them (Algorithm 2,
lines 37 to 42). A partial pivot carries the events published from its number on, so that is the first event from the
largest number on; and the events buffered before the last marker arrived are omitted, except for the latest.

**Own markers** (repair `own-markers`). Each publisher starts with its own marker, or with those of partial pivots. In
the paper one full marker suffices for all (end of V-B): other publishers then start with their next event to arrive.
"""

from collections.abc import Collection, Iterable
from operator import itemgetter

from gapless.events import Event
from gapless_papers.protocols.locaps.messages import Cuts

__all__ = ["Starts"]


class Starts:
    """The starting cut of one subscription, as far as it is known."""

    def __init__(self, switched_off: Collection[str] = ()) -> None:
        self.starts: Cuts = {}
        self._buffers: dict[str, list[tuple[int, Event]]] = {}
        """The buffered events of each publisher, with their places in the order of arrival."""
        self._kept = 0
        self._numbers_count = "numbers" not in switched_off
        self._each_marks_itself = "own-markers" not in switched_off
        self._any_marker = False
        self._awaited: Cuts = {}
        """Publishers that start with their next event, from this number on."""

    @property
    def buffered(self) -> int:
        """Return how many events wait for the last partial marker."""
        return sum(map(len, self._buffers.values()))

    def take_marker(self, cuts: Cuts) -> Cuts:
        """Process the publishers' own marker; return the starts that it fixes."""
        self._any_marker = True
        return self._fix(cuts)

    def take_event(self, event: Event) -> Cuts:
        """Return the start that a matching event fixes according to the paper; with the repairs there is none."""
        least = self._awaited.get(event.publisher)
        if least is None and self._any_marker and not self._each_marks_itself:
            least = 1
        return {} if least is None or event.seq < least else self._fix({event.publisher: event.seq})

    def admits(self, event: Event) -> bool:
        """Return whether to deliver a matching event now; buffer it if it may be after the start."""
        start = self.starts.get(event.publisher)
        if start is not None:
            return event.seq >= start
        if event.publisher in self._buffers:
            self._kept += 1
            self._buffers[event.publisher].append((self._kept, event))
        return False

    def release(self, publishers: Iterable[str]) -> list[Event]:
        """Return the buffered events at or after these starts, which have just been fixed, in order of arrival.

        The smallest counterexample to any other order: q:1 and p's answer to it have arrived when the last partial
        marker fixes the starts of both. Grouped by publisher, the answer would be delivered first.
        """
        kept = [item for publisher in publishers for item in self._buffers.pop(publisher, ())]
        return [event for _, event in sorted(kept, key=itemgetter(0)) if event.seq >= self.starts[event.publisher]]

    def forget(self, publisher: str) -> None:
        """Drop the incomplete markers of a publisher that has left. A start that is fixed stays."""
        self._buffers.pop(publisher, None)
        self._awaited.pop(publisher, None)

    def _fix_by_partial(self, cuts: Cuts) -> Cuts:
        """Fix the starts after all partial pivots of these publishers have sent markers, with these as their largest
        numbers."""
        if self._numbers_count:
            return self._fix(cuts)
        latest: Cuts = {}
        for publisher, cut in cuts.items():
            kept = [event.seq for _, event in self._buffers.get(publisher, ()) if event.seq >= cut]
            (latest if kept else self._awaited)[publisher] = max(kept, default=cut)
        return self._fix(latest)

    def _fix(self, cuts: Cuts) -> Cuts:
        """Fix those of the starts that were not fixed before, and return them."""
        news = {publisher: cut for publisher, cut in cuts.items() if publisher not in self.starts}
        self.starts.update(news)
        return news
