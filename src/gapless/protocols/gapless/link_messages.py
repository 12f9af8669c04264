"""The messages along the links of the tree: publications, the routing tables, and waves.

A `LinkMessage` belongs to one installation of one link, named by its `tag`.
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
    """A new subscription of a client behind the sender."""

    name: Name
    filter: str
    attempt: Attempt
    is_active: bool


class RemoveSubscription(Message, frozen=True):
    """Says that the subscription ended."""

    name: Name


class ActivateSubscription(Message, frozen=True):
    """Says that the attempt succeeded: from now on the subscription can represent others."""

    name: Name
    attempt: Attempt


class CutAnswer(Message, frozen=True):
    """The marker: from these numbers on, events of these publishers reach the subscription."""

    name: Name
    attempt: Attempt
    cuts: Cuts


class AddAdvertisement(Message, frozen=True):
    """Says that a publisher behind the sender may publish events that match the filter, with numbers above `last`."""

    name: Name
    filter: str
    attempt: Attempt
    last: int
    home: Incarnation
    """The publisher's broker."""
    base: int
    """The last number of the publisher before it came there."""


class RemoveAdvertisement(Message, frozen=True):
    """Says that the advertisement ended: no later event relies on it."""

    name: Name
    attempt: Attempt
    last: int
    """No event that relied on it has a larger number."""


class AdvertisementAck(Message, frozen=True):
    """Says that all brokers behind the sender have the advertisement, and have sent the overlapping subscriptions."""

    name: Name
    attempt: Attempt
    last: int
    """The largest number of the publisher that any of them has seen."""


class Void(Message, frozen=True):
    """Says that a handover crossed the path of this attempt: the owner's broker restarts it, unless it has
    completed."""

    name: Name
    attempt: Attempt
    is_subscription: bool


class FinalPosition(Message, frozen=True):
    """A final position: no further event with a timestamp up to `timestamp` can be admitted."""

    timestamp: int = 0
    sealed: list[tuple[Incarnation, int]] = msgspec.field(default_factory=list)
    """The seals that the position includes: each of all incarnations of a broker below a number, with the largest clock
    of the handover that removed them."""
    newest: int = 0
    """The largest timestamp of an admitted event up to there."""


class Wave(Message, frozen=True):
    """A position proposed by the root. All clocks advance past it."""

    timestamp: int
    stable: int
    """All brokers have processed everything with a timestamp up to this."""


class Echo(Message, frozen=True):
    """Says that all brokers behind the sender have released everything they had admitted when the wave arrived."""

    timestamp: int
    sealed: list[tuple[Incarnation, int]]
    final: int
    """The smallest final position among them."""
    newest: int
    """The largest timestamp of an event in their journals."""


class Final(Message, frozen=True):
    """Says that the position is final."""

    position: FinalPosition


LinkBody: TypeAlias = (
    Publication | AddSubscription | RemoveSubscription | ActivateSubscription | CutAnswer | AddAdvertisement
    | RemoveAdvertisement | AdvertisementAck | Void | Wave | Echo | Final
)  # fmt: skip


class LinkMessage(Message, frozen=True):
    """A message along one installation of a link."""

    tag: int
    body: LinkBody
