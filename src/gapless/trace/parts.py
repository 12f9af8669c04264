"""Merges the parts of a trace: each client of a live network writes its own, and `merge_parts` merges them.

A directory contains `parts/CLIENT.part`, a log for each client (`part_log`). A client knows its
publications, its deliveries in order, and its own subscriptions; it does not know the pasts of
events, nor how the run ended. `merge_parts` adds both.

Names are unique across processes, because a client's is. Times are wall-clock times; in the merged
trace they are relative to its start. If clients ran on several machines, the user has to state how
far their clocks may differ: an event counts as published after a subscription was active only if it
is later by more than that.

No client is omitted silently. A part without a final record, because its client was killed, ended
without `close()`, or is still running, counts up to where it breaks off, and its client is listed
as *cut short*. So is a client that wrote no part, and whose events others received: it ran on
another machine, or without a trace. Deliveries of events whose publication is unknown cannot be
checked; they are omitted and counted.
"""

import math
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from gapless.errors import TraceError
from gapless.trace.certificate import KnownPasts
from gapless.trace.live_names import enter_names
from gapless.trace.part import Part, client_of, read_part
from gapless.trace.part_recorder import PARTS, SUFFIX
from gapless.trace.part_records import Record
from gapless.trace.rows import CutShortRow, HistoryRow, PastRow, RunRow, Trace

__all__ = ["merge_parts"]


def merge_parts(directory: Path | str, *, quiesced: bool, clock_skew_ms: float | None = None) -> Trace:
    """Return the parts in the directory, merged into the trace of one run.

    `quiesced`: it ended quietly, with all faults healed. `clock_skew_ms`: the possible
    difference between the clocks of two clients; by default 0, for parts of one machine.
    """
    parts = _read_parts(Path(directory))
    run = _common_run(parts, str(directory))
    skew_ms = _skew(parts, clock_skew_ms, str(directory))
    parts += _missing(parts)
    parts = enter_names(msgspec.structs.replace(run, quiesced=quiesced), parts, skew_ms)
    history, cut_short = _known_acts(run.run, parts)
    return Trace(
        runs=[msgspec.structs.replace(run, quiesced=quiesced, clock_skew_ms=skew_ms)],
        events=[row for part in parts for row in part.events],
        subscriptions=[row for part in parts for row in part.subscriptions.values()],
        cuts=[part.cuts[key] for part in parts for key in sorted(part.cuts)],
        history=[row for rows in history.values() for row in rows],
        pasts=_pasts(run.run, parts, history),
        messages=[],
        cut_short=cut_short,
        skipped=[row for part in parts for row in part.skipped],
    )


def _read_parts(directory: Path) -> list[Part]:
    folder = directory / PARTS
    entries = sorted(folder.iterdir()) if folder.is_dir() else []
    logs = {path: read_part(path) for path in entries if path.suffix == SUFFIX}
    if not logs:
        old = any(path.is_dir() for path in entries)
        hint = (
            "the parts in it were written by an earlier version of Gapless"
            if old
            else "let clients write them: connect(…, trace=…)"
        )
        raise TraceError(f"{directory} contains no parts of a trace; {hint}")
    start_us = min((_moment(record) for log in logs.values() for record in log if _moment(record)), default=0)
    parts = []
    for path, log in logs.items():
        part = Part(client_of(path), start_us)
        for record in log:
            part.add(record)
        log.clear()
        parts.append(part)
    return parts


def _missing(parts: Sequence[Part]) -> list[Part]:
    """Return an empty part for each client that published events but wrote no part."""
    known = {part.client for part in parts}
    delivered = {row.event_id.rpartition(":")[0] for part in parts for row in part.history if row.kind == "deliver"}
    return [Part(client, parts[0].start_us) for client in sorted(delivered - known)]


def _moment(record: Record) -> int:
    """Return the time of a record, or 0 if it has none."""
    return getattr(record, "began_us", 0) or getattr(record, "time_us", 0)


def _common_run(parts: Sequence[Part], place: str) -> RunRow:
    runs = [part.run for part in parts if part.run is not None]
    if not runs:
        raise TraceError(f"no part in {place} names its run: all of them ended too early")
    for run in runs:
        if run != runs[0]:
            raise TraceError(
                f"the parts in {place} are of two networks: {runs[0].run!r} and {run.run!r}; keep them apart"
            )
    return runs[0]


def _skew(parts: Sequence[Part], given_ms: float | None, place: str) -> float:
    if given_ms is not None:
        if not (math.isfinite(given_ms) and given_ms >= 0):
            raise TraceError(f"clocks differ by some milliseconds, from 0 on, and not by {given_ms}")
        return given_ms
    machines = sorted({part.machine for part in parts if part.machine})
    if len(machines) > 1:
        raise TraceError(
            f"the parts in {place} were written on {len(machines)} machines ({machines[0]}, "
            f"{machines[1]}, …); state by how many milliseconds their clocks may differ "
            "(--clock-skew-ms)"
        )
    return 0.0


def _known_acts(run: str, parts: Sequence[Part]) -> tuple[dict[str, list[HistoryRow]], list[CutShortRow]]:
    """Return each client's history without the actions that cannot be checked, and the incomplete clients."""
    sent = {part.client: part.confirmed_seq for part in parts if not part.is_closed}
    forgotten = dict.fromkeys(sent, 0)
    published = {row.event_id for part in parts for row in part.events}
    histories = {}
    for part in parts:
        kept: list[HistoryRow] = []
        for row in part.history:
            publisher, _, number = row.event_id.rpartition(":")
            if row.kind == "deliver" and publisher in sent:
                sent[publisher] = max(sent[publisher], int(number))
                if row.event_id not in published:
                    forgotten[publisher] += 1
                    continue
            kept.append(row if row.step == len(kept) else msgspec.structs.replace(row, step=len(kept)))
        histories[part.client] = kept
    return histories, [
        CutShortRow(run, part.client, len(part.history), part.last_ms, sent[part.client], forgotten[part.client])
        for part in parts
        if not part.is_closed
    ]


def _pasts(run: str, parts: Iterable[Part], acts: dict[str, list[HistoryRow]]) -> list[PastRow]:
    """Return the certificate of the actions of all clients, ordered so that each publication precedes its deliveries.

    A client is processed until a delivery whose publication is still to come. Deliveries of
    unpublished events, and contradicting histories, are left to the checker.
    """
    seqs = {row.event_id: (row.publisher, row.seq) for part in parts for row in part.events}
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
