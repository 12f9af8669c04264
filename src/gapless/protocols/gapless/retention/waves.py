"""Knowing what has reached everyone, so that it may be forgotten.

The root sends a wave down the tree; the leaves echo it, and every broker echoes when all below it did and its own
clients have taken what was delivered to them before the wave came by. A wave is a consistent cut: it runs
ahead of everything that is sent after it on every link. Once a wave has been echoed by all, every event before it
has left for all its destinations, so that the *next* wave follows it down every link. When that one is echoed as
well, everything before the first has been taken by every client, and the third wave says so (`done`).

Two properties of this cut are used elsewhere: an effect is never forgotten before its cause (a cut contains the
causes of what it contains), and forgetting costs two messages a link and round, however many events there were.

The root starts a wave each interval, at once after the last one while a broker is pressed, and when one asks for it
because half of its window is full: a full window waits for round trips, not for the clock.

A hand-over voids the waves that its members have seen; the root starts another one when no echo comes.

**Positions.** The number of a wave is a stamp of the root's `clock`. Whoever sees it stamps only larger from then on,
and echoes it only when its backups hold all that it had stamped before. So when everyone has echoed a wave, its number
is a *final* position: every event with such a stamp, or a smaller one, is admitted and held, and there will be no
other. What a dead broker had stamped before it echoed is held by its heir before that one echoes.

With its echo each broker tells which numbers of which publishers it has in its journal since the last final position
(`Interval`), and the root tells everyone: so a position is known as a number for each publisher, too, and who reads
what lies between two positions knows when something is missing. A new root may know less of positions than others; then
the first wave tells it (`Echo.final`), and is none itself. If all brokers have lost their memory since the last one,
nobody knows what was admitted before: the first wave is a position, and whoever reads from before it is told.

**Names.** If history waits for durable subscriptions, each keeper of names tells with its echo the lowest position that
it knows of. If a majority has told, some keeper among them knows each name, and the root tells everyone the lowest. A
keeper may not have heard of the last change yet, but that only moved a position further: nothing is dropped too soon.

An event up to a final position was processed where it was admitted before the next wave came by there. So once that
next one is done, everything up to the position has *reached* everyone.
"""

from collections.abc import Callable, Iterable
from typing import Protocol

from gapless.protocols.gapless.messages import NOBODY, Cuts, Echo, Interval, Ranges, Wave
from gapless.protocols.gapless.retention.milestones import Milestones
from gapless.protocols.parts.clock import Clock

__all__ = ["Archive", "Waves"]

NOTHING_KNOWN = -1
"""As the last final position: the broker has lost its memory, and has heard of none."""
PATIENCE_MIN = 8
PATIENCE_MAX = 256
IDLE_MAX = 16
HURRIED = 3
"""One that is under way may have started too early; the next becomes final; the third tells it."""


class Archive(Protocol):
    """What a broker keeps of what was admitted."""

    def admitted(self, since: int, until: int) -> dict[str, Ranges]:
        """What the journals of this broker got between two positions, by journal."""
        ...

    def last_admitted(self, since: int, until: int) -> Cuts:
        """By publisher: the last number that is known to have been admitted anywhere between two positions."""
        ...

    def dropped(self) -> int:
        """Nothing after this position was dropped here."""
        ...

    def note(self, interval: Interval | None) -> None:
        """It is known what was admitted everywhere."""
        ...

    def reach(self, position: int) -> None:
        """Everything up to this position has reached everyone."""
        ...


class Names(Protocol):
    """What a broker knows of durable subscriptions, where history waits for them."""

    @property
    def majority(self) -> int:
        """How many keepers have to tell so that nothing is left out."""
        ...

    def lowest(self) -> tuple[int, int]:
        """The lowest position of those that are known here; and whether this is a keeper: 1, or 0."""
        ...

    def spare(self, position: int) -> None:
        """What came after this position is not to be dropped for its age, or for room."""
        ...


class Waves:
    """One broker's part in the waves."""

    def __init__(
        self,
        cut_here: Callable[[int], None],
        forget: Callable[[int], None],
        is_busy: Callable[[], bool],
        is_pressed: Callable[[], bool],
        clock: Clock,
        archive: Archive,
        *,
        knows_beginning: bool = True,
        names: Names | None = None,
        span_us: int = 60_000_000,
    ) -> None:
        """`knows_beginning`: the broker is in its first life, or has a disk with all that it has known since. `names`,
        if history waits for durable subscriptions. `span_us`: for how long it is remembered when what had reached
        everyone."""
        self._names = names
        self._named = 0
        """At the root: what the last wave that came back told of durable subscriptions."""
        self._named_below = NOBODY
        self._keepers_below = 0
        self._knows_beginning = knows_beginning
        self.number = 0
        self.final = 0
        """All events up to this position are admitted and held."""
        self.newest = 0
        """No event between this position and `final` is possible, as far as is known: nothing was admitted there."""
        self._noted = -1
        self.reached = 0
        """All events up to this position that go through this broker have done so."""
        self.milestones = Milestones(span_us)
        """Of `reached`."""
        self.dropped = 0
        """All that was admitted after this position is in someone's history, as far as brokers keep their memory."""
        self._clock = clock
        self._cut_here = cut_here
        self._forget = forget
        self._is_busy = is_busy
        self._is_pressed = is_pressed
        self._archive = archive
        self.is_open = False
        """Whether the last wave waits for an echo, or for clients."""
        self._children: dict[str, None] = {}
        self._sessions: dict[str, int] = {}
        self._busy = False
        self._pressed = False
        self._completed = 0
        self._done = 0
        self._before_done = 0
        self._journalled = 0
        """What this broker had noted in its journal when the wave came by."""
        self._patience = PATIENCE_MIN
        self._silent = 0
        self._idle = 1
        self._waited = 0
        self._final_below = 0
        self._dropped_below = 0
        self._admitted: dict[str, Ranges] = {}
        self._interval: Interval | None = None
        """At the root: what lies before the last final position."""
        self._started = 0
        self._hurried = 0
        """At the root: how many waves are to follow at once, because someone waits for a position."""

    @property
    def is_own(self) -> bool:
        """Whether the last wave started here. A new root must not take its own echo for that of all.

        The smallest story: b1, the root, dies while its wave is under way. b0 has echoed it, hears that b1 is out, and
        stands in for it. Nobody else has echoed, and yet everything before the wave would count as having reached
        everyone.
        """
        return self._started == self.number

    @property
    def _knows_position(self) -> bool:
        """Whether it knows a position up to which it is known what was admitted."""
        return self._knows_beginning or self.final > 0

    def unreached(self) -> Cuts:
        """By publisher: the last number that is known to be admitted, and may not have reached everyone."""
        return self._archive.last_admitted(self.reached, self.final)

    def see(self, stamp: int) -> None:
        """An earlier life has come so far."""
        self._clock.see(stamp)

    def void(self, number: int) -> None:
        """A hand-over: no wave up to this number counts any more."""
        self.number = max(self.number, number)
        self.is_open = False

    def tick(self) -> Wave | None:
        """At the root, once an interval: the wave to start, if it is time for one."""
        if self.is_open:
            self._silent += 1
            if self._silent < self._patience:
                return None
            self._patience = min(2 * self._patience, PATIENCE_MAX)
        else:
            self._waited += 1
            if self._waited < self._idle and not self._is_busy():
                return None
        self._silent = self._waited = 0
        return self._next()

    def hurry(self, again: bool) -> Wave | None:
        """At the root: someone waits for a position. Returns the wave to start: `again`, if one is under way that will
        not be echoed."""
        self._hurried = HURRIED
        return None if self.is_open and not again else self._next()

    def _note(self, interval: Interval | None) -> None:
        """Up to `final`, this is known now."""
        self._archive.note(interval)
        if self.final > self._noted:
            is_empty = interval is not None and interval.since <= self._noted and not any(interval.admitted.values())
            self._noted = self.final
            self.newest = self.newest if is_empty else self.final

    def _next(self) -> Wave:
        number = self._started = max(self.number + 1, self._clock.next())
        return Wave(number, self.final, self._before_done, self._done, self._interval, self.dropped, self._named)

    def begin(self, wave: Wave, children: Iterable[str], sessions: dict[str, int], journalled: int = 0) -> bool:
        """The wave comes by: cut here, and wait for the children and for what the sessions still owe."""
        if wave.number <= self.number:
            return False
        self.number = wave.number
        self.final = max(self.final, wave.final)
        self._final_below = self.final if self._knows_position else NOTHING_KNOWN
        self.dropped = max(self.dropped, wave.dropped)
        self._dropped_below = self._archive.dropped()
        self._admitted = self._archive.admitted(wave.final, wave.number)
        if self._names is not None:
            self._named_below, self._keepers_below = self._names.lowest()
            self._names.spare(wave.named)
        self._note(wave.interval)
        self.reached = max(self.reached, wave.reached)
        self.milestones.note(self._clock.now, self.reached)
        self._archive.reach(self.reached)
        self._clock.see(wave.number)
        self._journalled = journalled
        self._forget(wave.done)
        self._cut_here(wave.number)
        self._children = dict.fromkeys(children)
        self._sessions = sessions
        self._busy = self._is_busy()
        self._pressed = self._is_pressed()
        self.is_open = True
        return True

    def missing(self, released: Callable[[str], int]) -> list[str]:
        """The brokers and clients that the wave waits for."""
        if not self.is_open:
            return []
        return [*self._children, *(client for client, owed in self._sessions.items() if released(client) < owed)]

    def owed(self, client: str) -> int:
        """How many deliveries the client must have taken before the wave can go on."""
        return self._sessions.get(client, 0)

    def echoed(self, child: str, echo: Echo) -> None:
        """A child echoed."""
        if self.is_open and echo.number == self.number:
            self._children.pop(child, None)
            self._final_below = max(self._final_below, echo.final)
            self._dropped_below = max(self._dropped_below, echo.dropped)
            self._admitted |= echo.admitted
            self._named_below = min(self._named_below, echo.named)
            self._keepers_below += echo.keepers
            self._busy |= echo.busy
            self._pressed |= echo.pressed

    def due_echo(self, released: Callable[[str], int], held: int = 0) -> Echo | None:
        """The echo, once nothing is missing.

        `released` tells how many of a client's deliveries nobody waits for any more. The backups hold the journal up to
        `held`.
        """
        if not self.is_open or self._children or held < self._journalled:
            return None
        for client in list(self._sessions):
            if released(client) < self._sessions[client]:
                return None
            del self._sessions[client]
        self.is_open = False
        pressed = self._pressed or self._is_pressed()
        return Echo(
            self.number, self._busy, pressed, self._final_below, self._admitted, self._dropped_below,
            self._named_below, self._keepers_below,
        )  # fmt: skip

    def completed(self, echo: Echo) -> Wave | None:
        """At the root: everyone has echoed. Returns the wave to start at once, if there is need.

        A wave that is no position does not count here, for what came before it is in no interval yet. Its smallest
        story: a new root learns of positions by its first wave. The second becomes final, and only the root knows what
        came before it. The third would let everyone forget what came before the first. The root dies, and nobody knows
        any more what could be read.
        """
        self.dropped = max(self.dropped, echo.dropped)
        if self._names is not None:
            self._named = echo.named if echo.keepers >= self._names.majority else 0
        if echo.final == NOTHING_KNOWN:
            self.final, self._interval = echo.number, None
        elif echo.final > self.final or not self._knows_position:
            self.final, self._interval = echo.final, None
            self._knows_beginning = True
        else:
            self._before_done, self._done, self._completed = self._done, self._completed, echo.number
            self._interval = Interval(self.final, echo.number, echo.admitted)
            self.final = echo.number
            self._note(self._interval)
        self._patience = PATIENCE_MIN
        self._idle = 1 if echo.busy else min(2 * self._idle, IDLE_MAX)
        self._hurried = max(0, self._hurried - 1)
        return self._next() if echo.pressed or self._hurried else None
