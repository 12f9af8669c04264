"""The state of a broker's clients, as plain data: sessions, their subscriptions, and their reads of history."""

from collections import deque
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple

from gapless.event_runs import EventRun
from gapless.filters import Filter
from gapless.positions import NO_EVENTS, Volume
from gapless.protocols.gapless.client_messages import Attach, ClientSubscribe
from gapless.protocols.gapless.identities import Attempt, Incarnation, Name
from gapless.protocols.parts.ranges import Ranges
from gapless.protocols.parts.transitions import Transitions, follow

__all__ = [
    "Kept",
    "LocalState",
    "LocalSubscription",
    "NewestSearch",
    "Outgoing",
    "Reading",
    "Session",
    "SessionPhase",
    "Source",
]


class LocalState(Enum):
    """The state of a subscription.

    | from | to | when |
    | --- | --- | --- |
    | PENDING | LIVE | its cut is complete, and all events that matched in the meantime were kept |
    | PENDING | READING | its cut is complete, but it begins in the past, or too many events matched in the meantime |
    | READING | LIVE | it has read up to a final position after which all matching events were kept |
    | LIVE | READING | too many deliveries wait for its client |

    One that ends in the past is READING from the start, and needs no cut.
    """

    PENDING = "pending"
    READING = "reading"
    LIVE = "live"


LOCALS: Transitions = {
    LocalState.PENDING: {LocalState.LIVE, LocalState.READING},
    LocalState.READING: {LocalState.LIVE},
    LocalState.LIVE: {LocalState.READING},
}


@dataclass(eq=False)
class Kept:
    """The events that matched since some time, up to a bound. Beyond it, all are dropped and read from history."""

    since: int
    """The clock at that time: everything with a larger timestamp is here."""
    room: int
    """The cost of events (see `outbox`) for which there is still room. Below 0, some were dropped."""
    events: list[tuple[EventRun, list[str]]] = field(default_factory=list)
    """The events, with their subscriptions."""

    @property
    def is_complete(self) -> bool:
        return self.room >= 0

    def add(self, events: EventRun, subscriptions: list[str], cost: int) -> None:
        """Keep events, if there is room."""
        self.room -= cost
        if self.room >= 0:
            self.events.append((events, subscriptions))
        else:
            self.events.clear()


@dataclass(eq=False)
class NewestSearch:
    """A subscription that begins or ends at the newest position, which is unknown yet (see `local.find_newest`)."""

    session: "Session"
    message: ClientSubscribe
    before: int
    """The clock at the call."""
    first: int = 0
    """The first position that became final after the call."""


@dataclass(eq=False)
class LocalSubscription:
    """A subscription of a client with a session here."""

    name: Name
    filter: Filter
    attempt: Attempt
    since: int = -1
    """The position from which it reads; -1 if it begins with its cut."""
    is_resumed: bool = False
    """Whether it was active at another broker."""
    state: LocalState = LocalState.PENDING
    cuts: dict[str, int] = field(default_factory=dict)
    expected: set[str] = field(default_factory=set)
    """The publishers whose answers are expected."""
    begin: int = 0
    position: int = 0
    """All due events up to this timestamp are in the session's queue, or at the client."""
    kept: Kept | None = None
    """While it is pending: the events that matched since the attempt began. None: it reads them from history."""
    reading: "Reading | None" = None
    live_place: int = 0
    """The place in the session's queue from which on it is live."""
    survey: Volume | None = None
    """If it only counts events: how many at most between two positions."""


class SessionPhase(Enum):
    """WAITING for the fence, OPEN, or CLOSING while publications are being released."""

    WAITING = "waiting"
    OPEN = "open"
    CLOSING = "closing"


SESSIONS: Transitions = {
    SessionPhase.WAITING: {SessionPhase.OPEN},
    SessionPhase.OPEN: {SessionPhase.CLOSING},
    SessionPhase.CLOSING: set(),
}


class Outgoing(NamedTuple):
    """A delivery or a note that is to be sent."""

    place: int
    """Its place, counted over everything that was ever put into the queue."""
    kind: type[Any]
    fields: tuple[Any, ...]
    """The fields of the message, without its session and number."""
    cost: int
    is_live: bool
    """Whether it is dropped if the client lags: a live event, neither history nor an answer."""


@dataclass(eq=False)
class Session:
    """A client's session."""

    client: str
    number: int
    """The number of the client's last attempt to attach; messages contain it."""
    attach: Attach
    epoch: int = 0
    """The number with which it was opened; attempts contain it."""
    phase: SessionPhase = SessionPhase.WAITING
    queue: deque[Any] = field(default_factory=deque)
    """Its waiting calls: advertisements and publications keep their order."""
    queued_events: int = 0
    """The number of events in the queue."""
    held: dict[str, Filter] = field(default_factory=dict)
    """Its subscriptions and advertisements; `claims` bounds their names, texts and effort in total."""
    locals: dict[str, LocalSubscription] = field(default_factory=dict)
    """Its subscriptions, also those that have not begun."""
    text_size: int = 0
    effort: int = 0
    admitted: int = 0
    """The client's publications up to this number were admitted somewhere, or are lost."""
    settled: int = 0
    """All brokers have processed the client's publications here up to this number."""
    missing: tuple[int, int] | None = None
    """Its lost publications, until the client has sent the filters that they may have matched."""
    unreleased: int = 0
    """Journal entries of this client that are not released yet."""
    asked: int = 0
    """How often other brokers were asked about its fence."""
    asks_holders: bool = False
    """Whether the holders of a sealed journal were asked about its fence."""
    closes_for: list[tuple[str, int]] = field(default_factory=list)
    """The brokers that asked to close it, with the client's new sessions there."""
    last_queued: int = 0
    """The largest number of a publication that arrived in this session."""
    sent: deque[tuple[Any, int]] = field(default_factory=deque)
    """Deliveries and notes that the client has not acknowledged, each with its cost."""
    unsent: deque[Outgoing] = field(default_factory=deque)
    """Deliveries that wait until the client has taken earlier ones."""
    in_flight: int = 0
    """The cost of `sent`."""
    waiting: int = 0
    """The cost of `unsent`."""
    is_lagging: bool = False
    """Whether it reads live events from history that did not fit into the queue."""
    timed_entry: tuple[int, int] | None = None
    """The publication whose latency is measured: the length of the journal with it, and its arrival time."""
    timed_delivery: tuple[int, int, int] | None = None
    """The delivery whose latency is measured: its place, its number once it was sent, and the time when it was due."""
    next_number: int = 1
    next_place: int = 1
    position_sent: tuple[int, int] = 0, 0
    """The last `Position` that was sent: its place in the queue, and the position."""
    is_connected: bool = True
    readings: dict[int, "Reading"] = field(default_factory=dict)
    history_bytes: int = 0
    """The bytes of history put into the queue since the last query."""
    last_closed: tuple[int, int] | None = None
    """The answer of the old broker, or of a holder of its sealed journal: clock and last number."""


@dataclass(eq=False)
class Source:
    """The entries of one journal that a history read has received, and the members that it asks for the rest."""

    incarnation: Incarnation
    upto: int
    """All matching entries up to this timestamp have arrived."""
    events: deque[EventRun] = field(default_factory=deque)
    """Entries that are not in the session's queue yet."""
    asked: Incarnation | None = None
    """The member that was asked for the next page and has not answered."""
    waited: int = 0
    """The number of ticks since then."""
    tried: set[str] = field(default_factory=set)
    """The members that do not have the next page."""
    dropped: int = 0
    """If all of them have dropped the next entries: up to which timestamp at least;"""
    lost: Ranges | None = None
    """and their numbers, if they are known."""


@dataclass(eq=False)
class Reading:
    """A read of history for subscriptions of one client, in one order."""

    number: int
    session: Session
    subscriptions: dict[str, LocalSubscription]
    position: int
    """Everything with a timestamp up to this was put into the session's queue."""
    until: int
    """The end of the read; 0 if it continues with live events."""
    is_resuming: bool
    """Whether these subscriptions were live before: all such subscriptions of a client read together."""
    filter: str = ""
    """A filter that matches everything that one of them wants, and maybe more."""
    is_earliest: bool = False
    """Whether it begins at the start of the retained history, and has got nothing yet."""
    target: int = 0
    """The final position up to which this round reads."""
    sources: dict[Incarnation, Source] = field(default_factory=dict)
    lost: Ranges = field(default_factory=dict)
    """Numbers of events that no broker still holds, and that were not reported to the client yet."""
    gap_until: int = 0
    """Up to this timestamp there are losses with unknown numbers."""
    kept: Kept | None = None
    """The matching events published during the read, if they are kept for the client."""
    survey: Volume | None = None
    counted: Volume = NO_EVENTS
    """In a survey: the events since the last reported position."""
    counted_until: int = 0
    """In a survey: the timestamp of the last counted event."""


follow(LocalSubscription, "state", LOCALS)
follow(Session, "phase", SESSIONS)
