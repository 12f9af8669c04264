"""The rows of a trace: one frozen struct per table, its fields the table's columns in order.

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
    """One run: its settings, and whether it ended in silence with all faults healed."""

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
    """One publication."""

    run: str
    event_id: str
    """Always `publisher:seq`."""
    publisher: str
    seq: int
    attributes: str
    """JSON text, keys sorted; the floats that JSON lacks are written NaN, Infinity and -Infinity."""
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
    """The meaning of active: with the whole cut, or with the first of its cuts."""


class CutRow(msgspec.Struct, frozen=True, gc=False):
    """The promise to a subscription about one publisher: every match from `from_seq` on, up to `to_seq`."""

    run: str
    subscription_id: str
    publisher: str
    from_seq: int
    to_seq: int | None
    """The exact ending cut; null while the subscription is active, and where its end did not name
    the publisher.
    """


class HistoryRow(msgspec.Struct, frozen=True, gc=False):
    """One act of a client. `step` numbers its acts 0, 1, 2…; `subscription_id` is null for a publication."""

    run: str
    client: str
    step: int
    kind: Literal["publish", "deliver"]
    event_id: str
    subscription_id: str | None
    time_ms: float


class PastRow(msgspec.Struct, frozen=True, gc=False):
    """The past of `event_id` reaches up to `seq` of another publisher, further than that of its predecessor."""

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
    """A client of which the trace is incomplete. Clients that are not listed are complete."""

    run: str
    client: str
    acts: int
    """The number of its known acts."""
    last_ms: float | None
    """The time of its last known act; null if there is none."""
    sent_seq: int
    """Its events up to this number were confirmed to it, or delivered to a client. Later ones may
    never have left.
    """
    forgotten: int
    """Deliveries of its events that the trace omits, because their publication is unknown."""


class SkippedRow(msgspec.Struct, frozen=True, gc=False):
    """Events that were reported as lost to a subscription to history."""

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
        """Return one trace per run, in the order of `runs`; rows of other runs are omitted.

        Raises a `TraceError` if two runs have the same name, because their rows cannot be told
        apart.
        """
        if len(self.runs) == 1 and all(row.run == self.runs[0].run for row in self._rows()):
            return [self]
        parts: dict[str, Trace] = {}
        for row in self.runs:
            if row.run in parts:
                raise TraceError(f"two runs are named {row.run!r}; give each run of a trace a name of its own")
            parts[row.run] = Trace([row], [], [], [], [], [], [], [], [])
        for table in msgspec.structs.fields(Trace)[1:]:
            for row in getattr(self, table.name):
                if row.run in parts:
                    getattr(parts[row.run], table.name).append(row)
        return list(parts.values())

    def _rows(self) -> Iterator[Row]:
        for table in msgspec.structs.fields(Trace):
            yield from getattr(self, table.name)
