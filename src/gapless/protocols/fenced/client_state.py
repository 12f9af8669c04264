"""What a broker keeps for its clients, as plain data: sessions, their subscriptions, and what these read."""

from collections import deque
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from gapless.events import Events
from gapless.filters import Filter
from gapless.protocols.fenced.client_messages import Attach
from gapless.protocols.fenced.messages import Attempt, Incarnation, Name

__all__ = ["LocalState", "LocalSubscription", "Reading", "Session", "SessionPhase"]


class LocalState(Enum):
    """PENDING -> LIVE, or, if it is resumed, PENDING -> READING -> LIVE."""

    PENDING = "pending"
    READING = "reading"
    LIVE = "live"


@dataclass(eq=False)
class LocalSubscription:
    """A subscription of a client that has its session here."""

    name: Name
    filter: Filter
    attempt: Attempt
    resumes_from: int | None
    """If it was active elsewhere: its position."""
    state: LocalState = LocalState.PENDING
    cuts: dict[str, int] = field(default_factory=dict)
    expected: set[str] = field(default_factory=set)
    """The publishers that have to answer."""
    begin: int = 0
    position: int = 0
    buffer: list[Events] = field(default_factory=list)
    """What matched since the attempt began."""
    target: int = 0
    """While it reads: the first final position from here on is where history ends."""


class SessionPhase(Enum):
    """WAITING (for the fence) -> OPEN -> CLOSING (publications are being released)."""

    WAITING = "waiting"
    OPEN = "open"
    CLOSING = "closing"


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
    unreleased: int = 0
    """Journal entries of this client that are not released yet."""
    closes_for: list[tuple[str, int]] = field(default_factory=list)
    """The brokers that asked to close it, with the client's new sessions there."""
    last_queued: int = 0
    """The largest number of a publication that came in this session."""
    sent: deque[tuple[Any, int]] = field(default_factory=deque)
    """Deliveries and notes that the client has not acknowledged, each with the number of its events."""
    unsent: deque[tuple[Any, int]] = field(default_factory=deque)
    """Those that wait until the client has taken earlier ones."""
    in_flight: int = 0
    """Events in `sent`."""
    next_number: int = 1
    is_connected: bool = True
    last_closed: tuple[int, int] | None = None
    """What the old broker, or a holder of its sealed journal, answered: clock and last number."""


@dataclass(eq=False)
class Reading:
    """History that a resumed subscription of a local client reads."""

    request: int
    subscriptions: list[LocalSubscription]
    since: int
    until: int
    complete: set[Incarnation] = field(default_factory=set)
    """The incarnations whose journals have been read."""
    events: dict[tuple[str, int], Any] = field(default_factory=dict)
