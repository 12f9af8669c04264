"""The messages between clients and brokers of the protocol.

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
    """A client's request for a session; it sends nothing else before `Ready`."""

    incarnation: Incarnation | None
    """The incarnation that last said `Ready`."""
    resumes: int
    """The client's session there: it continues if that incarnation still has it."""
    received: int
    """The last delivery that arrived in it."""
    largest: int
    """The largest timestamp delivered to the client."""
    published: int
    """The number of its last publication."""
    confirmed: int
    """The number of the last publication that it knows to be confirmed."""
    base: int = 0
    """The number of its last publication before it came to that incarnation."""
    settled: int = 0
    """The number of the last publication that it knows all brokers to have processed."""


class ClientAdvertise(_OfSession, frozen=True):
    """Says that the client may publish events that match the filter."""

    advertisement: str
    filter: str


class ClientUnadvertise(_OfSession, frozen=True):
    """Says that the client's later publications do not rely on the advertisement."""

    advertisement: str


class Detach(_OfSession, frozen=True):
    """Ends a session that was opened after the client had moved to another broker."""


class ClientSubscribe(_OfSession, frozen=True):
    """Subscribes the client to events that match the filter."""

    subscription: str
    filter: str
    since: int = -1
    """Include everything with a larger timestamp. `NEWEST`: larger than any timestamp given so far."""
    until: int = 0
    """If it is not 0: the subscription ends after this timestamp. `NEWEST` as above."""
    is_resumed: bool = False
    """Whether it was active at another broker, so that everything up to `since` has been delivered."""
    ticket: bytes = b""
    """The ticket that `Active` contained there."""
    survey: Volume | None = None
    """For a survey, which delivers no events: `Reached` counts at most this volume, unless events share a timestamp."""


class ClientUnsubscribe(_OfSession, frozen=True):
    """Ends the subscription."""

    subscription: str


class ClientPublish(_OfSession, frozen=True):
    """The client's next events."""

    events: EventRun


class ClientLost(_OfSession, frozen=True):
    """Says that these publications are lost, and may have matched the filter. Brokers report this to affected
    subscriptions."""

    first: int
    last: int
    settled: int
    filter: str
    times: tuple[Timed, ...] = ()
    """When the publications were made, as far as the publisher knows, in order."""


class ClientGot(_OfSession, frozen=True):
    """Says that the application has taken every delivery up to this number."""

    number: int


class ClientWish(_OfSession, frozen=True):
    """Asks whether the preferred broker of the client is available."""

    broker: str


NEWEST = TIMESTAMP_MAX
"""Stands for the newest timestamp, which the broker knows."""
CLIENT_MESSAGES = (
    Attach, Detach, ClientAdvertise, ClientUnadvertise, ClientSubscribe, ClientUnsubscribe, ClientPublish, ClientGot,
    ClientLost, ClientWish, *DURABLE_CALLS,
)  # fmt: skip
"""The messages that a broker accepts from a client."""


class Ready(_OfSession, frozen=True):
    """Says that the session is open. `is_resumed`: it is the previous one, so the client repeats nothing."""

    incarnation: Incarnation
    last: int
    """The client's last number that any broker has admitted: it is confirmed."""
    contacts: list[str]
    is_resumed: bool
    sealed: list[tuple[Incarnation, int]]
    """Timestamps of a broker's incarnations below a number are valid only up to a clock (see `Active.begin`)."""


class Retry(_OfSession, frozen=True):
    """Says that the session cannot be opened yet; `reason` says what it waits for. The broker continues to try."""

    reason: str


class Closed(_OfSession, frozen=True):
    """Says that the broker no longer has the session: the client must attach elsewhere."""

    reason: str
    is_superseded: bool = False
    """Whether another process continues as this client: then it must not attach again."""


class Granted(_OfSession, frozen=True):
    """Says that the preferred broker is available: the client can attach there."""

    broker: str


class Active(_OfSession, frozen=True):
    """Says that the attempt to subscribe succeeded."""

    number: int
    subscription: str
    cuts: Cuts
    begin: int
    """Events of publishers without a cut are due if their timestamp is larger."""
    position: int
    """The final position before `begin`; for a subscription that begins in the past, its beginning."""
    until: int = 0
    """The end of the subscription, if it has one."""
    ticket: bytes = b""
    """Proves to other brokers that the client has had the subscription from the position on (`Owners.ticket`)."""


class Stable(_OfSession, frozen=True):
    """Says that all brokers know the advertisement."""

    advertisement: str


class Unadvertised(_OfSession, frozen=True):
    """Says that the advertisement has ended."""

    advertisement: str


class Confirmed(_OfSession, frozen=True):
    """Says that f + 1 brokers have the publications up to this number."""

    last: int
    settled: int = 0
    """All brokers have processed the publications up to this number."""
    first: int = 0
    """The publications from this one to the last have the same timestamp."""
    timestamp: int = 0


class Missing(_OfSession, frozen=True):
    """Says that no broker still holds these publications, though they were confirmed, or delivered to some.
    `ClientLost` follows."""

    first: int
    last: int
    settled: int
    """All brokers have processed the publications up to this number: only readers of history miss them."""


class LossKept(_OfSession, frozen=True):
    """Says that f + 1 brokers have the report of all losses up to this number."""

    last: int


class Position(_OfSession, frozen=True):
    """Says that everything up to this timestamp has been sent, for all live subscriptions of the client."""

    number: int
    position: int


class Reached(_OfSession, frozen=True):
    """Says that everything up to this timestamp has been sent, for these subscriptions, which read history."""

    number: int
    position: int
    subscriptions: list[str]
    is_live: bool
    """Whether live events follow."""
    gap: tuple[int, int] | None = None
    """Two timestamps between which an unknown part of the history is lost. From 0: the beginning of the retained
    history."""
    lost: Ranges = msgspec.field(default_factory=dict)
    """Numbers of events that no broker still holds."""
    counted: Volume = NO_EVENTS
    """In a survey: the volume of the matching events since the previous `Reached`."""


class Lagging(_OfSession, frozen=True):
    """Says that too many deliveries wait for the client: these subscriptions read the unsent ones from history."""

    number: int
    position: int
    subscriptions: list[str]


class Delivery(_OfSession, frozen=True):
    """Events for some of the client's subscriptions; `number` counts deliveries and notes in the session."""

    number: int
    events: EventRun
    subscriptions: list[str]


class Unsubscribed(_OfSession, frozen=True):
    """Says that the subscription ended: nothing more follows for it."""

    number: int
    subscription: str


Note: TypeAlias = Active | Position | Reached | Lagging | Unsubscribed | DealtNote
Answer: TypeAlias = (
    Ready | Retry | Closed | Granted | Active | Stable | Unadvertised | Confirmed | Position | Reached | Lagging
    | Delivery | Unsubscribed | DealtNote | Missing | LossKept | DurableAnswer
)  # fmt: skip
ANSWERS = get_args(Answer)
"""The messages that a broker sends to a client."""
