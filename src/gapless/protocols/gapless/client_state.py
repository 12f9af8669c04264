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
    """The state of a subscription at its broker.

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
    """The events that matched since a given time, up to a limit. If they exceed it, all are dropped, and are read from
    history instead."""

    since: int
    """Every matching event with a larger timestamp is kept."""
    room: int
    """The remaining room, as a cost of events (see `outbox`). It is negative after events were dropped."""
    events: list[tuple[EventRun, list[str]]] = field(default_factory=list)
    """The events, each run with the names of its subscriptions."""

    @property
    def is_complete(self) -> bool:
        return self.room >= 0

    def add(self, events: EventRun, subscriptions: list[str], cost: int) -> None:
        """Keep the events if there is room; otherwise drop all."""
        self.room -= cost
        if self.room >= 0:
            self.events.append((events, subscriptions))
        else:
            self.events.clear()


@dataclass(eq=False)
class NewestSearch:
    """A subscription that starts or ends at the newest position, which is not known yet (see `local.find_newest`)."""

    session: "Session"
    message: ClientSubscribe
    before: int
    """The clock at the time of the call."""
    first: int = 0
    """The first position that became final after the call; 0 before there is one."""


@dataclass(eq=False)
class LocalSubscription:
    """A subscription of a client with a session here."""

    name: Name
    filter: Filter
    attempt: Attempt
    since: int = -1
    """The position from which the subscription reads; -1 if it starts at its cut."""
    is_resumed: bool = False
    """Whether the subscription was active at another broker."""
    state: LocalState = LocalState.PENDING
    cuts: dict[str, int] = field(default_factory=dict)
    expected: set[str] = field(default_factory=set)
    """The publishers whose cuts have not arrived."""
    begin: int = 0
    position: int = 0
    """All due events up to this timestamp are in the session's queue or were sent to the client."""
    kept: Kept | None = None
    """While the subscription is pending: the events that matched since the attempt began, or None if it reads them from
    history."""
    reading: "Reading | None" = None
    live_place: int = 0
    """The place in the session's queue from which on the subscription is live."""
    survey: Volume | None = None
    """For a survey: the maximum volume of events counted between two reported positions."""


class SessionPhase(Enum):
    """WAITING for the fence; OPEN; or CLOSING while the remaining publications are released."""

    WAITING = "waiting"
    OPEN = "open"
    CLOSING = "closing"


SESSIONS: Transitions = {
    SessionPhase.WAITING: {SessionPhase.OPEN},
    SessionPhase.OPEN: {SessionPhase.CLOSING},
    SessionPhase.CLOSING: set(),
}


class Outgoing(NamedTuple):
    """A delivery or note to be sent."""

    place: int
    """The place in the queue, counted since the session began."""
    kind: type[Any]
    fields: tuple[Any, ...]
    """The fields of the message, except the session and the number."""
    cost: int
    is_live: bool
    """Whether the item is dropped if the client lags. Live events are dropped; history and answers are not."""


@dataclass(eq=False)
class Session:
    """A client's session."""

    client: str
    number: int
    """The number of the client's last attempt to attach. Deliveries and calls contain it."""
    attach: Attach
    epoch: int = 0
    """The number with which the session was opened. Subscription attempts contain it."""
    phase: SessionPhase = SessionPhase.WAITING
    queue: deque[Any] = field(default_factory=deque)
    """Calls waiting to be processed: advertisements and publications in their order."""
    queued_events: int = 0
    """The number of events in `queue`."""
    held: dict[str, Filter] = field(default_factory=dict)
    """The filters of all subscriptions and advertisements of the session. `claims` bounds their total text
    and effort."""
    locals: dict[str, LocalSubscription] = field(default_factory=dict)
    """The session's subscriptions, including those that have not begun."""
    text_size: int = 0
    effort: int = 0
    admitted: int = 0
    """All publications of the client up to this number were admitted by some broker, or are lost."""
    settled: int = 0
    """The number up to which all brokers have processed the publications that the client made here."""
    missing: tuple[int, int] | None = None
    """The client's lost publications, until the client reports which filters they may have matched."""
    unreleased: int = 0
    """The number of this client's journal entries that are not released yet."""
    asked: int = 0
    """How many times other brokers were asked about the session's fence."""
    asks_holders: bool = False
    """Whether the holders of a sealed journal were asked about the session's fence."""
    closes_for: list[tuple[str, int]] = field(default_factory=list)
    """The brokers that asked to close the session, each with the client's new session there."""
    last_queued: int = 0
    """The largest publication number that arrived in this session."""
    sent: deque[tuple[Any, int]] = field(default_factory=deque)
    """Deliveries and notes that the client has not acknowledged, each with its cost."""
    unsent: deque[Outgoing] = field(default_factory=deque)
    """Deliveries that wait for window space."""
    in_flight: int = 0
    """The cost of `sent`."""
    waiting: int = 0
    """The cost of `unsent`."""
    is_lagging: bool = False
    """Whether live events did not fit into the queue and are read from history."""
    timed_entry: tuple[int, int] | None = None
    """The publication whose latency is measured: the length of the journal including it, and its arrival time."""
    timed_delivery: tuple[int, int, int] | None = None
    """The delivery whose latency is measured: its place, its number once it was sent, and the time at which it was
    queued."""
    next_number: int = 1
    next_place: int = 1
    position_sent: tuple[int, int] = 0, 0
    """The last `Position` that was queued: its place, and the position."""
    is_connected: bool = True
    readings: dict[int, "Reading"] = field(default_factory=dict)
    history_bytes: int = 0
    """The number of bytes of history queued since the last query."""
    last_closed: tuple[int, int] | None = None
    """The old broker's last clock and the client's last number there, as reported by that broker or by a holder of its
    sealed journal."""


@dataclass(eq=False)
class Source:
    """The entries that a history read has received from one journal, and the members that it asks for more."""

    incarnation: Incarnation
    upto: int
    """All matching entries up to this timestamp have arrived."""
    events: deque[EventRun] = field(default_factory=deque)
    """Received entries that are not in the session's queue yet."""
    asked: Incarnation | None = None
    """The member that was asked for the next page and has not answered."""
    waited: int = 0
    """The number of ticks since that request."""
    tried: set[str] = field(default_factory=set)
    """The members that do not have the next page."""
    dropped: int = 0
    """If all members have dropped the next entries: a timestamp up to which they are missing."""
    lost: Ranges | None = None
    """The numbers of those events; None if they are unknown."""


@dataclass(eq=False)
class Reading:
    """A read of history for subscriptions of one client, in one order."""

    number: int
    session: Session
    subscriptions: dict[str, LocalSubscription]
    position: int
    """All events with a timestamp up to this one were put into the session's queue."""
    until: int
    """The position at which the read ends; 0 if it continues with live events."""
    is_resuming: bool
    """Whether these subscriptions were live before. A client has one such read for all of them."""
    filter: str = ""
    """The text of a filter that matches everything that any of the subscriptions wants, and perhaps more."""
    is_earliest: bool = False
    """Whether the read starts at the beginning of the retained history and has received nothing yet."""
    target: int = 0
    """The final position at which the current round ends."""
    sources: dict[Incarnation, Source] = field(default_factory=dict)
    lost: Ranges = field(default_factory=dict)
    """The numbers of events that no broker has any more and that were not reported to the client yet."""
    gap_until: int = 0
    """The timestamp up to which there are losses with unknown numbers; 0 if there are no such losses."""
    kept: Kept | None = None
    """The matching events published during the read, if they are being kept for the client."""
    survey: Volume | None = None
    counted: Volume = NO_EVENTS
    """For a survey: the events counted since the last reported position."""
    counted_until: int = 0
    """For a survey: the timestamp of the last counted event."""


follow(LocalSubscription, "state", LOCALS)
follow(Session, "phase", SESSIONS)
