"""Where one subscription starts, for each publisher: a number that is fixed once, and what is kept until it is.

Who fixes it, and by whose word, differs on the bare tree (`starting_cut`) and on a graph (`path_start`).

**Numbers** (repair `numbers`). Partial markers carry numbers, so the last of them fixes the start. The paper's carry
none: it waits until an event stands in the buffer of each partial pivot and starts with the latest of them (Algorithm
2, lines 37 to 42). A partial pivot carries what is published from its number on, so that is the first event from the
largest number on; and what was kept before the last marker came is left out, except for the latest.

**Own markers** (repair `own-markers`). Each publisher starts with its own marker, or with those of partial pivots. The
paper has it that one full marker suffices for all (end of V-B): others then start with whatever of theirs comes first.
"""

from collections.abc import Collection, Iterable
from operator import itemgetter

from gapless.events import Event
from gapless_papers.protocols.locaps.messages import Cuts

__all__ = ["Starts"]


class Starts:
    """What one subscription knows of where it starts."""

    def __init__(self, switched_off: Collection[str] = ()) -> None:
        self.starts: Cuts = {}
        self._buffers: dict[str, list[tuple[int, Event]]] = {}
        """What was kept of each publisher, with its place among all that was kept."""
        self._kept = 0
        self._numbers_count = "numbers" not in switched_off
        self._each_marks_itself = "own-markers" not in switched_off
        self._any_marker = False
        self._awaited: Cuts = {}
        """Publishers that start with their next event, from this number on."""

    @property
    def buffered(self) -> int:
        """Events that wait for the last partial marker."""
        return sum(map(len, self._buffers.values()))

    def take_marker(self, cuts: Cuts) -> Cuts:
        """The publishers' own word; returns the starts that it fixes."""
        self._any_marker = True
        return self._fix(cuts)

    def take_event(self, event: Event) -> Cuts:
        """The start that a matching event fixes, as the paper has it; with the repairs none does."""
        least = self._awaited.get(event.publisher)
        if least is None and self._any_marker and not self._each_marks_itself:
            least = 1
        return {} if least is None or event.seq < least else self._fix({event.publisher: event.seq})

    def admits(self, event: Event) -> bool:
        """Whether a matching event is delivered now; keep it if it may turn out to stand after the start."""
        start = self.starts.get(event.publisher)
        if start is not None:
            return event.seq >= start
        if event.publisher in self._buffers:
            self._kept += 1
            self._buffers[event.publisher].append((self._kept, event))
        return False

    def release(self, publishers: Iterable[str]) -> list[Event]:
        """These starts have been fixed: what was kept for them, from the starts on, in the order in which it came.

        The smallest story: q:1 and p's answer to it have come when the last partial marker fixes the starts of both. By
        publishers, the answer would be delivered first.
        """
        kept = [item for publisher in publishers for item in self._buffers.pop(publisher, ())]
        return [event for _, event in sorted(kept, key=itemgetter(0)) if event.seq >= self.starts[event.publisher]]

    def forget(self, publisher: str) -> None:
        """The publisher has left: what was not complete will never be. A start that is fixed stays."""
        self._buffers.pop(publisher, None)
        self._awaited.pop(publisher, None)

    def _fix_by_partial(self, cuts: Cuts) -> Cuts:
        """All partial pivots of these publishers have spoken, with these as their largest numbers."""
        if self._numbers_count:
            return self._fix(cuts)
        latest: Cuts = {}
        for publisher, cut in cuts.items():
            kept = [event.seq for _, event in self._buffers.get(publisher, ()) if event.seq >= cut]
            (latest if kept else self._awaited)[publisher] = max(kept, default=cut)
        return self._fix(latest)

    def _fix(self, cuts: Cuts) -> Cuts:
        """Those of the starts that were not fixed before."""
        news = {publisher: cut for publisher, cut in cuts.items() if publisher not in self.starts}
        self.starts.update(news)
        return news
