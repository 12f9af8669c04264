"""A trace in parts: each client of a live network writes its own, and they are put together afterwards.

A directory holds `parts/CLIENT/TABLE/part-00000.parquet` and so on, one folder of tables for each client, of the same
form as a whole trace. A client knows what it published, what it was delivered and in which order, and its own
subscriptions; it knows no pasts, and not how the run ended. `merge_parts` adds both.

Names are unique across processes, because a client's is. Times are those of the clock on the wall; put together, they
count from the first act of the run. The judge compares times of one client only, so clocks need not agree.

What is recorded goes to disk in groups, so a client's memory does not grow with the run.
"""

from collections.abc import Iterable
from itertools import count
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.parquet as pq

from gapless.errors import TraceError
from gapless.events import Event
from gapless.trace.attributes_text import attributes_to_text
from gapless.trace.certificate import KnownPasts
from gapless.trace.rows import CutRow, EventRow, HistoryRow, PastRow, RunRow, SubscriptionRow, Trace
from gapless.trace.storage import read_trace
from gapless.trace.tables import TABLES, arrow_schema, rows_to_table

__all__ = ["PARTS", "PartRecorder", "merge_parts"]

PARTS = "parts"
ROWS_PER_FILE = 4_096
"""Writing happens in the client's event loop: so few that nobody takes the client for dead meanwhile."""


class PartRecorder:
    """Records one client. Times are integer microseconds of the wall clock."""

    def __init__(self, directory: Path | str, run: RunRow, client: str) -> None:
        self._run = run
        self._client = client
        self._folder = Path(directory) / PARTS / client
        self._events: list[EventRow] = []
        self._history: list[HistoryRow] = []
        self._steps = count()
        self._files = 0
        self._subscriptions: dict[str, SubscriptionRow] = {}
        self._cuts: dict[tuple[str, str], CutRow] = {}
        for table in TABLES:
            (self._folder / table).mkdir(parents=True, exist_ok=True)
        self._write_whole()

    # ---- what happens -------------------------------------------------------------------------------------

    def subscribe(self, subscription_id: str, filter_text: str, now_us: int) -> None:
        """The client asks for a subscription."""
        row = SubscriptionRow(self._run.run, subscription_id, self._client, filter_text, now_us / 1000, None, None)
        self._subscriptions[subscription_id] = row

    def activate(self, subscription_id: str, now_us: int) -> None:
        """The subscription holds its starting cut. Only the first call counts."""
        row = self._subscriptions[subscription_id]
        if row.active_ms is None:
            self._subscriptions[subscription_id] = msgspec.structs.replace(row, active_ms=now_us / 1000)

    def fix_cut(self, subscription_id: str, publisher: str, from_seq: int) -> None:
        """The subscription gets the publisher's matching events from `from_seq` on. The last call counts."""
        key = (subscription_id, publisher)
        self._cuts[key] = CutRow(self._run.run, subscription_id, publisher, from_seq, None)

    def void_cuts(self, subscription_id: str) -> None:
        """The cuts of the subscription so far are void."""
        for key in [key for key in self._cuts if key[0] == subscription_id]:
            del self._cuts[key]

    def end(self, subscription_id: str, last_seq: dict[str, int], now_us: int) -> None:
        """The subscription is over, with this ending cut."""
        row = self._subscriptions[subscription_id]
        self._subscriptions[subscription_id] = msgspec.structs.replace(row, ended_ms=now_us / 1000)
        for publisher, seq in last_seq.items():
            cut = self._cuts.get((subscription_id, publisher))
            if cut is not None:
                self._cuts[subscription_id, publisher] = msgspec.structs.replace(cut, to_seq=seq)

    def publish(self, event: Event, now_us: int) -> None:
        """The client published."""
        time_ms = now_us / 1000
        self._events.append(
            EventRow(self._run.run, event.id, event.publisher, event.seq, attributes_to_text(event.attributes), time_ms)
        )
        self._act("publish", event.id, None, time_ms)

    def deliver(self, event: Event, subscription_id: str, now_us: int) -> None:
        """An event was handed to the client's application."""
        self._act("deliver", event.id, subscription_id, now_us / 1000)

    def _act(self, kind: Any, event_id: str, subscription_id: str | None, time_ms: float) -> None:
        step = next(self._steps)
        self._history.append(HistoryRow(self._run.run, self._client, step, kind, event_id, subscription_id, time_ms))
        if len(self._history) >= ROWS_PER_FILE:
            self._flush()

    # ---- to disk ------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Write all that is left."""
        self._flush()

    def _flush(self) -> None:
        self._write("events", self._events, self._files)
        self._write("history", self._history, self._files)
        self._files += 1
        self._events, self._history = [], []
        self._write_whole()

    def _write_whole(self) -> None:
        """The tables that change until the end are written anew each time."""
        self._write("runs", [self._run], 0)
        self._write("subscriptions", list(self._subscriptions.values()), 0)
        self._write("cuts", [self._cuts[key] for key in sorted(self._cuts)], 0)
        self._write("pasts", [], 0)
        if not self._files:
            self._write("events", [], 0)
            self._write("history", [], 0)

    def _write(self, table: str, rows: list[Any], number: int) -> None:
        """A file is whole or is not there."""
        folder = self._folder / table
        fresh = folder / f".part-{number:05}.partial"
        with pq.ParquetWriter(fresh, arrow_schema(table), compression="zstd", write_page_checksum=True) as writer:
            writer.write_table(rows_to_table(table, rows))
        fresh.rename(folder / f"part-{number:05}.parquet")


def merge_parts(directory: Path | str, *, quiesced: bool) -> Trace:
    """All parts in the directory as the trace of one run. `quiesced`: it ended in silence, with all faults healed."""
    folder = Path(directory) / PARTS
    parts = sorted(path for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []
    if not parts:
        raise TraceError(f"{directory} holds no parts of a trace; let clients write them with connect(…, trace=…)")
    traces = [read_trace(part) for part in parts]
    run = _common_run([row for trace in traces for row in trace.runs], str(directory))
    history = [row for trace in traces for row in sorted(trace.history, key=lambda row: row.step)]
    events = [row for trace in traces for row in trace.events]
    subscriptions = [row for trace in traces for row in trace.subscriptions]
    start = min(
        [row.time_ms for row in history] + [row.requested_ms for row in subscriptions], default=0.0
    )  # fmt: skip
    pasts = _pasts(run.run, traces)
    return Trace(
        runs=[msgspec.structs.replace(run, quiesced=quiesced)],
        events=[msgspec.structs.replace(row, published_ms=_since(start, row.published_ms)) for row in events],
        subscriptions=[_moved(row, start) for row in subscriptions],
        cuts=[row for trace in traces for row in trace.cuts],
        history=[msgspec.structs.replace(row, time_ms=_since(start, row.time_ms)) for row in history],
        pasts=pasts,
        messages=[],
    )


def _common_run(rows: list[RunRow], place: str) -> RunRow:
    first = rows[0]
    for row in rows:
        if row != first:
            raise TraceError(
                f"the parts in {place} are of two networks: {first.run!r} and {row.run!r}; keep them apart"
            )
    return first


def _since(start: float, time_ms: float) -> float:
    return round(time_ms - start, 3)


def _moved(row: SubscriptionRow, start: float) -> SubscriptionRow:
    return msgspec.structs.replace(
        row,
        requested_ms=_since(start, row.requested_ms),
        active_ms=None if row.active_ms is None else _since(start, row.active_ms),
        ended_ms=None if row.ended_ms is None else _since(start, row.ended_ms),
    )


def _pasts(run: str, traces: Iterable[Trace]) -> list[PastRow]:
    """The certificate, from all clients' acts in an order in which each publication stands before its deliveries.

    A client is followed until it is delivered something whose publication is yet to come. Deliveries of events that
    nobody published are left to the judge, and so are histories that contradict each other.
    """
    seqs = {row.event_id: (row.publisher, row.seq) for trace in traces for row in trace.events}
    acts = {
        trace.history[0].client: sorted(trace.history, key=lambda row: row.step) for trace in traces if trace.history
    }
    pasts, rows = KnownPasts(), list[PastRow]()
    places = dict.fromkeys(acts, 0)
    published: set[str] = set()
    waiting: dict[str, list[str]] = {}
    ready = list(acts)
    while ready:
        client = ready.pop()
        own = acts[client]
        for place in range(places[client], len(own)):
            row = own[place]
            if row.event_id not in seqs:
                continue
            publisher, seq = seqs[row.event_id]
            if row.kind == "publish":
                advanced = pasts.publish(client, seq)
                rows += [PastRow(run, row.event_id, other, last) for other, last in advanced.items()]
                published.add(row.event_id)
                ready += waiting.pop(row.event_id, ())
            elif row.event_id not in published:
                places[client] = place
                waiting.setdefault(row.event_id, []).append(client)
                break
            else:
                pasts.deliver(client, publisher, seq)
    return rows
