"""Putting the logs of a unit's members into one causal order.

Each member brings the events it processed and nobody has proved delivered everywhere, in its own order, and for
each whether it *entered* the unit there. The backups of excluded brokers bring the publications that those had
admitted. An event comes after

- the earlier ones of its publisher,
- where it entered through a member: all that stood before it in that member's log,
- where it was admitted by an excluded broker: the admissions before it, and all that this broker had processed.

Each rule only says "was there before it entered", so in real time; hence there is no cycle, whatever the logs.
It is enough, because whoever published an effect had the cause delivered by a broker that had processed it, and
nothing is forgotten before all its causes are (see `waves`), so the chain of entries is never broken.
"""

from collections import deque
from collections.abc import Iterable, Sequence

from gapless.events import Event
from gapless.protocols.gapless.messages import Admission, LogEntry

__all__ = ["merge_logs"]


class _Log:
    """One ordered list; `reached` counts the events at its front that are out already."""

    def __init__(self, ids: list[tuple[str, int]]) -> None:
        self.ids = ids
        self.reached = 0

    def is_out_before(self, position: int, out: set[tuple[str, int]]) -> bool:
        while self.reached < position and self.ids[self.reached] in out:
            self.reached += 1
        return self.reached >= position


def merge_logs(logs: Sequence[Sequence[LogEntry]], estates: Iterable[Sequence[Admission]]) -> list[Event]:
    """All events of the logs and estates, each once, causes first; the same for the same input."""
    events: dict[tuple[str, int], Event] = {}
    constraints: dict[tuple[str, int], list[tuple[_Log, int]]] = {}
    after: dict[tuple[str, int], list[dict[str, int]]] = {}
    for entries in logs:
        log = _Log([(entry.event.publisher, entry.event.seq) for entry in entries])
        for position, entry in enumerate(entries):
            events.setdefault(log.ids[position], entry.event)
            if entry.entered:
                constraints.setdefault(log.ids[position], []).append((log, position))
            if entry.after is not None:
                after.setdefault(log.ids[position], []).append(entry.after)
    for admissions in estates:
        log = _Log([(item.event.publisher, item.event.seq) for item in admissions])
        for position, item in enumerate(admissions):
            events.setdefault(log.ids[position], item.event)
            constraints.setdefault(log.ids[position], []).append((log, position))
            after.setdefault(log.ids[position], []).append(item.after)

    queues: dict[str, deque[int]] = {}
    for publisher, seq in sorted(events):
        queues.setdefault(publisher, deque()).append(seq)

    def is_free(name: tuple[str, int]) -> bool:
        if any(not log.is_out_before(position, out) for log, position in constraints.get(name, ())):
            return False
        for known in after.get(name, ()):
            for publisher, queue in queues.items():
                if publisher != name[0] and queue[0] <= known.get(publisher, 0):
                    return False
        return True

    out: set[tuple[str, int]] = set()
    ordered: list[Event] = []
    while queues:
        before = len(ordered)
        for publisher in list(queues):
            queue = queues[publisher]
            while queue and is_free((publisher, queue[0])):
                name = (publisher, queue.popleft())
                out.add(name)
                ordered.append(events[name])
                if not queue:
                    del queues[publisher]
        assert len(ordered) > before, "the logs contradict each other"
    return ordered
