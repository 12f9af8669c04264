"""The messages between clients and brokers.

Every message contains its session: a number that the client increases with each attempt to attach.
"""

from typing import TypeAlias, get_args

import msgspec

from gapless.event_runs import EventRun
from gapless.positions import NO_EVENTS, TIMESTAMP_MAX, Volume
from gapless.protocols.gapless.durable.client_messages import DURABLE_CALLS, DealtNote, DurableAnswer
from gapless.protocols.gapless.identities import Incarnation, Timed
from gapless.protocols.parts.messages import Cuts, Message
from gapless.protocols.parts.ranges import Ranges

__all__ = [
    "ANSWERS",
    "CLIENT_MESSAGES",
    "NEWEST",
    "Active",
    "Attach",
    "ClientAdvertise",
    "ClientGot",
    "ClientLost",
    "ClientPublish",
    "ClientSubscribe",
    "ClientUnadvertise",
    "ClientUnsubscribe",
    "ClientWish",
    "Closed",
    "Confirmed",
    "Delivery",
    "Detach",
    "Granted",
    "Lagging",
    "LossKept",
    "Missing",
    "Note",
    "Position",
    "Reached",
    "Ready",
    "Retry",
    "Stable",
    "Unadvertised",
    "Unsubscribed",
]  # fmt: skip


class _OfSession(Message, frozen=True):
    session: int


class Attach(_OfSession, frozen=True):
    """A client's request for a session; the client sends nothing else before it receives `Ready`."""

    incarnation: Incarnation | None
    """The incarnation that sent the client the latest `Ready`."""
    resumes: int
    """The number of the client's session with that incarnation. The session continues if the broker still has it."""
    received: int
    """The number of the last delivery that arrived in that session."""
    largest: int
    """The largest timestamp delivered to the client."""
    published: int
    """The number of the client's last publication."""
    confirmed: int
    """The number of the client's last confirmed publication."""
    base: int = 0
    """The number of the client's last publication before it attached to that incarnation."""
    settled: int = 0
    """The number of the last publication that all brokers have processed, as far as the client knows."""


class ClientAdvertise(_OfSession, frozen=True):
    """Declares that the client may publish events that match the filter."""

    advertisement: str
    filter: str


class ClientUnadvertise(_OfSession, frozen=True):
    """Withdraws an advertisement: no later publication of the client relies on it."""

    advertisement: str


class Detach(_OfSession, frozen=True):
    """Ends a session that was opened after the client had attached to another broker."""


class ClientSubscribe(_OfSession, frozen=True):
    """Subscribes the client to events that match the filter."""

    subscription: str
    filter: str
    since: int = -1
    """The subscription starts after this timestamp. `NEWEST` is the largest timestamp given so far; -1 starts
    it now."""
    until: int = 0
    """The subscription ends after this timestamp, unless it is 0. `NEWEST` is the largest timestamp given so far."""
    is_resumed: bool = False
    """Whether the subscription was active at another broker, which has delivered everything up to `since`."""
    ticket: bytes = b""
    """The ticket from the `Active` message of that broker."""
    survey: Volume | None = None
    """If present, only count matching events and deliver none: each `Reached` counts at most this volume, unless more
    events share a timestamp."""


class ClientUnsubscribe(_OfSession, frozen=True):
    """Ends the subscription."""

    subscription: str


class ClientPublish(_OfSession, frozen=True):
    """The client's next events."""

    events: EventRun


class ClientLost(_OfSession, frozen=True):
    """Reports that these publications are lost and may have matched the filter. Brokers forward the report to the
    affected subscriptions."""

    first: int
    last: int
    settled: int
    filter: str
    times: tuple[Timed, ...] = ()
    """The known times at which these publications were made, in order."""


class ClientGot(_OfSession, frozen=True):
    """Reports that the application has taken all deliveries up to this number."""

    number: int


class ClientWish(_OfSession, frozen=True):
    """Asks whether the preferred broker of the client is available."""

    broker: str


NEWEST = TIMESTAMP_MAX
"""A placeholder for the newest timestamp, which the broker fills in."""
CLIENT_MESSAGES = (
    Attach, Detach, ClientAdvertise, ClientUnadvertise, ClientSubscribe, ClientUnsubscribe, ClientPublish, ClientGot,
    ClientLost, ClientWish, *DURABLE_CALLS,
)  # fmt: skip
"""The messages that a broker accepts from a client."""


class Ready(_OfSession, frozen=True):
    """Reports that the session is open. If `is_resumed`, it is the previous session, and the client repeats nothing."""

    incarnation: Incarnation
    last: int
    """The client's largest publication number that any broker has admitted. All numbers up to it are confirmed."""
    contacts: list[str]
    is_resumed: bool
    sealed: list[tuple[Incarnation, int]]
    """Seals: timestamps of a broker's incarnations below the given one are valid only up to the given clock (see
    `Active.begin`)."""


class Retry(_OfSession, frozen=True):
    """Reports that the session cannot be opened yet; `reason` says why. The broker keeps trying."""

    reason: str


class Closed(_OfSession, frozen=True):
    """Reports that the broker has closed the session; the client must attach to another broker."""

    reason: str
    is_superseded: bool = False
    """Whether another process continues as this client, so that this one must not attach again."""


class Granted(_OfSession, frozen=True):
    """Tells the client that its preferred broker is available again."""

    broker: str


class Active(_OfSession, frozen=True):
    """Reports that the subscription is active."""

    number: int
    subscription: str
    cuts: Cuts
    begin: int
    """An event of a publisher without a cut is due if its timestamp is larger than this."""
    position: int
    """The last final position before `begin`; for a subscription that starts in the past, its start."""
    until: int = 0
    """The end of the subscription; 0 if it has none."""
    ticket: bytes = b""
    """Proves to other brokers that the client may read the subscription's events from `position` on (see
    `Owners.ticket`)."""


class Stable(_OfSession, frozen=True):
    """Reports that all brokers know the advertisement."""

    advertisement: str


class Unadvertised(_OfSession, frozen=True):
    """Reports that the advertisement has ended."""

    advertisement: str


class Confirmed(_OfSession, frozen=True):
    """Reports that f + 1 brokers have all publications up to this number."""

    last: int
    settled: int = 0
    """The number up to which all brokers have processed the publications."""
    first: int = 0
    """The publications from this number to the last one have the same timestamp."""
    timestamp: int = 0


class Missing(_OfSession, frozen=True):
    """Reports that no broker has these publications any more, although they were confirmed or delivered to some
    subscribers. The client answers with `ClientLost`."""

    first: int
    last: int
    settled: int
    """The number up to which all brokers had processed the publications, so that only history reads miss them."""


class LossKept(_OfSession, frozen=True):
    """Reports that f + 1 brokers have the loss report of all publications up to this number."""

    last: int


class Position(_OfSession, frozen=True):
    """Reports that everything up to this timestamp has been sent for all live subscriptions of the client."""

    number: int
    position: int


class Reached(_OfSession, frozen=True):
    """Reports that everything up to this timestamp has been sent for these subscriptions, which read history."""

    number: int
    position: int
    subscriptions: list[str]
    is_live: bool
    """Whether live events follow."""
    gap: tuple[int, int] | None = None
    """Two timestamps between which an unknown part of history is lost. The first is 0 if the loss starts at the
    beginning of the retained history."""
    lost: Ranges = msgspec.field(default_factory=dict)
    """The numbers of events that no broker has any more."""
    counted: Volume = NO_EVENTS
    """For a survey: the volume of the matching events since the previous `Reached`."""


class Lagging(_OfSession, frozen=True):
    """Reports that too many deliveries were waiting for the client, so these subscriptions read the unsent ones from
    history."""

    number: int
    position: int
    subscriptions: list[str]


class Delivery(_OfSession, frozen=True):
    """Events for some of the client's subscriptions. `number` counts the session's deliveries and notes."""

    number: int
    events: EventRun
    subscriptions: list[str]


class Unsubscribed(_OfSession, frozen=True):
    """Reports that a subscription has ended and receives nothing more."""

    number: int
    subscription: str


Note: TypeAlias = Active | Position | Reached | Lagging | Unsubscribed | DealtNote
Answer: TypeAlias = (
    Ready | Retry | Closed | Granted | Active | Stable | Unadvertised | Confirmed | Position | Reached | Lagging
    | Delivery | Unsubscribed | DealtNote | Missing | LossKept | DurableAnswer
)  # fmt: skip
ANSWERS = get_args(Answer)
"""The messages that a broker sends to a client."""
