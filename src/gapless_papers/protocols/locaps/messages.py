"""The messages between brokers and clients of the `locaps` protocol.

Subscriptions and advertisements are named `client/number` between brokers: the client numbers its calls, so a name that
its user reuses denotes two things here, and no late marker is mistaken for another's.
"""

from typing import TypeAlias

import msgspec

from gapless.events import Event
from gapless.protocols.parts.messages import (
    ClientAdvertise,
    ClientPublish,
    ClientSubscribe,
    ClientUnadvertise,
    ClientUnsubscribe,
    ClientWord,
    Cuts,
    Message,
    Started,
)

__all__ = [
    "AddAdvertisement",
    "AddSubscription",
    "AdvertisementStable",
    "AskBackup",
    "AskPartial",
    "BackupCopy",
    "ClientAdvertise",
    "ClientPublish",
    "ClientReturn",
    "ClientSubscribe",
    "ClientUnadvertise",
    "ClientUnsubscribe",
    "ClientWord",
    "Confirmation",
    "Content",
    "Cuts",
    "Dead",
    "Delivery",
    "Done",
    "Due",
    "EndSubscription",
    "ForgetSubscription",
    "FromBroker",
    "FromClient",
    "FromNeighbour",
    "Hop",
    "Keep",
    "Kept",
    "Marker",
    "Packet",
    "PartialMarker",
    "PathMarker",
    "PathSubscribe",
    "PivotMarker",
    "Publication",
    "RemoveAdvertisement",
    "RemoveSubscription",
    "Stable",
    "Started",
    "Takeover",
    "ToClient",
]  # fmt: skip


Due: TypeAlias = dict[str, dict[str, int]]
"""By broker and stream, the number up to which the broker must have processed the stream first."""


# ---- between brokers --------------------------------------------------------------------------------------


class Publication(Message, frozen=True):
    """An event in transit."""

    event: Event


class AddAdvertisement(Message, frozen=True):
    """Announces that a publisher can publish events that match the filter. Answered by `AdvertisementStable`."""

    advertisement: str
    publisher: str
    filter: str
    epoch: int = 0
    """On a graph: the number of the publisher's brokers that have failed."""


class AdvertisementStable(Message, frozen=True):
    """Confirms that all brokers behind the sender have forwarded their matching subscriptions towards the publisher."""

    advertisement: str


class RemoveAdvertisement(Message, frozen=True):
    """Announces that the publisher publishes nothing more under this advertisement."""

    advertisement: str


class AddSubscription(Message, frozen=True):
    """A new subscription of a client behind the sender."""

    subscription: str
    filter: str
    pivot: str = ""
    """The subscription's pivot; empty if none was found yet."""
    left: int = 0
    """The number of brokers of the pivot's set, beginning with the receiver, that have yet to send partial markers."""


class RemoveSubscription(Message, frozen=True):
    """Ends the subscription, or announces that publishers behind the receiver no longer match it."""

    subscription: str


class AskPartial(Message, frozen=True):
    """Asks the next `left` brokers to join the set of a pivot that was found after the subscription had passed."""

    subscription: str
    pivot: str
    left: int


class Marker(Message, frozen=True):
    """Sent by the publishers' own broker: from these numbers on, all matching events go to the subscription."""

    subscription: str
    cuts: Cuts


class PartialMarker(Message, frozen=True):
    """Sent by a broker of a pivot's set: it forwards all matching events from these numbers on to the subscription."""

    subscription: str
    pivot: str
    broker: str
    cuts: Cuts


# ---- between brokers, on a graph (`gapless_papers.protocols.locamu`) ---------------------------------------------


class PathSubscribe(Message, frozen=True):
    """A new subscription of a client of the home broker, for all brokers on the paths to the publishers."""

    subscription: str
    filter: str
    home: str
    is_new: bool
    """Whether this goes to all known publishers; otherwise it goes only to newer ones."""


class EndSubscription(Message, frozen=True):
    """Announces that the client has ended the subscription: brokers can no longer rely on it. Events still arrive
    for it."""

    subscription: str


class ForgetSubscription(Message, frozen=True):
    """Removes the subscription: the subscriptions that relied on it have all been forwarded."""

    subscription: str


class PathMarker(Message, frozen=True):
    """Sent by the publishers' own broker: from these numbers on, all matching events go to the subscription."""

    subscription: str
    cuts: Cuts
    filter: str = ""
    """The subscription's filter and home, for publishers that learn of it from this marker (the cascade)."""
    home: str = ""


class PivotMarker(Message, frozen=True):
    """Sent by a partial pivot: it carries all matching events from these numbers on to the subscription."""

    subscription: str
    broker: str
    cuts: Cuts


class Takeover(Message, frozen=True):
    """Announces that the publisher of this stream has moved to another broker, and that its surviving events have been
    sent again."""

    last: int
    """The number of its last surviving event."""


Content: TypeAlias = (
    Publication | AddAdvertisement | AdvertisementStable | RemoveAdvertisement | PathSubscribe | EndSubscription
    | ForgetSubscription | PathMarker | PivotMarker | Takeover
)  # fmt: skip


class Packet(msgspec.Struct, frozen=True, array_like=True):
    """A message of the causal multicast."""

    stream: str
    number: int
    origin: str
    ends: tuple[str, ...]
    due: Due
    settled: dict[str, int]
    content: Content


class Hop(Message, frozen=True):
    """A message in transit, with receivers that brokers on the path have added."""

    packet: Packet
    extra: tuple[str, ...] = ()


class Done(Message, frozen=True):
    """Reports how far the sender has processed the receiver's streams, with its table at that time."""

    done: dict[str, int]
    due: Due


class Dead(Message, frozen=True):
    """Announces that a broker has failed."""

    broker: str


class Keep(Message, frozen=True):
    """Asks a backup to keep this part of the stream of one of the sender's publishers, with its past, until it is
    settled."""

    publisher: str
    number: int
    content: Content
    due: Due


class Kept(Message, frozen=True):
    """Confirms that the sender keeps the publisher's stream up to this number."""

    publisher: str
    number: int


class AskBackup(Message, frozen=True):
    """Asks a backup of a failed broker for its copy of the stream of a publisher that has moved to the sender."""

    broker: str
    publisher: str


class BackupCopy(Message, frozen=True):
    """Answers `AskBackup`: the number of the last event, and the unsettled events with their past."""

    broker: str
    publisher: str
    last: int
    items: list[tuple[int, Content, Due]]


# ---- between a client and its broker ----------------------------------------------------------------------


class ClientReturn(Message, frozen=True):
    """Attaches a client whose broker has failed."""

    brokers: tuple[str, ...]
    """The brokers that the client was attached to before."""
    offers: dict[int, str]
    """The client's advertisements."""
    closing: tuple[int, ...]
    """The advertisements that the client has withdrawn after its last event."""
    events: list[Event]
    """The client's unconfirmed events."""
    due: Due
    """The client's causal past."""


class Confirmation(Message, frozen=True):
    """Confirms that all brokers have processed the client's events up to this number."""

    seq: int


class Stable(Message, frozen=True):
    """Confirms that the advertisement is stable."""

    number: int
    confirms: bool = False
    """Whether the broker will report which events have been processed everywhere."""


class Delivery(Message, frozen=True):
    """An event for some of the client's subscriptions."""

    event: Event
    numbers: list[int]
    due: Due = msgspec.field(default_factory=dict)
    """On a graph: the messages that its broker knew to be in transit to others. The client brings them along if the
    broker fails."""


FromNeighbour: TypeAlias = (
    Publication | AddSubscription | RemoveSubscription | AskPartial | Marker | PartialMarker | AddAdvertisement
    | AdvertisementStable | RemoveAdvertisement
)  # fmt: skip
"""Messages between brokers on the bare tree."""
FromBroker: TypeAlias = Hop | Done | Dead | Keep | Kept | AskBackup | BackupCopy
"""Messages between brokers over f + 1 paths."""
FromClient: TypeAlias = ClientWord | ClientReturn
ToClient: TypeAlias = Started | Stable | Delivery | Confirmation | Dead
