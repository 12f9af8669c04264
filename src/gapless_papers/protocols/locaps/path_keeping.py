"""What survives its broker: events are let out when f others hold them.

What a publisher's broker says for it, events and markers, is one stream. It is numbered in the order in which it was
accepted, sent to the broker's *backups*, the f brokers nearest to it, and let out in the same order, events when all
backups that live have answered. So whatever event anyone was given, someone who lives can give it to the rest, and all
that was let out before it. A marker need not wait for the backups: if it is lost with its broker, nothing was let out
behind it, and whoever takes over gives the same cut.

The upper half of a number is the publisher's *epoch*: how many brokers it has lost. What has come through is forgotten.
"""

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

from gapless.overlay import Graph, Overlay
from gapless_papers.protocols.locaps.messages import AskEstate, Content, Due, Estate, Keep, Kept, Publication, Takeover

__all__ = ["EPOCH", "Safekeeping", "Streams", "backups_of"]

EPOCH = 1 << 32
"""Numbers in one epoch."""


def backups_of(overlay: Overlay, broker: str, f: int) -> tuple[str, ...]:
    """The brokers that hold what a broker lets out: those with the shortest links to it."""
    tree = overlay.tree if isinstance(overlay, Graph) and overlay.bypass else overlay
    return tree.within(broker, f + 1)[:f]


class _Item:
    """Something that is not let out yet; `missing` are the backups that have not answered."""

    def __init__(self, number: int, content: Content, ends: tuple[str, ...], missing: dict[str, None]) -> None:
        self.number = number
        self.content = content
        self.ends = ends
        self.missing = missing


class _Stream:
    """What a publisher of this broker says."""

    def __init__(self, number: int, seq: int) -> None:
        self.number = number
        self.seq = seq
        self.queue: deque[_Item] = deque()
        self.seqs: dict[int, int] = {}
        """Of events that have not come through, by their numbers."""


class Streams:
    """The streams of this broker's own publishers."""

    def __init__(
        self, backups: tuple[str, ...], dead: dict[str, None], past: Callable[[], Due],
        send: Callable[[str, Any], None], let_out: Callable[[str, int, tuple[str, ...], Content], None],
    ) -> None:  # fmt: skip
        self._backups = backups
        self._dead = dead
        self._past = past
        self._send = send
        self._let_out = let_out
        self._streams: dict[str, _Stream] = {}

    def __contains__(self, publisher: object) -> bool:
        return publisher in self._streams

    def begin(self, publisher: str, number: int = 0, seq: int = 0) -> None:
        """A publisher is here, with this number and event behind it."""
        if publisher not in self._streams:
            self._streams[publisher] = _Stream(number, seq)

    def accepted(self, publisher: str) -> int:
        """The last event of the publisher that was accepted."""
        return self._streams[publisher].seq

    def epoch(self, publisher: str) -> int:
        """How many brokers the publisher has lost."""
        return self._streams[publisher].number // EPOCH

    def is_pending(self, publisher: str) -> bool:
        """Whether something of the publisher is not let out yet."""
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

    def hear_kept(self, backup: str, message: Kept) -> None:
        """A backup holds what it was sent up to a number."""
        stream = self._streams.get(message.publisher)
        if stream is not None:
            for item in stream.queue:
                if item.number <= message.number:
                    item.missing.pop(backup, None)
            self._release(message.publisher)

    def bury(self, broker: str) -> None:
        """Nobody waits for a backup that has failed."""
        for publisher, stream in list(self._streams.items()):
            for item in stream.queue:
                item.missing.pop(broker, None)
            self._release(publisher)

    def settled(self, publisher: str, number: int) -> int:
        """The last event that has come through with everything up to the number; 0 if none has lately."""
        seqs = self._streams[publisher].seqs
        through = [(own, seq) for own, seq in seqs.items() if own <= number]
        for own, _ in through:
            del seqs[own]
        return through[-1][1] if through else 0

    def _release(self, publisher: str) -> None:
        queue = self._streams[publisher].queue
        while queue and not queue[0].missing:
            item = queue.popleft()
            self._let_out(publisher, item.number, item.ends, item.content)


class _Kept:
    """What is held of one publisher of another broker."""

    def __init__(self) -> None:
        self.last = 0
        self.items: dict[int, tuple[Content, Due]] = {}


class Safekeeping:
    """What this broker holds as a backup of others."""

    def __init__(self, settled: Callable[[str], int]) -> None:
        self._settled = settled
        self._kept: dict[tuple[str, str], _Kept] = {}

    @property
    def size(self) -> int:
        """How much it holds."""
        return sum(len(kept.items) for kept in self._kept.values())

    def keep(self, broker: str, message: Keep) -> Kept:
        """Hold something."""
        kept = self._kept.setdefault((broker, message.publisher), _Kept())
        kept.items[message.number] = (message.content, message.due)
        if isinstance(message.content, Publication):
            kept.last = max(kept.last, message.content.event.seq)
        elif isinstance(message.content, Takeover):
            kept.last = max(kept.last, message.content.last)
        self._trim(message.publisher, kept)
        return Kept(message.publisher, message.number)

    def estate(self, ask: AskEstate) -> Estate:
        """What is held of a publisher of a broker that has failed."""
        kept = self._kept.get((ask.broker, ask.publisher), _Kept())
        self._trim(ask.publisher, kept)
        items = [(number, content, due) for number, (content, due) in kept.items.items()]
        return Estate(ask.broker, ask.publisher, kept.last, items)

    def _trim(self, publisher: str, kept: _Kept) -> None:
        through = self._settled(publisher)
        for number in [number for number in kept.items if number <= through]:
            del kept.items[number]
