"""Checks a run that is too large for one worker: in *shares*, each of some of its clients, by the same rules.

All rules but one concern one client: its actions, and the deliveries to its subscriptions. The exception is the
certificate, which is checked publisher by publisher (see `gapless.checkers.certificate`). So a task reads the events
and the certificate of the whole run, and from the history only its own clients' actions. Spark neither sorts nor moves
rows.

If a claim of the certificate does not follow, and within topics, for which there is no certificate, the pasts come from
a replay of all histories instead: each task reads the actions of all clients, four bytes per action, and compares them
with the certificate. The proof of a causal anomaly also needs the histories of others; a task that finds one reads them
then.
"""

import gc
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.pandas.types import from_arrow_schema

from gapless.checkers.causal_chain import NoChainError
from gapless.checkers.certificate import Certificate, find_false_pasts
from gapless.checkers.evidence import Evidence
from gapless.checkers.happens_before import Acts, HappensBefore
from gapless.checkers.judge import RunChecker, RunFindings, acts_of
from gapless.errors import TraceError
from gapless.trace import Trace
from gapless_spark.audit.findings import FOUND, fault_row, found_row
from gapless_spark.audit.reading import batches_of_run, read_rows
from gapless_spark.audit.workers import Sizes, tasks_of
from gapless_spark.tables import TraceTables

__all__ = ["ROWS_PER_SHARE", "judge_in_shares"]

ROWS_PER_SHARE = 2_000_000
"""The number of a run's rows per task: about half a gigabyte. A client is not divided."""

CHAINS_MAX = 100
"""The number of causal chains that a share searches for. Beyond that, a witness is only the cause and the effect."""

_SMALL = ("runs", "subscriptions", "cuts", "cut_short", "skipped")

_Numbers = npt.NDArray[Any]
_Files = Mapping[str, Sequence[str]]


class Share(NamedTuple):
    """A subset of a run's clients, which are audited together."""

    run: str
    number: int
    of: int
    replays: bool = False
    """Whether the certificate is known to be false."""

    def has(self, client: str) -> bool:
        """Return whether the client belongs to the share."""
        return crc32(client.encode()) % self.of == self.number


def judge_in_shares(spark: SparkSession, tables: TraceTables, runs: Sizes, rows_per_share: int) -> DataFrame:
    """Return a row for each share of each of these runs."""
    shares = [
        Share(run, number, count)
        for run, rows in runs.items()
        for count in [max(tasks_of(spark), -(-rows // rows_per_share))]
        for number in range(count)
    ]
    found = _judged(spark, tables.files, shares)
    unclear = {row["run"] for row in found.where("unclear").select("run").distinct().collect()}
    if not unclear:
        return found
    again = [share._replace(replays=True) for share in shares if share.run in unclear]
    return found.where(~F.col("run").isin(list(unclear))).union(_judged(spark, tables.files, again))


def _judged(spark: SparkSession, files: _Files, shares: Sequence[Share]) -> DataFrame:
    judge = partial(_judged_batches, shares, files)
    tasks = max(1, min(len(shares), 16 * tasks_of(spark)))
    return spark.range(0, len(shares), 1, tasks).mapInArrow(judge, from_arrow_schema(FOUND)).localCheckpoint()


# ---- on an executor --------------------------------------------------------------------------------------------


def _judged_batches(
    shares: Sequence[Share], files: _Files, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for number in batch.column(0).to_pylist():
            try:
                row = judge_share(shares[number], files)
            except TraceError as error:
                row = fault_row(shares[number].run, str(error))
            yield pa.RecordBatch.from_pylist([row], schema=FOUND)


def judge_share(share: Share, files: _Files) -> dict[str, Any]:
    """Return the row with the findings in the share."""
    evidence = _evidence(share, files)
    ids = pa.array([row.event_id for row in evidence.listed], pa.string())

    def all_acts() -> Acts:
        return _read_acts(share.run, files, ids)

    if share.replays or evidence.run.guarantee == "topic-causal":
        return found_row(evidence, _judge_by_replay(share, evidence, all_acts, files))
    certificate = _read_certificate(share.run, files, evidence, ids)
    if certificate is None or not _is_true(certificate, acts_of(evidence)):
        return fault_row(share.run, None)
    judge = RunChecker(evidence, certificate.events, all_acts, CHAINS_MAX, share.has)
    gc.freeze()  # the data stays in use, so the garbage collector need not scan it repeatedly
    try:
        return found_row(evidence, judge.findings())
    except NoChainError:  # a claim about another share's events is false
        return fault_row(share.run, None)
    finally:
        gc.unfreeze()


def _is_true(certificate: Certificate, acts: Acts) -> bool:
    return all(certificate.follows(client, each) for client, each in acts.items())


def _judge_by_replay(share: Share, evidence: Evidence, all_acts: Callable[[], Acts], files: _Files) -> RunFindings:
    acts = all_acts()
    relation = HappensBefore(share.run, evidence.listed, acts)
    found = RunChecker(evidence, relation.events, lambda: acts, CHAINS_MAX, share.has).findings()
    claims: dict[str, dict[str, int]] = {}
    for batch in batches_of_run(files["pasts"], share.run, ["event_id", "publisher", "seq"]):
        for event_id, publisher, seq in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            if share.has(event_id.rpartition(":")[0]):
                _claim(share.run, claims.setdefault(event_id, {}), event_id, publisher, seq)
    mine = [event for event in relation.events if share.has(event.publisher)]
    found.anomalies += find_false_pasts(claims, relation, mine)
    return found


def _claim(run: str, entries: dict[str, int], event_id: str, publisher: str, seq: int) -> None:
    if publisher in entries:
        raise TraceError(f"run {run}: the past of {event_id} has two entries for publisher {publisher}")
    entries[publisher] = seq


# ---- reading the rows of a share -------------------------------------------------------------------------------


def _evidence(share: Share, files: _Files) -> Evidence:
    chosen = pa.array([share.run], pa.string())
    tables = {table: read_rows(table, files[table], chosen) for table in (*_SMALL, "events")}
    clients: set[str] = set()
    for batch in batches_of_run(files["history"], share.run, ["client"]):
        clients.update(batch.column(0).dictionary.to_pylist())
    mine = pa.array(sorted(filter(share.has, clients)), pa.string())
    history = read_rows("history", files["history"], chosen, mine)
    return Evidence.of(Trace(**tables, history=history, pasts=[], messages=[]), is_share=True)


def _read_certificate(run: str, files: _Files, evidence: Evidence, ids: pa.Array) -> Certificate | None:
    """Return the certificate in the trace; `None` if it mentions an event that was never published."""
    publishers = pa.array(list(evidence.by_publisher), pa.string())
    columns: list[list[_Numbers]] = [[], [], []]
    for batch in batches_of_run(files["pasts"], run, ["event_id", "publisher", "seq"]):
        columns[0].append(_places(batch.column(0), ids))
        columns[1].append(_places(batch.column(1), publishers))
        columns[2].append(batch.column(2).to_numpy())
    at, about, reach = (np.concatenate([np.zeros(0, np.int64), *parts]) for parts in columns)
    if (at < 0).any() or (about < 0).any():
        return None
    order = np.lexsort((about, at))
    at, about, reach = at[order], about[order], reach[order]
    twice = np.flatnonzero((np.diff(at) == 0) & (np.diff(about) == 0))
    if len(twice):
        event_id, publisher = ids[int(at[twice[0]])].as_py(), publishers[int(about[twice[0]])].as_py()
        raise TraceError(f"run {run}: the past of {event_id} has two entries for publisher {publisher}")
    return Certificate(evidence.listed, publishers.to_pylist(), at.tolist(), _packed("i", about), _packed("q", reach))


def _read_acts(run: str, files: _Files, ids: pa.Array) -> Acts:
    """Return the actions of all clients of the run, without deliveries of events that were never published."""
    names: dict[str, int] = {}
    columns: list[list[_Numbers]] = [[], [], []]
    for batch in batches_of_run(files["history"], run, ["client", "step", "kind", "event_id"]):
        client, step, kind, event_id = batch.columns
        known = np.array([names.setdefault(name, len(names)) for name in client.dictionary.to_pylist()], np.int64)
        event = _places(event_id, ids)
        publishes = pc.equal(kind.cast(pa.string()), "publish").to_numpy(zero_copy_only=False)
        for column, part in zip(
            columns,
            (known[client.indices.to_numpy()], step.to_numpy(), np.where(publishes, ~event, event)),
            strict=True,
        ):
            column.append(part[event >= 0])
    client, step, act = (np.concatenate([np.zeros(0, np.int64), *parts]) for parts in columns)
    order = np.lexsort((step, client))
    client, act = client[order], act[order]
    first = np.searchsorted(client, np.arange(len(names) + 1))
    return {name: _packed("i", act[first[place] : first[place + 1]]) for name, place in names.items()}


def _places(column: pa.Array, values: pa.Array) -> _Numbers:
    """Return, for each entry, its index among the values; -1 if it is not there."""
    found = pc.index_in(column, value_set=values).fill_null(-1)
    return found.to_numpy(zero_copy_only=False).astype(np.int64)  # type: ignore[no-any-return]


def _packed(kind: str, numbers: _Numbers) -> "array[int]":
    packed: array[int] = array(kind)
    packed.frombytes(numbers.astype(np.int32 if kind == "i" else np.int64).tobytes())
    return packed
