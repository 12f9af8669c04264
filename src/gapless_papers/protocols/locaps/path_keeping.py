"""Replication of a publisher's stream: events are released when f other brokers have a copy.

The events and markers that a publisher's broker sends for it are one stream. It is numbered in the order of acceptance
and sent to the broker's *backups*, the f brokers nearest to it. The broker releases it in the same order; an event
waits until all live backups have answered. So if any client received an event, a live broker can give it to the others,
together with everything released before it. A marker need not wait for the backups: if it is lost with its broker,
nothing was released after it, and the successor gives the same cut.

The upper half of a number is the publisher's *epoch*: how many of its brokers have failed. Settled entries are dropped.
"""

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

from gapless.overlay import Graph, Overlay
from gapless_papers.protocols.locaps.messages import (
    AskBackup,
    BackupCopy,
    Content,
    Due,
    Keep,
    Kept,
    Publication,
    Takeover,
)

__all__ = ["EPOCH", "Safekeeping", "Streams", "backups_of"]

EPOCH = 1 << 32
"""The distance between the numbers of two epochs."""


def backups_of(overlay: Overlay, broker: str, f: int) -> tuple[str, ...]:
    """Return the backups of a broker: those with the shortest links to it."""
    tree = overlay.tree if isinstance(overlay, Graph) and overlay.bypass else overlay
    return tree.within(broker, f + 1)[:f]


class _Item:
    """An entry that is not released yet; `missing` are the backups that have not answered."""

    def __init__(self, number: int, content: Content, ends: tuple[str, ...], missing: dict[str, None]) -> None:
        self.number = number
        self.content = content
        self.ends = ends
        self.missing = missing


class _Stream:
    """The stream of a publisher of this broker."""

    def __init__(self, number: int, seq: int) -> None:
        self.number = number
        self.seq = seq
        self.queue: deque[_Item] = deque()
        self.seqs: dict[int, int] = {}
        """By number in the stream, the publisher's own numbers of the unsettled events."""


class Streams:
    """The streams of this broker's own publishers."""

    def __init__(
        self, backups: tuple[str, ...], dead: dict[str, None], past: Callable[[], Due],
        send: Callable[[str, Any], None], forward: Callable[[str, int, tuple[str, ...], Content], None],
    ) -> None:  # fmt: skip
        self._backups = backups
        self._dead = dead
        self._past = past
        self._send = send
        self._forward = forward
        self._streams: dict[str, _Stream] = {}

    def __contains__(self, publisher: object) -> bool:
        return publisher in self._streams

    def begin(self, publisher: str, number: int = 0, seq: int = 0) -> None:
        """Start the stream of a publisher that is attached here, after this number and event."""
        if publisher not in self._streams:
            self._streams[publisher] = _Stream(number, seq)

    def accepted(self, publisher: str) -> int:
        """Return the number of the publisher's last accepted event."""
        return self._streams[publisher].seq

    def epoch(self, publisher: str) -> int:
        """Return how many brokers of the publisher have failed."""
        return self._streams[publisher].number // EPOCH

    def is_pending(self, publisher: str) -> bool:
        """Return whether some entry of the publisher is not released yet."""
        return bool(self._streams[publisher].queue)

    def put(self, publisher: str, content: Content, ends: Iterable[str]) -> None:
        """Accept an event or a marker."""
        stream = self._streams[publisher]
        stream.number += 1
        alive = [name for name in self._backups if name not in self._dead]
        missing = {}
        if isinstance(content, Publication):
            stream.seq = content.event.seq
            stream.seqs[stream.number] = stream.seq
            missing = dict.fromkeys(alive)
        stream.queue.append(_Item(stream.number, content, tuple(ends), missing))
        if alive:
            keep = Keep(publisher, stream.number, content, self._past())
            for name in alive:
                self._send(name, keep)
        self._release(publisher)

    def receive_kept(self, backup: str, message: Kept) -> None:
        """Record that a backup has the stream up to a number, and release the entries that waited for it."""
        stream = self._streams.get(message.publisher)
        if stream is not None:
            for item in stream.queue:
                if item.number <= message.number:
                    item.missing.pop(backup, None)
            self._release(message.publisher)

    def exclude(self, broker: str) -> None:
        """Stop waiting for a backup that has failed."""
        for publisher, stream in list(self._streams.items()):
            for item in stream.queue:
                item.missing.pop(broker, None)
            self._release(publisher)

    def settled(self, publisher: str, number: int) -> int:
        """Drop the events settled up to this number of the stream; return the last of them, or 0."""
        seqs = self._streams[publisher].seqs
        through = [(own, seq) for own, seq in seqs.items() if own <= number]
        for own, _ in through:
            del seqs[own]
        return through[-1][1] if through else 0

    def _release(self, publisher: str) -> None:
        queue = self._streams[publisher].queue
        while queue and not queue[0].missing:
            item = queue.popleft()
            self._forward(publisher, item.number, item.ends, item.content)


class _Kept:
    """The copy of the stream of one publisher of another broker."""

    def __init__(self) -> None:
        self.last = 0
        self.items: dict[int, tuple[Content, Due]] = {}


class Safekeeping:
    """The streams that this broker keeps as a backup of others."""

    def __init__(self, settled: Callable[[str], int]) -> None:
        self._settled = settled
        self._kept: dict[tuple[str, str], _Kept] = {}

    @property
    def size(self) -> int:
        """Return how many entries this backup keeps."""
        return sum(len(kept.items) for kept in self._kept.values())

    def keep(self, broker: str, message: Keep) -> Kept:
        """Store an entry of another broker's publisher, and return the confirmation."""
        kept = self._kept.setdefault((broker, message.publisher), _Kept())
        kept.items[message.number] = (message.content, message.due)
        if isinstance(message.content, Publication):
            kept.last = max(kept.last, message.content.event.seq)
        elif isinstance(message.content, Takeover):
            kept.last = max(kept.last, message.content.last)
        self._trim(message.publisher, kept)
        return Kept(message.publisher, message.number)

    def copy(self, ask: AskBackup) -> BackupCopy:
        """Return the copy of the stream of a publisher whose broker has failed."""
        kept = self._kept.get((ask.broker, ask.publisher), _Kept())
        self._trim(ask.publisher, kept)
        items = [(number, content, due) for number, (content, due) in kept.items.items()]
        return BackupCopy(ask.broker, ask.publisher, kept.last, items)

    def _trim(self, publisher: str, kept: _Kept) -> None:
        through = self._settled(publisher)
        for number in [number for number in kept.items if number <= through]:
            del kept.items[number]
