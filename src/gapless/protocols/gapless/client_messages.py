"""The messages between clients and brokers of the protocol.

Every message carries the session it belongs to: a number that the client increases with each attempt to attach.
"""

from typing import TypeAlias, get_args

import msgspec

from gapless.events import Events
from gapless.positions import TIMESTAMP_MAX
from gapless.protocols.gapless.durable.client_messages import DURABLE_CALLS, DealtNote, DurableAnswer
from gapless.protocols.gapless.identities import Incarnation
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
    """A client asks for a session; nothing else is sent before `Ready`."""

    incarnation: Incarnation | None
    """The incarnation that last said `Ready`."""
    resumes: int
    """The session that the client had there: it goes on if that incarnation still has it."""
    received: int
    """The last delivery that arrived in it."""
    largest: int
    """The largest timestamp that was delivered to the client."""
    published: int
    """The last of its publications."""
    confirmed: int
    """The last one that it knows to be confirmed."""
    base: int = 0
    """The last one before it came to that incarnation."""
    settled: int = 0
    """The last one that it knows all brokers to have processed."""


class ClientAdvertise(_OfSession, frozen=True):
    """The client may publish what matches the filter."""

    advertisement: str
    filter: str


class ClientUnadvertise(_OfSession, frozen=True):
    """The client's later publications do not rely on the advertisement."""

    advertisement: str


class Detach(_OfSession, frozen=True):
    """The session was opened when the client had gone on to another broker: end it."""


class ClientSubscribe(_OfSession, frozen=True):
    """The client wants what matches the filter."""

    subscription: str
    filter: str
    since: int = -1
    """Everything with a larger timestamp, too; `NEWEST`: than any that was given by now."""
    until: int = 0
    """If it is not 0: nothing with a larger timestamp, and then the subscription ends. `NEWEST`, as above."""
    is_resumed: bool = False
    """It was active elsewhere: everything up to `since` has been delivered."""
    ticket: bytes = b""
    """The ticket of `Active` from there."""


class ClientUnsubscribe(_OfSession, frozen=True):
    """The client ends the subscription."""

    subscription: str


class ClientPublish(_OfSession, frozen=True):
    """The client's next events."""

    events: Events


class ClientLost(_OfSession, frozen=True):
    """These publications are lost, and may have matched the filter: tell whoever may lack them."""

    first: int
    last: int
    settled: int
    filter: str


class ClientGot(_OfSession, frozen=True):
    """The application has taken every delivery up to this number."""

    number: int


class ClientWish(_OfSession, frozen=True):
    """The client would rather be at this broker: does it work?"""

    broker: str


NEWEST = TIMESTAMP_MAX
"""Stands for the newest timestamp, which the broker knows."""
CLIENT_MESSAGES = (
    Attach, Detach, ClientAdvertise, ClientUnadvertise, ClientSubscribe, ClientUnsubscribe, ClientPublish, ClientGot,
    ClientLost, ClientWish, *DURABLE_CALLS,
)  # fmt: skip
"""All that a broker accepts from a client."""


class Ready(_OfSession, frozen=True):
    """The session is open. `is_resumed`: it is the one that the client had, so the client repeats nothing."""

    incarnation: Incarnation
    last: int
    """The client's last number that was admitted anywhere: it is confirmed."""
    contacts: list[str]
    is_resumed: bool
    sealed: list[tuple[Incarnation, int]]
    """Times of all incarnations of a broker below a number count only up to a clock (see `Active.begin`)."""


class Retry(_OfSession, frozen=True):
    """The session cannot be opened yet; `reason` says what it waits for. The broker goes on trying."""

    reason: str


class Closed(_OfSession, frozen=True):
    """The broker no longer has the session: attach elsewhere."""

    reason: str
    is_superseded: bool = False
    """Another process has gone on as this client: do not attach again."""


class Granted(_OfSession, frozen=True):
    """The broker that the client wished for works: it may attach there."""

    broker: str


class Active(_OfSession, frozen=True):
    """The attempt to subscribe succeeded."""

    number: int
    subscription: str
    cuts: Cuts
    begin: int
    """Events of publishers without a cut are due if their timestamp is larger."""
    position: int
    """The final position before `begin`; if it begins in the past: where."""
    until: int = 0
    """If it ends: where."""
    ticket: bytes = b""
    """Proves to other brokers that the client has had the subscription from the position on (`Owners.ticket`)."""


class Stable(_OfSession, frozen=True):
    """All brokers know the advertisement."""

    advertisement: str


class Unadvertised(_OfSession, frozen=True):
    """The advertisement has ended."""

    advertisement: str


class Confirmed(_OfSession, frozen=True):
    """Publications up to this number are held by f + 1 brokers."""

    last: int
    settled: int = 0
    """All brokers have processed those up to this one."""


class Missing(_OfSession, frozen=True):
    """Nobody holds these publications any more, though they were confirmed, or came to some. `ClientLost` follows."""

    first: int
    last: int
    settled: int
    """All brokers have processed those up to this one: only readers of history miss them."""


class LossKept(_OfSession, frozen=True):
    """f + 1 brokers hold that everything up to this number that was said to be lost is lost."""

    last: int


class Position(_OfSession, frozen=True):
    """Everything with a timestamp up to this has been sent, for all subscriptions of the client that are live."""

    number: int
    position: int


class Reached(_OfSession, frozen=True):
    """Everything with a timestamp up to this has been sent, for these subscriptions, which read history."""

    number: int
    position: int
    subscriptions: list[str]
    is_live: bool
    """Whether what follows is what is published."""
    gap: tuple[int, int] | None = None
    """Of what was admitted between these timestamps something is lost, nobody knows what. From 0: the beginning of what
    is kept."""
    lost: Ranges = msgspec.field(default_factory=dict)
    """Numbers that nobody has any more."""


class Lagging(_OfSession, frozen=True):
    """Too much waits for the client: these subscriptions read from a position on what was not sent."""

    number: int
    position: int
    subscriptions: list[str]


class Delivery(_OfSession, frozen=True):
    """Events for some of the client's subscriptions; `number` counts deliveries and notes in the session."""

    number: int
    events: Events
    subscriptions: list[str]


class Unsubscribed(_OfSession, frozen=True):
    """The subscription ended: nothing more follows for it."""

    number: int
    subscription: str


Note: TypeAlias = Active | Position | Reached | Lagging | Unsubscribed | DealtNote
Answer: TypeAlias = (
    Ready | Retry | Closed | Granted | Active | Stable | Unadvertised | Confirmed | Position | Reached | Lagging
    | Delivery | Unsubscribed | DealtNote | Missing | LossKept | DurableAnswer
)  # fmt: skip
ANSWERS = get_args(Answer)
"""All that a broker sends to a client."""
