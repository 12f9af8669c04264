"""Where one subscription starts, for each publisher: a number that is fixed once, and what is kept until it is.

Who fixes it, and by whose word, differs on the bare tree (`starting_cut`) and on a graph (`path_start`).
"""

from gapless.events import Event
from gapless.protocols.locaps.messages import Cuts

__all__ = ["Starts"]


class Starts:
    """What one subscription knows of where it starts."""

    def __init__(self) -> None:
        self.starts: Cuts = {}
        self._buffers: dict[str, list[Event]] = {}

    @property
    def buffered(self) -> int:
        """Events that wait for the last partial marker."""
        return sum(map(len, self._buffers.values()))

    def admits(self, event: Event) -> bool:
        """Whether a matching event is delivered now; keep it if it may turn out to stand after the start."""
        start = self.starts.get(event.publisher)
        if start is not None:
            return event.seq >= start
        if event.publisher in self._buffers:
            self._buffers[event.publisher].append(event)
        return False

    def release(self, publisher: str) -> list[Event]:
        """The start has been fixed: what was kept for it, from the start on."""
        return [event for event in self._buffers.pop(publisher, ()) if event.seq >= self.starts[publisher]]

    def forget(self, publisher: str) -> None:
        """The publisher has left: what was not complete will never be. A start that is fixed stays."""
        self._buffers.pop(publisher, None)

    def _fix(self, cuts: Cuts) -> Cuts:
        """Those of the starts that were not fixed before."""
        news = {publisher: cut for publisher, cut in cuts.items() if publisher not in self.starts}
        self.starts.update(news)
        return news
