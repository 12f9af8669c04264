"""Converts verdicts and anomalies to rows, which an audit shows, writes and puts into JSON.

| table | columns |
| --- | --- |
| verdicts | run, guarantee, status, reason, anomalies, counts, events, subscriptions, deliveries, cut_short |
| anomalies | run, kind, client, subscription, event, publisher, witness, message |
"""

from collections import Counter
from collections.abc import Iterable
from operator import itemgetter
from typing import Any, TypeAlias

import msgspec

from gapless.checkers.verdict import Verdict

__all__ = ["IN_ORDER", "PAIRS_MAX", "ROWS_MAX", "Row", "anomaly_rows", "first_anomalies", "verdict_row"]

ROWS_MAX = 500_000
"""The maximum number of rows that one process holds at a time, about half a gigabyte."""

PAIRS_MAX = 50_000_000
"""The maximum number of pairs of a subscription and a matching event in a run that one process checks."""

IN_ORDER = ("client", "subscription", "event", "message")
"""The order of anomalies of one kind in one run."""

Row: TypeAlias = dict[str, Any]


def verdict_row(verdict: Verdict) -> Row:
    """Return the row of one run."""
    return {
        "run": verdict.run,
        "guarantee": verdict.guarantee,
        "status": verdict.status,
        "reason": verdict.reason,
        "anomalies": len(verdict.anomalies),
        "counts": dict(verdict.counts),
        "events": verdict.events,
        "subscriptions": verdict.subscriptions,
        "deliveries": verdict.deliveries,
        "cut_short": [*verdict.cut_short],
    }


def anomaly_rows(verdict: Verdict) -> list[Row]:
    """Return the rows of the anomalies in one run."""
    return [{"run": verdict.run, **row} for row in msgspec.to_builtins(verdict.anomalies)]


def first_anomalies(found: Iterable[Row], count: int) -> list[Row]:
    """Return `count` anomalies. The first of each kind in each run precedes the second of any kind."""
    places: Counter[tuple[str, str]] = Counter()
    placed = []
    for row in sorted(found, key=lambda row: [_nulls_first(row[name]) for name in IN_ORDER]):
        kind = row["run"], row["kind"]
        places[kind] += 1
        placed.append((places[kind], *kind, row))
    chosen = sorted(placed, key=itemgetter(0, 1, 2))[:count]
    return [row for *_, row in sorted(chosen, key=itemgetter(1, 0, 2))]


def _nulls_first(value: str | None) -> tuple[bool, str]:
    return value is not None, value or ""
