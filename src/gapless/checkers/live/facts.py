"""The facts on which the check of a subscription is based. Events precede their deliveries, and causes their effects.

Times are wall-clock milliseconds.
"""

from typing import TypeAlias

import msgspec

from gapless.checkers.acceptance import Known
from gapless.protocol import Guarantee, Ready

__all__ = [
    "Activated", "Attached", "Cut", "Delivered", "Due", "Ended", "Fact", "Refused", "Requested", "Skipped", "Stray",
    "Voided", "decode", "encode",
]  # fmt: skip


class _Fact(msgspec.Struct, frozen=True, array_like=True, tag=True, gc=False):
    """Base class of facts, encoded as the name of the kind followed by the fields."""


class Requested(_Fact, frozen=True):
    """The client requested the subscription."""

    run: str
    guarantee: Guarantee
    client: str
    filter: str
    ready: Ready
    time_ms: float


class Refused(_Fact, frozen=True):
    """The network rejected the subscription."""


class Activated(_Fact, frozen=True):
    """The call of `subscribe()` returned."""

    time_ms: float


class Attached(_Fact, frozen=True):
    """The subscription is one client's share of a durable subscription, which is checked as a whole after the run."""


class Cut(_Fact, frozen=True):
    """The events of a publisher in the subscription begin with this number."""

    publisher: str
    from_seq: int


class Voided(_Fact, frozen=True):
    """The starting cuts fixed so far are void."""


class Ended(_Fact, frozen=True):
    """The subscription has ended, with this ending cut."""

    last_seq: dict[str, int]
    time_ms: float


class Skipped(_Fact, frozen=True):
    """These numbers of events, by publisher, were reported to the subscription as lost."""

    lost: dict[str, list[tuple[int, int]]]


class Due(_Fact, frozen=True):
    """A matching event has left its publisher."""

    publisher: str
    seq: int
    published_ms: float
    order: str | None
    """The causal order that the event belongs to: its topic if topics are checked separately, or None."""
    past: dict[str, int]
    """For each publisher, the number up to which the event's past in that order extends."""

    @property
    def event_id(self) -> str:
        """Return the event's name, `publisher:seq`."""
        return f"{self.publisher}:{self.seq}"

    @property
    def advances(self) -> dict[str, int]:
        """Return a superset of the entries by which the event's past exceeds that of its predecessor."""
        return self.past


class Delivered(_Fact, frozen=True):
    """An event was passed to the application."""

    event_id: str
    publisher: str
    seq: int
    step: int
    time_ms: float
    known: Known


class Stray(_Fact, frozen=True):
    """An event was delivered for a subscription that does not exist or belongs to another client."""

    run: str
    event_id: str
    is_published: bool
    client: str
    step: int
    time_ms: float
    owner: str | None


Fact: TypeAlias = (
    Requested | Refused | Activated | Attached | Cut | Voided | Ended | Skipped | Due | Delivered | Stray
)  # fmt: skip

encode = msgspec.msgpack.Encoder().encode
decode = msgspec.msgpack.Decoder(Fact).decode
