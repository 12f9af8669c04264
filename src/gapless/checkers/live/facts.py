"""The facts that a subscription receives, ordered so that events precede their deliveries, and
causes their effects.

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
    """The name of the kind, then the fields."""


class Requested(_Fact, frozen=True):
    """The client requested it."""

    run: str
    guarantee: Guarantee
    client: str
    filter: str
    ready: Ready
    time_ms: float


class Refused(_Fact, frozen=True):
    """The subscription was rejected."""


class Activated(_Fact, frozen=True):
    """`subscribe()` returned."""

    time_ms: float


class Attached(_Fact, frozen=True):
    """It is one client's share of a durable subscription, which is judged as a whole, after the run."""


class Cut(_Fact, frozen=True):
    """Its events of the publisher begin with this number."""

    publisher: str
    from_seq: int


class Voided(_Fact, frozen=True):
    """Its cuts so far are void."""


class Ended(_Fact, frozen=True):
    """It has ended, with this ending cut."""

    last_seq: dict[str, int]
    time_ms: float


class Skipped(_Fact, frozen=True):
    """These numbers of these publishers were reported to it as lost."""

    lost: dict[str, list[tuple[int, int]]]


class Due(_Fact, frozen=True):
    """A matching event has left its publisher."""

    publisher: str
    seq: int
    published_ms: float
    order: str | None
    """The causal order that it belongs to: the topic if each is checked separately; None if none."""
    past: dict[str, int]
    """By publisher: the number up to which its past, in that order, goes."""

    @property
    def event_id(self) -> str:
        """`publisher:seq`."""
        return f"{self.publisher}:{self.seq}"

    @property
    def advances(self) -> dict[str, int]:
        """A superset of what it adds to the past of its predecessor."""
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
    """An event was delivered for this subscription, which does not exist or is another client's."""

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
