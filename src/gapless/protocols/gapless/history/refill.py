"""History that lost a holder gets another one.

What was admitted is held by f + 1 brokers: by the one that admitted it and its backups. When one of them dies, or
comes back without its memory, the next nearest takes its place: it reads all of that journal that can still be read,
and keeps it. So a reader misses nothing unless f + 1 of them fail before others have read it.

One journal is read at a time, and only as long as there is room: nothing younger is dropped for it. What the broker has
on its disk already is read as well, for it may not be all. As this may be much, the broker rests between two parts.
"""

from collections.abc import Callable, Sequence
from functools import cache, cached_property
from itertools import islice

from gapless.protocol import SetTimer
from gapless.protocols.gapless.history.library import Library
from gapless.protocols.gapless.history.retrieval import Retrieval
from gapless.protocols.gapless.retention.waves import Waves

__all__ = ["REFILL", "Refill"]

REFILL = "refill"
"""The key of the timer."""
TAKEN_AT_ONCE = 256
REST_US = 5_000
"""Between two parts of so many events."""


class Refill:
    """What one life of a broker has to read so that it holds what it should."""

    def __init__(
        self,
        library: Library,
        waves: Waves,
        near: tuple[str, ...],
        holders: Callable[[str], Sequence[str]],
        count: int,
        is_out: Callable[[str], bool],
        set_timer: Callable[[SetTimer], None],
        *,
        is_first: bool,
    ) -> None:
        """`near` are the journals in reach, its own first; `holders` tells who may hold each, the nearest first, and
        `count` how many of them should. In its first life a broker lacks nothing: there was nothing before it."""
        self.lacking: dict[str, None] = {}
        """The journals that are to be read, the one that is being read first."""
        self._library = library
        self._waves = waves
        self._near = near
        self._holders = cache(holders)
        self._count = count
        self._is_out = is_out
        self._set_timer = set_timer
        self._resting: Retrieval | None = None
        """What is read on after a rest."""
        self._held: set[str] | None = None if is_first else set()
        """The journals that it has; None if nobody near has ever failed, so that each broker has those it should."""
        self._is_reading = False
        self._out: set[str] | None = None
        """Of those who may hold a journal in reach, who was out when it looked last."""

    @cached_property
    def _concerned(self) -> set[str]:
        return {holder for journal in self._near for holder in self._holders(journal)}

    def _wanted(self, is_out: Callable[[str], bool]) -> list[str]:
        """The journals that this broker should hold: it is among the nearest that are there."""
        name = self._library.name
        found = []
        for journal in self._near:
            alive = (holder for holder in self._holders(journal) if not is_out(holder))
            if name in islice(alive, self._count):
                found.append(journal)
        return found

    def follow(self) -> None:
        """Somebody died, or came back."""
        if self._held is None:
            if not any(map(self._is_out, self._near)):
                return
            self._held = set(self._wanted(lambda name: False))
        out = set(filter(self._is_out, self._concerned))
        if out != self._out:
            self._out = out
            self._divide()
        self.go_on()

    def _divide(self) -> None:
        """Find what is to be read, and what need not be."""
        assert self._held is not None
        wanted = self._wanted(self._is_out)
        self._held &= set(wanted)
        for journal in [journal for journal in self.lacking if journal not in wanted]:
            self._leave(journal)
        self.lacking.update(dict.fromkeys(journal for journal in wanted if journal not in self._held))

    def held_by_few(self) -> list[str]:
        """The journals in reach that too few brokers hold, as far as is known here: this broker is still reading them,
        or too few of those who could hold them are there."""
        found = dict(self.lacking)
        for journal in self._near:
            alive = (holder for holder in self._holders(journal) if not self._is_out(holder))
            if len(list(islice(alive, self._count))) < min(self._count, len(self._holders(journal))):
                found[journal] = None
        return sorted(found)

    def _leave(self, journal: str) -> None:
        if self._is_reading and journal == next(iter(self.lacking)):
            self._library.end(self)
            self._is_reading = False
            self._resting = None
        del self.lacking[journal]

    def go_on(self) -> None:
        """Begin to read, if there is anything; a position must be known up to which everything is final.

        One journal at a time, and a rest before the next: finding out what it has to contain takes a while, and a
        broker that came back lacks all in reach.
        """
        if self.lacking and not self._is_reading and self._waves.final:
            journal = next(iter(self.lacking))
            self._is_reading = True
            retrieval = self._library.begin(self, "TRUE", self._waves.dropped, self._waves.final, journal)
            if retrieval is not None:
                self.advance(retrieval)

    def advance(self, retrieval: Retrieval) -> None:
        """There may be more to take."""
        if self._resting is not None:
            return
        journal, history = next(iter(self.lacking)), self._library.history
        taken = 0
        while True:
            self._library.go_on(self, retrieval)
            events = retrieval.take(TAKEN_AT_ONCE)
            if events and history.has_room:
                history.keep_again(journal, events)
            if retrieval.is_over or not history.has_room:
                break
            if not events:
                return
            taken += len(events)
            if taken >= TAKEN_AT_ONCE:
                self._resting = retrieval
                self._set_timer(SetTimer(REFILL, REST_US))
                return
        assert self._held is not None
        self._held.add(journal)
        self._leave(journal)
        if self.lacking:
            self._set_timer(SetTimer(REFILL, REST_US))

    def rested(self) -> None:
        """Go on after a rest."""
        retrieval, self._resting = self._resting, None
        if retrieval is not None:
            self.advance(retrieval)
        else:
            self.go_on()
