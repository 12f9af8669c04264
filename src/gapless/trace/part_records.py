"""Defines the records of a client's part of a trace, one for each action of the client.

Times are wall-clock microseconds. A part that does not end with `Closed` is incomplete.
"""

from typing import TypeAlias

import msgspec

from gapless.events import Attributes
from gapless.protocol import Ready
from gapless.trace.rows import RunRow

__all__ = [
    "Acknowledged",
    "Activated",
    "Closed",
    "Confirmed",
    "CutFixed",
    "CutsVoided",
    "DeadLettered",
    "Delivered",
    "EachAcknowledged",
    "Ended",
    "GroupJoined",
    "NameOpened",
    "Opened",
    "Published",
    "Record",
    "Refused",
    "Revoked",
    "Skipped",
    "Subscribed",
    "decode",
    "encode",
]  # fmt: skip


class _Record(msgspec.Struct, frozen=True, array_like=True, tag=True, gc=False):
    """Base class of records, encoded as the name of the kind followed by the fields."""


class Opened(_Record, frozen=True):
    """The first record of a part: client, run and machine."""

    run: RunRow
    client: str
    machine: str


class Subscribed(_Record, frozen=True):
    """The client requests a subscription."""

    subscription: str
    filter: str
    ready: Ready
    time_us: int


class Refused(_Record, frozen=True):
    """The protocol rejected the subscription."""

    subscription: str


class Activated(_Record, frozen=True):
    """The call of `subscribe()` returns."""

    subscription: str
    time_us: int


class CutFixed(_Record, frozen=True):
    """The publisher's matching events from `from_seq` on are due."""

    subscription: str
    publisher: str
    from_seq: int


class CutsVoided(_Record, frozen=True):
    """All cuts of the subscription fixed so far are void."""

    subscription: str


class Ended(_Record, frozen=True):
    """The subscription has ended, with this ending cut."""

    subscription: str
    last_seq: dict[str, int]
    time_us: int


class Published(_Record, frozen=True):
    """The client published its event `seq`, by a call that began at `began_us`."""

    seq: int
    attributes: Attributes
    began_us: int
    time_us: int


class Delivered(_Record, frozen=True):
    """An event was passed to the client's application."""

    publisher: str
    seq: int
    subscription: str
    time_us: int
    stamp: int = 0
    redelivered: bool = False
    """In a shared subscription, whether another member may have received the event before."""


class Confirmed(_Record, frozen=True):
    """The client's events up to `seq` are confirmed."""

    seq: int


class Skipped(_Record, frozen=True):
    """These numbers of events, by publisher, were reported to the subscription as lost."""

    subscription: str
    lost: dict[str, list[tuple[int, int]]]
    gap: tuple[int, int] | None = None


class NameOpened(_Record, frozen=True):
    """The subscription is durable, and continues after a position, without these numbers of publishers."""

    subscription: str
    name: str
    generation: int
    position: int
    got: dict[str, int]
    time_us: int


class GroupJoined(_Record, frozen=True):
    """The client joined the group of a shared subscription."""

    subscription: str
    name: str
    position: int
    time_us: int


class Acknowledged(_Record, frozen=True):
    """Everything up to a delivery is acknowledged for a durable subscription, permanently if `is_stored`."""

    subscription: str
    count: int
    is_stored: bool
    time_us: int


class EachAcknowledged(_Record, frozen=True):
    """These deliveries are acknowledged individually, permanently if `is_stored`."""

    subscription: str
    counts: list[int]
    is_stored: bool
    time_us: int


class DeadLettered(_Record, frozen=True):
    """The client publishes its event `letter`, the dead letter of an event of a durable subscription."""

    subscription: str
    publisher: str
    seq: int
    letter: int


class Revoked(_Record, frozen=True):
    """These deliveries were returned with `nack`, or reassigned to another member of the group."""

    subscription: str
    counts: list[int]


class Closed(_Record, frozen=True):
    """The last record, which says that the part is complete."""


Record: TypeAlias = (
    Opened
    | Subscribed
    | Refused
    | Activated
    | CutFixed
    | CutsVoided
    | Ended
    | Published
    | Delivered
    | Confirmed
    | Skipped
    | NameOpened
    | GroupJoined
    | Acknowledged
    | EachAcknowledged
    | DeadLettered
    | Revoked
    | Closed
)

encode = msgspec.msgpack.Encoder().encode
decode = msgspec.msgpack.Decoder(Record).decode
