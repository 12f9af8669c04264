"""Subscriptions that read history, and how they go over to what is published, without a gap and without a duplicate.

A reading begins at a position and takes what lies between it and the last final one. When not much is left, the
subscription is entered as any other (if it is not yet), and when its cut is whole, what comes for it is put aside.
At that moment the broker's clock shows c. Everything with a larger stamp comes in from then on: what passed before has
a stamp up to c, and so has what the cut left out, because it was admitted before the marker came. So the reading goes
on up to a final position of at least c. Then what was put aside follows, without what has a stamp up to that position.

A client that lies behind reads all its subscriptions in one stream, under no name: they are entered already, so it puts
aside what comes in as soon as not much is left.

While it reads, nothing that comes in for it is kept: it is in the history, and so it holds back nobody. If too much has
to be put aside, because the client takes its time, it goes back to reading.
"""

from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from itertools import islice
from typing import Any, Protocol

import msgspec

from gapless.errors import FilterError
from gapless.events import Event
from gapless.filters import parse
from gapless.protocol import SetTimer
from gapless.protocols.gapless.client_messages import LATEST, Reached, Unsubscribed
from gapless.protocols.gapless.clients.outbox import Outgoing
from gapless.protocols.gapless.clients.sessions import Session
from gapless.protocols.gapless.history.library import Library
from gapless.protocols.gapless.history.retrieval import Retrieval
from gapless.protocols.gapless.messages import Ranges
from gapless.protocols.gapless.retention.waves import Waves
from gapless.protocols.gapless.routing.records import Subscription
from gapless.protocols.gapless.tombstones import is_lost
from gapless.protocols.parts.clock import Clock

__all__ = ["READ_ON", "Reading", "Readings", "Sources"]

CLOSE = 8
"""So many intervals before the end, a reading begins to go over to what is published."""
PUT_AT_ONCE = 1_024
FEW = 32
"""So many filters are asked one by one."""
WORK_MAX = 8_192
"""Events that are put for those who read, and as many times `EACH` of them, before others get their turn."""
EACH = 16
"""What a client costs that has its turn, in events."""
READ_ON = "read on"
"""The key of the timer."""
CATCH_UP = ""
"""The name of the reading that is for all subscriptions of a client that lies behind."""
TEXT_MAX = 10_000
"""Characters in the filter of such a stream. If there were more, or the filters together were too much for one, all of
history is read, and what nobody wants is left out here."""


class State(Enum):
    """Of a reading."""

    READING = "reads what lies before the last final position"
    ENTERING = "waits until its cut is whole"
    JOINING = "reads the rest, while what comes in is put aside"


class Newest:
    """Finds a position after everything that was confirmed before it was asked for, whatever clocks show.

    A broker may have confirmed events with timestamps that no other broker has heard of. The first wave that becomes
    final from now on may have begun earlier. The second one began later, so the root has heard the clock of every
    broker when that is complete. It tells so with the next wave, whose number, and with it our clock, is larger.
    """

    def __init__(self, waves: Waves) -> None:
        self._waves = waves
        self._before = waves.number

    _first = 0

    def find(self, clock: Clock) -> int:
        """The position; 0 if it is not known yet."""
        final = self._waves.final
        if final <= self._before:
            return 0
        if not self._first:
            self._first = final
        return clock.last if final > self._first else 0


class Reading:
    """One subscription that reads history."""

    def __init__(
        self,
        session: Session,
        name: str,
        text: str,
        since: int,
        until: int,
        advanced: Callable[["Reading", Retrieval], None],
    ) -> None:
        self.session = session
        self.name = name
        self.text = text
        self.is_earliest = since == 0
        """Whether it begins with what there is, and that is not known yet."""
        self.position = since
        """All up to here was put into the outbox."""
        self.until = until
        """Where it ends; 0 if it goes over to what is published."""
        self.newest: Newest | None = None
        """Finds the newest position, where it begins or ends with that."""
        self.state = State.READING
        self.wanted = until
        """It goes on once this position is final."""
        self.retrieval: Retrieval | None = None
        self.stalled_at = -1
        """The final position at which nobody could say what was admitted before it. A later wave will tell."""
        self.is_searching = False
        """Whether it is not known yet what has to be read."""
        self.aside: list[tuple[Event, list[str]]] = []
        self.names: dict[str, None] = {name: None}
        """The subscriptions that it is for."""
        self._advanced = advanced

    def advance(self, retrieval: Retrieval) -> None:
        """It is known what is to be read, or more of it has come."""
        self._advanced(self, retrieval)


class Sources(msgspec.Struct, frozen=True):
    """Where readings read, and how far they can."""

    library: Library
    waves: Waves
    hurry: Callable[[], None]
    """Somebody waits for a later final position."""
    may_read: Callable[[str], bool] = lambda client: True
    """Whether a client may read what was published before its subscriptions began."""


class Host(Protocol):
    """Whose clients read."""

    def enter(self, session: Session, name: str, text: str) -> bool:
        """Make a reading a subscription as any other, if it is not; tell whether its cut is whole already."""
        ...

    def flush(self, session: Session) -> None:
        """Send what can go out now."""
        ...


class Readings:
    """All readings of one broker's clients."""

    def __init__(
        self,
        sources: Sources,
        clock: Clock,
        window: int,
        host: Host,
        match: Callable[[Event], Iterable[Subscription]],
        set_timer: Callable[[SetTimer], None],
    ) -> None:
        self._library = sources.library
        self._waves = sources.waves
        self._hurry = sources.hurry
        self.may_read = sources.may_read
        self._clock = clock
        self._window = window
        self._host = host
        self._match = match
        self._set_timer = set_timer
        self._of: dict[str, dict[str, Reading]] = {}
        """By client and name."""
        self._due: dict[str, None] = {}
        """Clients that may go on, and had no turn yet."""
        self._work = 0
        """What was done in this turn, in events."""
        self._is_resting = False
        """Whether a timer will let them go on."""

    @property
    def reached(self) -> int:
        """Everything up to this position has reached everyone."""
        return self._waves.reached

    def reached_before(self, time: int) -> int | None:
        """The same at a time; None if that is too long ago."""
        return self._waves.milestones.before(time)

    def of(self, client: str) -> Mapping[str, Reading]:
        """The readings of a client, by name."""
        return self._of.get(client, {})

    def begin(self, session: Session, name: str, text: str, since: int, until: int) -> None:
        """A client wants to read from a position on, or all that is kept (0), or from the newest one on (`LATEST`); up
        to another, or for ever (0), or up to the newest one (less)."""
        reading = Reading(session, name, text, since, until, self._on_advanced)
        if until < 0 or since == LATEST:
            reading.newest = Newest(self._waves)
        self._of.setdefault(session.client, {})[name] = reading
        session.read_texts[name] = text
        self._advance(reading)

    def widen(self, client: str, names: list[str], position: int) -> tuple[list[str], int]:
        """These subscriptions and those that are catching up already, and the earlier of both positions."""
        known = self.of(client).get(CATCH_UP)
        if known is None:
            return names, position
        return list({**known.names, **dict.fromkeys(names)}), min(position, known.position)

    def catch_up(self, session: Session, names: list[str], position: int) -> None:
        """A client that lay behind goes on with these subscriptions from a position on.

        If it was catching up before, what is lost of that is told now: the new position lies behind it.
        """
        known = self.of(session.client).get(CATCH_UP)
        if known is not None and known.retrieval is not None and (known.retrieval.lost or known.retrieval.gaps):
            self._tell(known, is_live=False)
        self.end(session.client, CATCH_UP)
        text = _any_of([session.subscriptions[name].filter.text for name in names])
        begin = position or self._library.index.round_up(self._waves.dropped)
        reading = Reading(session, CATCH_UP, text, begin, 0, self._on_advanced)
        reading.names = dict.fromkeys(names)
        self._of.setdefault(session.client, {})[CATCH_UP] = reading
        self._advance(reading)

    def late(self, client: str) -> Mapping[str, None]:
        """The subscriptions of a client that are catching up."""
        known = self.of(client).get(CATCH_UP)
        return {} if known is None else known.names

    def leave(self, client: str, name: str) -> None:
        """A subscription is over. It may have been catching up."""
        known = self.of(client).get(CATCH_UP)
        if known is not None:
            known.names.pop(name, None)
            if not known.names:
                self.end(client, CATCH_UP)

    def end(self, client: str, name: str) -> None:
        """It is over."""
        readings = self._of.get(client, {})
        reading = readings.pop(name, None)
        if reading is not None:
            reading.session.read_texts.pop(name, None)
            self._library.end(reading)
            if not readings:
                del self._of[client]

    def drop(self, client: str) -> None:
        """The session is over, or goes on elsewhere."""
        for name in list(self.of(client)):
            self.end(client, name)

    def divert(self, session: Session, deliveries: list[Outgoing]) -> list[Outgoing]:
        """What comes in for the session, without what its readings will read, or have to put aside."""
        readings, late = self._of[session.client], self.late(session.client)
        rest = []
        for run in deliveries:
            kept = [name for name in run.names if name not in readings and name not in late]
            if kept:
                rest.append(Outgoing(run.events, kept))
            if len(kept) == len(run.names):
                continue
            missed = [name for name in run.names if name in late]
            for event in run.events:
                for name in run.names:
                    if name in readings:
                        self._put_aside(readings[name], event, [name])
                if late:
                    self._put_aside(readings[CATCH_UP], event, missed)
        return rest

    def _put_aside(self, reading: Reading, event: Event, names: list[str]) -> None:
        if reading.state is State.JOINING and names:
            reading.aside.append((event, names))
            if len(reading.aside) > self._window:
                reading.aside.clear()
                reading.state = State.READING

    def is_whole(self, session: Session, name: str) -> None:
        """The cut of its subscription is whole: what comes in is put aside from now on."""
        reading = self._of[session.client][name]
        if reading.state is State.ENTERING:
            self._join(reading)
            self._advance(reading)

    def final(self) -> None:
        """A later position is final: all who read go on, some in this turn, and the others in the next ones."""
        self._due.update(dict.fromkeys(self._of))
        if not self._is_resting:
            self.read_on()

    def read_on(self) -> None:
        """Go on with those whose turn it is."""
        self._is_resting = False
        self._work = 0
        while self._due and self._work < WORK_MAX:
            client = next(iter(self._due))
            del self._due[client]
            self._work += EACH
            self.go_on(client)
        if self._due:
            self._is_resting = True
            self._set_timer(SetTimer(READ_ON, 0))

    def go_on(self, client: str) -> None:
        """The client has taken something."""
        for reading in list(self.of(client).values()):
            self._advance(reading)

    def _on_advanced(self, reading: Reading, retrieval: Retrieval) -> None:
        """The library has found out what is to be read, or got more of it."""
        reading.is_searching = False
        reading.retrieval = retrieval
        self._advance(reading)

    def told(self, most: int) -> dict[str, Any]:
        """For operators: what is kept, who reads it, and for whom those who read wait."""
        readings = [reading for of_client in self._of.values() for reading in of_client.values()]
        return {
            "bytes": self._library.history.size,
            "since": self._waves.dropped,
            "final": self._waves.final,
            "readings": len(readings),
            "waiting": [
                {
                    "client": reading.session.client,
                    "subscription": reading.name or ", ".join(islice(reading.names, most)),
                    "position": reading.position,
                    "waits_for": self._waits_for(reading),
                }
                for reading in readings[:most]
            ],
        }

    def _waits_for(self, reading: Reading) -> list[str]:
        """Whom a reading waits for: its client, which has to take something; or brokers; or nobody, only a wave."""
        if len(reading.session.outbox) >= self._window:
            return [reading.session.client]
        if reading.is_searching:
            return self._library.asked(reading)
        return [] if reading.retrieval is None else reading.retrieval.waits_for()

    # ---- steps --------------------------------------------------------------------------------------------

    def _advance(self, reading: Reading) -> None:
        """Do what can be done now.

        A client that is catching up has to know first where its subscriptions begin. The smallest story: c lies behind
        with s, subscribes t, and has to attach again before it hears that t's cut is whole. Then c would take what it
        reads of a publisher that has left long since for t's, because t knows no cut of that publisher.
        """
        if reading.name == CATCH_UP and any(name in reading.session.unready for name in reading.names):
            return
        if not self._find_newest(reading):
            return
        while not reading.is_searching and self._is_open(reading) and reading.stalled_at != self._waves.final:
            if reading.retrieval is not None:
                if not self._take(reading):
                    return
            elif reading.until and reading.position >= reading.until:
                self._finish(reading)
            elif reading.until or reading.state is State.JOINING:
                if not self._reach(reading):
                    return
            elif reading.state is State.READING and not self._is_close(reading):
                self._search(reading, self._waves.final)
            elif reading.state is State.READING and reading.name == CATCH_UP:
                self._join(reading)
            elif reading.state is State.READING:
                reading.state = State.ENTERING
                if self._host.enter(reading.session, reading.name, reading.text) and reading.state is State.ENTERING:
                    self._join(reading)
            else:
                return

    def _find_newest(self, reading: Reading) -> bool:
        """Tell whether it is known where the reading begins and ends."""
        if reading.newest is None:
            return True
        newest = reading.newest.find(self._clock)
        if not newest:
            self._hurry()
            return False
        reading.newest = None
        if reading.until < 0:
            reading.until = reading.wanted = newest
        if reading.position == LATEST:
            reading.position = newest - 1  # so that the reading waits until the newest is final
        return True

    def _is_open(self, reading: Reading) -> bool:
        return self.of(reading.session.client).get(reading.name) is reading

    def _is_close(self, reading: Reading) -> bool:
        """Whether not much is left to be read before the last final position."""
        return self._waves.final <= reading.position or (
            reading.position > 0 and len(self._library.index.chain(reading.position)) <= CLOSE
        )

    def _join(self, reading: Reading) -> None:
        reading.state = State.JOINING
        reading.wanted = max(self._clock.last, reading.position)

    def _reach(self, reading: Reading) -> bool:
        """Read up to a final position that is late enough, once there is one."""
        final = self._waves.final
        if final < reading.wanted:
            if reading.wanted <= max(self._clock.now, self._clock.last):
                self._hurry()  # not for what lies in the future: waves would follow on each other until then
            return False
        if reading.until:
            self._search(reading, reading.until)
        elif reading.position < final:
            reading.wanted = final
            self._search(reading, final)
        else:
            self._go_live(reading)
        return True

    def _search(self, reading: Reading, until: int) -> None:
        if reading.is_earliest:
            reading.position = self._library.index.round_down(self._waves.dropped)
        reading.retrieval = self._library.begin(reading, reading.text, reading.position, until)
        reading.is_searching = reading.retrieval is None

    def _take(self, reading: Reading) -> bool:
        """Put what has come into the outbox, as far as there is room; tell whether there may be more to do."""
        retrieval, session = reading.retrieval, reading.session
        assert retrieval is not None
        self._library.go_on(reading, retrieval)
        if reading.is_earliest and not self._begin(reading, retrieval):
            return False
        room = self._window - len(session.outbox)
        events = retrieval.take(min(room, PUT_AT_ONCE)) if room > 0 else []
        if retrieval.until <= reading.position:
            reading.stalled_at = self._waves.final
        is_over = retrieval.is_over
        misses = bool(retrieval.lost or retrieval.gaps)
        if misses and (events or is_over):  # all that is missing in one place is told at once
            self._tell(reading, is_live=False)
            misses = False
        session.put(self._runs(reading, events))
        self._work += len(events)
        moved = retrieval.position > reading.position
        reading.position = max(reading.position, retrieval.position)
        if is_over:
            reading.retrieval = None
        if moved and not misses:
            self._tell(reading, is_live=False)
        if events or moved:
            self._host.flush(session)
        return bool(events) or is_over or (moved and room > 0)

    def _begin(self, reading: Reading, retrieval: Retrieval) -> bool:
        """Tell whether it is known where it begins that begins with what there is."""
        if reading.position > 0:
            beginning = retrieval.find_beginning()
            if beginning is None:
                return False
            reading.position = beginning
            retrieval.gaps.insert(0, (0, beginning))
        reading.is_earliest = False
        return True

    def _runs(self, reading: Reading, events: list[Event]) -> list[Outgoing]:
        """The events, with the subscriptions that get them."""
        if reading.name != CATCH_UP:
            return [Outgoing(events, [reading.name], True)] if events else []
        runs: list[tuple[list[Event], list[str]]] = []
        session = reading.session
        may_read = self.may_read(session.client)
        for event in events:
            names = self._takers(reading, event)
            if not may_read and not is_lost(event.attributes):
                names = [name for name in names if session.is_due(name, event)]
            if runs and runs[-1][1] == names:
                runs[-1][0].append(event)
            elif names:
                runs.append(([event], names))
        return [Outgoing(run, names, True) for run, names in runs]

    def _takers(self, reading: Reading, event: Event) -> list[str]:
        """The subscriptions of a client that lies behind that get an event. They are few beside all those that the
        broker knows, as a rule."""
        subscriptions = reading.session.subscriptions
        if len(reading.names) > FEW:
            return [item.name for item in self._match(event) if item.name in reading.names]
        return [
            name
            for name in reading.names
            if is_lost(event.attributes) or subscriptions[name].filter.matches(event.attributes)
        ]

    def _go_live(self, reading: Reading) -> None:
        """Everything up to `wanted` was put: what was put aside follows."""
        session = reading.session
        self.end(session.client, reading.name)
        session.put(
            Outgoing([event], names)
            for event, names in reading.aside
            if event.stamp > reading.wanted or is_lost(event.attributes)
        )
        self._tell(reading, is_live=True)
        self._host.flush(session)

    def _finish(self, reading: Reading) -> None:
        """All up to its end was put."""
        session = reading.session
        self.end(session.client, reading.name)
        session.note(Unsubscribed(session.attempt, reading.name, {}))
        self._host.flush(session)

    def _tell(self, reading: Reading, *, is_live: bool) -> None:
        """Let the client know how far it got, and what is lost of it."""
        attempt, name = reading.session.attempt, reading.name
        lost: list[tuple[int, Ranges]] = []
        if reading.retrieval is not None:
            for gap in reading.retrieval.gaps:
                reading.session.note(Reached(attempt, name, reading.position, False, [], gap))
            reading.retrieval.gaps = []
            lost = reading.retrieval.take_lost()
        reading.session.note(Reached(attempt, name, reading.position, is_live, lost))


def _any_of(texts: list[str]) -> str:
    """A filter that matches what any of them matches; all events, if no filter can say that."""
    text = " OR ".join(f"({each})" for each in texts)
    if len(text) > TEXT_MAX:
        return "TRUE"
    try:
        parse(text)
    except FilterError:
        return "TRUE"
    return text
