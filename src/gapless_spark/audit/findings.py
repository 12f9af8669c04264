"""The findings of a worker on a run, or on a share of one, as rows of a DataFrame; and the verdict from all rows of a
run.

A run that cannot be checked is described in a sentence, because Spark would show an exception on an executor with a
long stack trace.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
import pyarrow as pa

from gapless.checkers.evidence import Evidence, check_count
from gapless.checkers.incomplete_clients import IncompleteClient
from gapless.checkers.judge import RunFindings, status_of
from gapless.checkers.verdict import ANOMALY_KINDS
from gapless.checkers.verdict_rows import Row
from gapless.errors import TraceError

__all__ = ["FOUND", "VERDICT", "fault_row", "found_row", "verdict_rows"]

_ANOMALY = pa.struct([
    ("kind", pa.string()), ("client", pa.string()), ("subscription", pa.string()), ("event", pa.string()),
    ("publisher", pa.string()), ("witness", pa.list_(pa.string())), ("message", pa.string()),
])  # fmt: skip
_PLACED = pa.struct([("place", pa.int64()), ("text", pa.string())])
FOUND = pa.schema([
    ("run", pa.string()), ("guarantee", pa.string()), ("fault", pa.string()), ("unclear", pa.bool_()),
    ("events", pa.int64()), ("subscriptions", pa.int64()), ("deliveries", pa.int64()), ("published", pa.int64()),
    ("accepted", pa.int64()), ("counts", pa.map_(pa.string(), pa.int64())), ("first", _PLACED), ("silence", _PLACED),
    ("cut_short", pa.list_(pa.string())), ("aside", pa.string()), ("found", pa.list_(_ANOMALY)),
])  # fmt: skip
VERDICT = {
    "run": "string", "guarantee": "string", "status": "string", "reason": "string", "anomalies": "bigint",
    "counts": "map<string,bigint>", "events": "bigint", "subscriptions": "bigint", "deliveries": "bigint",
    "cut_short": "array<string>",
}  # fmt: skip
"""The columns of a verdict, and their types."""


def found_row(evidence: Evidence, found: RunFindings) -> Row:
    """Return a row with the findings on a run or a share of it."""
    counts = Counter(anomaly.kind for anomaly in found.anomalies)
    cut_short: IncompleteClient = evidence.cut_short
    return {
        "run": evidence.run.run, "guarantee": evidence.run.guarantee, "fault": None, "unclear": False,
        "events": len(evidence.events), "subscriptions": len(evidence.subscriptions),
        "deliveries": evidence.deliveries, "published": evidence.published, "accepted": found.accepted,
        "counts": list(counts.items()),
        "first": {"place": found.first, "text": found.anomalies[0].message} if found.anomalies else None,
        "silence": dict(zip(("place", "text"), found.silence, strict=True)) if found.silence else None,
        "cut_short": cut_short.sentences(), "aside": cut_short.reason(),
        "found": msgspec.to_builtins(found.anomalies),
    }  # fmt: skip


def fault_row(run: str, fault: str | None) -> Row:
    """Return a row for a run that is rejected because of `fault`; without a fault, a row for a run that needs another
    pass."""
    return {"run": run, "fault": fault, "unclear": fault is None}


def verdict_rows(rows: Iterable[Row]) -> list[Row]:
    """Return the verdict on each run, from the rows of its shares; raise a `TraceError` for a fault."""
    by_run: dict[str, list[Row]] = {}
    faults = []
    for row in rows:
        by_run.setdefault(row["run"], []).append(row)
        if row["fault"] is not None:
            faults.append(row["fault"])
    if faults:
        raise TraceError(min(faults))
    return [_verdict_row(shares) for shares in by_run.values()]


def _verdict_row(shares: Sequence[Row]) -> Row:
    one = shares[0]
    check_count(one["run"], one["events"], sum(share["published"] for share in shares))
    counts: Counter[str] = Counter()
    for share in shares:
        counts.update(share["counts"])
    status, reason = status_of(
        _first_text(shares, "first"), sum(counts.values()), sum(share["accepted"] for share in shares),
        _first_text(shares, "silence"),
    )  # fmt: skip
    return {
        "run": one["run"], "guarantee": one["guarantee"], "status": status, "reason": reason + one["aside"],
        "anomalies": sum(counts.values()), "counts": {kind: counts[kind] for kind in ANOMALY_KINDS if counts[kind]},
        "events": one["events"], "subscriptions": one["subscriptions"],
        "deliveries": sum(share["deliveries"] for share in shares), "cut_short": one["cut_short"],
    }  # fmt: skip


def _first_text(shares: Sequence[Row], name: str) -> str | None:
    """Return the text of the share whose subscription is first in the table."""
    said: list[Any] = [share[name] for share in shares if share[name] is not None]
    return min((each["place"], each["text"]) for each in said)[1] if said else None
