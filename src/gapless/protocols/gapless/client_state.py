"""The state of a broker's clients, as plain data: sessions, their subscriptions, and their reads of history."""

from collections import deque
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple

from gapless.events import Events
from gapless.filters import Filter
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
    """How far a subscription has come.

    | from | to | when |
    | --- | --- | --- |
    | PENDING | LIVE | its cut is whole, and all that matched meanwhile was kept |
    | PENDING | READING | its cut is whole, and it has to read: it begins in the past, or too much matched meanwhile |
    | READING | LIVE | it has read up to a final position after which all that matched was kept |
    | LIVE | READING | too much waits for its client |

    One that ends in the past is READING from its beginning on, and needs no cut.
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
    """The events that matched from a moment on, up to a bound: beyond it, all are dropped and read from history."""

    since: int
    """The clock at that moment: everything with a larger timestamp is here."""
    room: int
    """Costs of events (see `outbox`) that may still be kept. Below 0, something was dropped."""
    events: list[tuple[Events, list[str]]] = field(default_factory=list)
    """With the subscriptions that they are for."""

    @property
    def is_complete(self) -> bool:
        return self.room >= 0

    def add(self, events: Events, subscriptions: list[str], cost: int) -> None:
        """Keep events, if there is room."""
        self.room -= cost
        if self.room >= 0:
            self.events.append((events, subscriptions))
        else:
            self.events.clear()


@dataclass(eq=False)
class NewestSearch:
    """A subscription that begins or ends at the newest position, which is not known yet (see `local.find_newest`)."""

    session: "Session"
    message: ClientSubscribe
    before: int
    """The clock when it was asked for."""
    first: int = 0
    """The first position after that which has become final."""


@dataclass(eq=False)
class LocalSubscription:
    """A subscription of a client that has its session here."""

    name: Name
    filter: Filter
    attempt: Attempt
    since: int = -1
    """The position from which it reads; -1 if it begins with its cut."""
    is_resumed: bool = False
    """Whether it was active elsewhere."""
    state: LocalState = LocalState.PENDING
    cuts: dict[str, int] = field(default_factory=dict)
    expected: set[str] = field(default_factory=set)
    """The publishers that have to answer."""
    begin: int = 0
    position: int = 0
    """Everything that is due with a timestamp up to this lies in the session's queue, or is with the client."""
    kept: Kept | None = None
    """While it is pending: what matched since the attempt began. None: it reads that from history."""
    reading: "Reading | None" = None
    live_place: int = 0
    """The place in the session's queue from which on it is live."""


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
    """A delivery or a note that waits to be sent."""

    place: int
    """Grows by one with each that was ever put into the queue."""
    kind: type[Any]
    fields: tuple[Any, ...]
    """Of the message, without its session and number."""
    cost: int
    is_live: bool
    """Whether it is dropped if the client lags: what was published, not what was read, and no answer."""


@dataclass(eq=False)
class Session:
    """A client's session."""

    client: str
    number: int
    """Of the client's last attempt to attach: messages carry it."""
    attach: Attach
    epoch: int = 0
    """The number with which it was opened: attempts carry it."""
    phase: SessionPhase = SessionPhase.WAITING
    queue: deque[Any] = field(default_factory=deque)
    """Its calls that wait for their turn: advertisements and publications keep their order."""
    queued_events: int = 0
    """How many events are in it."""
    held: dict[str, Filter] = field(default_factory=dict)
    """Its subscriptions and advertisements; `claims` bounds their names, texts and effort together."""
    text_size: int = 0
    effort: int = 0
    admitted: int = 0
    """The client's publications up to this number were admitted somewhere, or are lost."""
    settled: int = 0
    """All brokers have processed what the client published here up to this number."""
    missing: tuple[int, int] | None = None
    """Its lost publications, until the client has sent the filters that they may have matched."""
    unreleased: int = 0
    """Journal entries of this client that are not released yet."""
    asked: int = 0
    """How often others were asked what its fence needs."""
    closes_for: list[tuple[str, int]] = field(default_factory=list)
    """The brokers that asked to close it, with the client's new sessions there."""
    last_queued: int = 0
    """The largest number of a publication that came in this session."""
    sent: deque[tuple[Any, int]] = field(default_factory=deque)
    """Deliveries and notes that the client has not acknowledged, each with its cost."""
    unsent: deque[Outgoing] = field(default_factory=deque)
    """Deliveries that wait until the client has taken earlier ones."""
    in_flight: int = 0
    """The cost of `sent`."""
    waiting: int = 0
    """The cost of `unsent`."""
    is_lagging: bool = False
    """Whether it reads what was published and did not fit into the queue."""
    timed_entry: tuple[int, int] | None = None
    """The publication that is timed: the length of the journal with it, and when it came."""
    timed_delivery: tuple[int, int, int] | None = None
    """The delivery that is timed: its place, its number once it was sent, and when it was due."""
    next_number: int = 1
    next_place: int = 1
    position_sent: tuple[int, int] = 0, 0
    """The last `Position` that was sent: its place in the queue, and the position."""
    is_connected: bool = True
    readings: dict[int, "Reading"] = field(default_factory=dict)
    history_bytes: int = 0
    """How much of what these read was put into the queue since somebody asked for it."""
    last_closed: tuple[int, int] | None = None
    """The answer of the old broker, or of a holder of its sealed journal: clock and last number."""


@dataclass(eq=False)
class Source:
    """The entries that a reading has of one journal, and the members that it asks for more."""

    incarnation: Incarnation
    upto: int
    """All that matches, with a timestamp up to this, has come."""
    events: deque[Events] = field(default_factory=deque)
    """Entries that are not in the session's queue yet."""
    asked: Incarnation | None = None
    """The member that was asked for the next page, and has not answered."""
    waited: int = 0
    """Ticks since then."""
    tried: set[str] = field(default_factory=set)
    """The members that do not have the next page."""
    dropped: int = 0
    """If all of them have dropped what follows: up to which timestamp at least;"""
    lost: Ranges | None = None
    """with which numbers, if that is known."""


@dataclass(eq=False)
class Reading:
    """History that subscriptions of one client read, in one order."""

    number: int
    session: Session
    subscriptions: dict[str, LocalSubscription]
    position: int
    """Everything with a timestamp up to this was put into the session's queue."""
    until: int
    """Where it ends; 0 if it goes over to what is published."""
    is_resuming: bool
    """Whether these subscriptions were live before: all such of a client read together."""
    filter: str = ""
    """Matches whatever one of them wants, and maybe more."""
    is_earliest: bool = False
    """Whether it begins with what is kept, and has got nothing yet."""
    target: int = 0
    """The final position up to which this round reads."""
    sources: dict[Incarnation, Source] = field(default_factory=dict)
    lost: Ranges = field(default_factory=dict)
    """Numbers that nobody has any more, of which the client was not told."""
    gap_until: int = 0
    """Up to this timestamp something is lost of which not even the numbers are known."""
    kept: Kept | None = None
    """The events that were published meanwhile, if they are kept."""


follow(LocalSubscription, "state", LOCALS)
follow(Session, "phase", SESSIONS)
