"""What a client's part of a trace is made of: one record for each thing that happens to the client.

Times are microseconds of the clock on the wall. A part that does not end with `Closed` is cut short.
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
    "Delivered",
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
    """The name of the kind, then the fields."""


class Opened(_Record, frozen=True):
    """The first record: whose part it is, of which run, and by which machine's clock."""

    run: RunRow
    client: str
    machine: str


class Subscribed(_Record, frozen=True):
    """The client asks for a subscription."""

    subscription: str
    filter: str
    ready: Ready
    time_us: int


class Refused(_Record, frozen=True):
    """The protocol rejected the subscription: there is none."""

    subscription: str


class Activated(_Record, frozen=True):
    """`subscribe()` returns."""

    subscription: str
    time_us: int


class CutFixed(_Record, frozen=True):
    """The subscription gets the publisher's matching events from `from_seq` on."""

    subscription: str
    publisher: str
    from_seq: int


class CutsVoided(_Record, frozen=True):
    """The cuts of the subscription so far are void."""

    subscription: str


class Ended(_Record, frozen=True):
    """The subscription is over, with this ending cut."""

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
    """An event was handed to the client's application."""

    publisher: str
    seq: int
    subscription: str
    time_us: int
    stamp: int = 0
    redelivered: bool = False
    """In a shared subscription: whether another member may have received it before."""


class Confirmed(_Record, frozen=True):
    """The client's events up to `seq` are safe."""

    seq: int


class Skipped(_Record, frozen=True):
    """The subscription was told that it will not get these numbers of these publishers."""

    subscription: str
    lost: dict[str, list[tuple[int, int]]]
    gap: tuple[int, int] | None = None


class NameOpened(_Record, frozen=True):
    """The subscription is a named one, and goes on after a position, without these numbers of publishers."""

    subscription: str
    name: str
    generation: int
    position: int
    got: dict[str, int]
    time_us: int


class GroupJoined(_Record, frozen=True):
    """The client is in the group that shares a durable subscription."""

    subscription: str
    name: str
    position: int
    time_us: int


class Acknowledged(_Record, frozen=True):
    """Everything up to that delivery to the client is acknowledged for a durable subscription; once it `is_stored`, for
    good."""

    subscription: str
    count: int
    is_stored: bool
    time_us: int


class Revoked(_Record, frozen=True):
    """In a group: these deliveries to the client are another's."""

    subscription: str
    counts: list[int]


class Closed(_Record, frozen=True):
    """The last record: nothing is left out."""


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
    | Revoked
    | Closed
)

encode = msgspec.msgpack.Encoder().encode
decode = msgspec.msgpack.Decoder(Record).decode
