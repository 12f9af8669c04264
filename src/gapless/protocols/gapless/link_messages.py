"""The messages on the links of the tree: publications, routing tables, and waves.

A `LinkMessage` belongs to one installation of one link, which its `tag` identifies.
"""

from typing import TypeAlias

import msgspec

from gapless.event_runs import EventRun
from gapless.protocols.gapless.identities import Attempt, Incarnation, Name
from gapless.protocols.parts.messages import Cuts, Message

__all__ = [
    "ActivateSubscription", "AddAdvertisement", "AddSubscription", "AdvertisementAck", "CutAnswer", "Echo", "Final",
    "FinalPosition", "LinkBody", "LinkMessage", "Publication", "RemoveAdvertisement", "RemoveSubscription", "Void",
    "Wave",
]  # fmt: skip


class Publication(Message, frozen=True):
    """Events of one publisher, in order."""

    events: EventRun


class AddSubscription(Message, frozen=True):
    """Adds a subscription of a client behind the sender."""

    name: Name
    filter: str
    attempt: Attempt
    is_active: bool


class RemoveSubscription(Message, frozen=True):
    """Reports that a subscription has ended."""

    name: Name


class ActivateSubscription(Message, frozen=True):
    """Reports that a subscription is active, so that it can represent others."""

    name: Name
    attempt: Attempt


class CutAnswer(Message, frozen=True):
    """The marker of a subscription: events of these publishers from these numbers on reach the subscription."""

    name: Name
    attempt: Attempt
    cuts: Cuts


class AddAdvertisement(Message, frozen=True):
    """Adds an advertisement of a publisher behind the sender, for events with numbers above `last`."""

    name: Name
    filter: str
    attempt: Attempt
    last: int
    home: Incarnation
    """The publisher's broker."""
    base: int
    """The publisher's last number before it attached to that broker."""


class RemoveAdvertisement(Message, frozen=True):
    """Reports that an advertisement has ended: no later event relies on it."""

    name: Name
    attempt: Attempt
    last: int
    """The largest number of an event that may have relied on the advertisement."""


class AdvertisementAck(Message, frozen=True):
    """Reports that all brokers behind the sender have the advertisement and have sent the overlapping subscriptions."""

    name: Name
    attempt: Attempt
    last: int
    """The publisher's largest number that any of these brokers has seen."""


class Void(Message, frozen=True):
    """Reports that a handover has crossed the path of an attempt. The broker of the attempt's client restarts it,
    unless it has succeeded."""

    name: Name
    attempt: Attempt
    is_subscription: bool


class FinalPosition(Message, frozen=True):
    """A final position: no further event with a timestamp up to `timestamp` can be admitted."""

    timestamp: int = 0
    sealed: list[tuple[Incarnation, int]] = msgspec.field(default_factory=list)
    """The seals that the position includes. Each one covers all of a broker's incarnations below a number, and has the
    largest clock of the handover that removed them."""
    newest: int = 0
    """The largest timestamp of an admitted event up to this position."""


class Wave(Message, frozen=True):
    """Proposes a position, sent by the root. Each broker advances its clock past it."""

    timestamp: int
    stable: int
    """The timestamp up to which all brokers have processed everything."""


class Echo(Message, frozen=True):
    """Reports that all brokers behind the sender have released everything they had admitted when the wave arrived."""

    timestamp: int
    sealed: list[tuple[Incarnation, int]]
    final: int
    """The smallest final position known to any of these brokers."""
    newest: int
    """The largest timestamp of an event in the journals of these brokers."""


class Final(Message, frozen=True):
    """Reports that the position is final."""

    position: FinalPosition


LinkBody: TypeAlias = (
    Publication | AddSubscription | RemoveSubscription | ActivateSubscription | CutAnswer | AddAdvertisement
    | RemoveAdvertisement | AdvertisementAck | Void | Wave | Echo | Final
)  # fmt: skip


class LinkMessage(Message, frozen=True):
    """A message on one installation of a link."""

    tag: int
    body: LinkBody
