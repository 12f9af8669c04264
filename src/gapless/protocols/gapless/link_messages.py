"""The messages along the links of the tree: publications, the routing tables, and waves.

A `LinkMessage` belongs to one installation of one link, named by its `tag`.
"""

from typing import TypeAlias

import msgspec

from gapless.events import Events
from gapless.protocols.gapless.identities import Attempt, Incarnation, Name
from gapless.protocols.parts.messages import Cuts, Message

__all__ = [
    "ActivateSubscription", "AddAdvertisement", "AddSubscription", "AdvertisementAck", "CutAnswer", "Echo", "Final",
    "FinalPosition", "LinkBody", "LinkMessage", "Publication", "RemoveAdvertisement", "RemoveSubscription", "Void",
    "Wave",
]  # fmt: skip


class Publication(Message, frozen=True):
    """Events of one publisher, in order."""

    events: Events


class AddSubscription(Message, frozen=True):
    """Somebody behind the sender subscribes."""

    name: Name
    filter: str
    attempt: Attempt
    is_active: bool


class RemoveSubscription(Message, frozen=True):
    """The subscription ended."""

    name: Name


class ActivateSubscription(Message, frozen=True):
    """The attempt succeeded: from now on the subscription may represent others."""

    name: Name
    attempt: Attempt


class CutAnswer(Message, frozen=True):
    """The marker: from these numbers on, events of these publishers reach the subscription."""

    name: Name
    attempt: Attempt
    cuts: Cuts


class AddAdvertisement(Message, frozen=True):
    """Somebody behind the sender may publish what matches the filter, with numbers above `last`."""

    name: Name
    filter: str
    attempt: Attempt
    last: int
    home: Incarnation
    """The publisher's broker."""
    base: int
    """The publisher's events from before it came there have numbers up to this."""


class RemoveAdvertisement(Message, frozen=True):
    """The advertisement ended: nothing published from now on relies on it."""

    name: Name
    attempt: Attempt
    last: int
    """No event that relied on it has a larger number."""


class AdvertisementAck(Message, frozen=True):
    """All brokers behind the sender have the advertisement, and have sent the subscriptions that overlap."""

    name: Name
    attempt: Attempt
    last: int
    """None of them has seen a larger number of the publisher."""


class Void(Message, frozen=True):
    """A handover crossed the path of this attempt: the owner's broker starts it again, unless it has completed."""

    name: Name
    attempt: Attempt
    is_subscription: bool


class FinalPosition(Message, frozen=True):
    """A final position: no event can be admitted any more with a timestamp up to `timestamp`."""

    timestamp: int = 0
    sealed: list[tuple[Incarnation, int]] = msgspec.field(default_factory=list)
    """The seals that the position includes: each of all incarnations of a broker below a number, with the largest clock
    of the handover that removed them."""
    newest: int = 0
    """No event that was admitted has a larger timestamp up to there."""


class Wave(Message, frozen=True):
    """The root proposes a position. All clocks pass it."""

    timestamp: int
    stable: int
    """All brokers have processed everything with a timestamp up to this."""


class Echo(Message, frozen=True):
    """All brokers behind the sender have released what they had admitted when the wave came."""

    timestamp: int
    sealed: list[tuple[Incarnation, int]]
    final: int
    """The smallest final position among them."""
    newest: int
    """The largest timestamp of an event in their journals."""


class Final(Message, frozen=True):
    """The position is final."""

    position: FinalPosition


LinkBody: TypeAlias = (
    Publication | AddSubscription | RemoveSubscription | ActivateSubscription | CutAnswer | AddAdvertisement
    | RemoveAdvertisement | AdvertisementAck | Void | Wave | Echo | Final
)  # fmt: skip


class LinkMessage(Message, frozen=True):
    """A message along one installation of a link."""

    tag: int
    body: LinkBody
