"""The rows of a trace: one frozen struct for each table, whose fields are the table's columns in order.

The structs are the schema. `storage` derives the Parquet columns from them, so that a column is added in one
place. A field that may be `None` is a nullable column; no other column holds nulls. A field with a default is a
column that earlier versions of the format lack: their rows have the default. Times are milliseconds of the run's
own clock, in float64.
"""

from collections.abc import Iterator
from typing import Literal, TypeAlias

import msgspec

from gapless.errors import TraceError
from gapless.protocol import Guarantee, Ready

__all__ = [
    "CutRow", "CutShortRow", "EventRow", "HistoryRow", "MessageRow", "PastRow", "Row", "RunRow", "SkippedRow",
    "SubscriptionRow", "Trace",
]  # fmt: skip


class RunRow(msgspec.Struct, frozen=True, gc=False):
    """One run: its settings, and whether it ended quietly with all faults healed."""

    run: str
    protocol: str
    guarantee: Guarantee
    scenario: str
    seed: int
    brokers: int
    f: int
    quiesced: bool
    options: str
    """The protocol's options, as JSON text."""
    clock_skew_ms: float = 0.0
    """The possible difference between the clocks of two clients; 0 if there is one clock."""


class EventRow(msgspec.Struct, frozen=True, gc=False):
    """One published event."""

    run: str
    event_id: str
    """Always `publisher:seq`."""
    publisher: str
    seq: int
    attributes: str
    """The attributes as JSON text with sorted keys. The floats that JSON lacks are written NaN, Infinity and
    -Infinity."""
    published_ms: float


class SubscriptionRow(msgspec.Struct, frozen=True, gc=False):
    """One subscription, from the call to its end."""

    run: str
    subscription_id: str
    client: str
    filter: str
    requested_ms: float
    active_ms: float | None
    ended_ms: float | None
    ready: Ready = "first"
    """The meaning of active: with the whole cut, or with the first part of it."""


class CutRow(msgspec.Struct, frozen=True, gc=False):
    """The events of one publisher that a subscription receives: every matching one from `from_seq` up to `to_seq`."""

    run: str
    subscription_id: str
    publisher: str
    from_seq: int
    to_seq: int | None
    """The exact ending cut; null while the subscription is active, and where its end did not name
    the publisher.
    """


class HistoryRow(msgspec.Struct, frozen=True, gc=False):
    """One action of a client. `step` numbers its actions 0, 1, 2…; `subscription_id` is null for a publication."""

    run: str
    client: str
    step: int
    kind: Literal["publish", "deliver"]
    event_id: str
    subscription_id: str | None
    time_ms: float


class PastRow(msgspec.Struct, frozen=True, gc=False):
    """An entry of the certificate: the past of `event_id` extends to `seq` of another publisher, further than that of
    its predecessor.
    """

    run: str
    event_id: str
    publisher: str
    seq: int


class MessageRow(msgspec.Struct, frozen=True, gc=False):
    """One message between two nodes; `received_ms` is null if it was lost."""

    run: str
    kind: str
    sender: str
    receiver: str
    sent_ms: float
    received_ms: float | None
    bytes: int


class CutShortRow(msgspec.Struct, frozen=True, gc=False):
    """A client whose part of the trace is incomplete. Clients that are not listed are complete."""

    run: str
    client: str
    acts: int
    """The number of known actions of the client."""
    last_ms: float | None
    """The time of the client's last known action; null if there is none."""
    sent_seq: int
    """The number up to which the client's events were confirmed, or delivered to some client. Later ones may never have
    left the client."""
    forgotten: int
    """The number of omitted deliveries of the client's events, because their publication is unknown."""


class SkippedRow(msgspec.Struct, frozen=True, gc=False):
    """A range of events that were reported as lost to a subscription."""

    run: str
    subscription_id: str
    publisher: str
    from_seq: int
    to_seq: int
    """The last number."""


Row: TypeAlias = (
    RunRow | EventRow | SubscriptionRow | CutRow | HistoryRow | PastRow | MessageRow | CutShortRow | SkippedRow
)


class Trace(msgspec.Struct, frozen=True):
    """All tables of one or several runs."""

    runs: list[RunRow]
    events: list[EventRow]
    subscriptions: list[SubscriptionRow]
    cuts: list[CutRow]
    history: list[HistoryRow]
    pasts: list[PastRow]
    messages: list[MessageRow]
    cut_short: list[CutShortRow] = []
    skipped: list[SkippedRow] = []

    def __repr__(self) -> str:
        counts = [f"{len(getattr(self, table.name)):,} {table.name}" for table in msgspec.structs.fields(Trace)]
        return f"<Trace with the rows {', '.join(counts)}>"

    def split(self) -> list["Trace"]:
        """Return one trace for each run, in the order of `runs`. Rows of unknown runs are omitted.

        Raises a `TraceError` if two runs have the same name, because their rows cannot be told
        apart.
        """
        if len(self.runs) == 1 and all(row.run == self.runs[0].run for row in self._rows()):
            return [self]
        parts: dict[str, Trace] = {}
        for row in self.runs:
            if row.run in parts:
                raise TraceError(f"two runs have the name {row.run!r}; give each run of a trace a different name")
            parts[row.run] = Trace([row], [], [], [], [], [], [], [], [])
        for table in msgspec.structs.fields(Trace)[1:]:
            for row in getattr(self, table.name):
                if row.run in parts:
                    getattr(parts[row.run], table.name).append(row)
        return list(parts.values())

    def _rows(self) -> Iterator[Row]:
        for table in msgspec.structs.fields(Trace):
            yield from getattr(self, table.name)
