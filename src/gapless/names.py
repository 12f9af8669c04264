"""Named subscriptions, between a client's node and those who drive it: its calls, and what the node says of them."""

from collections.abc import Sequence
from typing import Literal, TypeAlias

import msgspec

from gapless.positions import Position

__all__ = [
    "LISTING",
    "Confirm", "Confirmation", "Confirming", "Joined", "ListNames", "MoveName", "NameChanged", "NamedSubscription",
    "NamesListed", "Opened", "Revoked",
]  # fmt: skip

Confirmation: TypeAlias = Literal["taken", "manual"]
"""When an event of a named subscription is confirmed: when the application has taken it, or when it says so."""


LISTING = "names/"
"""Before the number of a question which names there are, where it is refused."""


class Confirm(msgspec.Struct, frozen=True):
    """A client's call: of a named subscription, everything up to that delivery to the client is confirmed."""

    subscription: str
    count: int
    is_urgent: bool = True
    """Whether somebody waits for it; else it may wait for more."""


class ListNames(msgspec.Struct, frozen=True):
    """A client's call: which named subscriptions are there? `NamesListed` follows."""

    request: int


class MoveName(msgspec.Struct, frozen=True):
    """A client's call: let a named subscription go on after another position; without one, end it. `NameChanged`
    follows."""

    request: str
    """Unique, and beginning with the name of the client, as those of subscriptions."""
    name: str
    filter: str
    """That it has: who may not subscribe to it may not change it."""
    position: Position | None


class Opened(msgspec.Struct, frozen=True):
    """A named subscription is this client's, and goes on after a position, without these numbers of publishers."""

    subscription: str
    name: str
    generation: int
    """It grows with each opening of the name."""
    position: int
    got: dict[str, int]
    delivered: int = 0
    """What has no larger stamp may have been delivered before."""


class Confirming(msgspec.Struct, frozen=True):
    """Of a named subscription, everything up to that delivery to the client is being confirmed; or it is, and will not
    come again, if it `is_kept`."""

    subscription: str
    count: int
    is_kept: bool


class Joined(msgspec.Struct, frozen=True):
    """A client is one of the group that shares a named subscription; everything up to that position is confirmed."""

    subscription: str
    name: str
    position: int


class Revoked(msgspec.Struct, frozen=True):
    """Of a named subscription that a group shares: what came with these deliveries to the client was given to another,
    and cannot be confirmed any more."""

    subscription: str
    counts: Sequence[int]


class NamedSubscription(msgspec.Struct, frozen=True):
    """A named subscription, as an operator sees it."""

    name: str
    filter: str
    position: Position
    """Everything up to it is confirmed."""
    client: str
    """Who opened it last, and neither left nor let its session expire; empty if nobody."""
    lag_s: float
    """How far its position lies behind the newest event of the network, in seconds; some seconds too much at most."""
    is_shared: bool = False
    """Whether a group shares it; then `client` is the one that deals out what comes."""


class NamesListed(msgspec.Struct, frozen=True):
    """All named subscriptions that there are."""

    request: int
    found: Sequence[NamedSubscription]
    position: int
    """No event is newer."""


class NameChanged(msgspec.Struct, frozen=True):
    """It was moved, or ended; or a sentence says why not."""

    request: str
    reason: str
