"""The audit says of some hundred runs what the checkers say: verdict, anomalies, witnesses, words.

By joins, as for runs of any size; in workers, as for those that fit there; by arrays, as for the large ones in between:
some in one way, some in another, in one audit. Most of its time goes into Spark's plans, whatever the number of runs.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from gapless.checkers import ANOMALY_KINDS, Verdict, check
from gapless.protocol import Guarantee
from gapless.trace import Trace, write_trace
from gapless_spark.audit import audit, first_anomalies, judge, large_runs
from gapless_spark.audit.large_runs import EVENTS_MAX
from gapless_spark.audit.small_runs import Sizes
from gapless_spark.tables import TraceTables, read_tables

from .traces import (
    FORGERIES,
    GROUPS,
    LATE_STARTS,
    LIVE,
    PLANTS,
    TOLD_FALSELY,
    a_live_run,
    all_told,
    chain_of_answers,
    group_trace,
    honest_runs,
    planted_runs,
    runs_that_went_wrong,
)

pytestmark = pytest.mark.timeout(2_400)
SEEDS: dict[Guarantee, int] = {"gcd": 180, "gfd": 60, "topic-causal": 60, "best-effort": 20}
PLANTED = 5
"""Runs of each kind of anomaly that can be planted."""
FEW = 15
"""Runs of each status, and anomalies of each kind, that must be exceeded."""
CHAIN = 30
"""Clients of a chain of answers."""
JOBS_MAX = 550
"""Of Spark, for all runs: a search for witnesses that took a join a level would take hundreds more."""


JOBS_IN_WORKERS_MAX = 8
"""Of Spark, for all runs in workers: they are counted, judged once, and what was found is fetched."""


_GROUPS = count()


class Ways(NamedTuple):
    """Which runs were judged in which way."""

    in_workers: set[str]
    by_joins: set[str]
    by_arrays: set[str]


class Judged(NamedTuple):
    """What both judges said of the same runs."""

    place: Path
    traces: list[Trace]
    expected: dict[str, Verdict]
    verdicts: dict[str, dict[str, Any]]
    anomalies: dict[str, Counter[tuple[Any, ...]]]
    kinds_of_runs: Counter[str]
    ways: Ways
    jobs: int


def audited(
    spark: SparkSession, place: Path, *, rows_max: int, events_max: int = 0, look_first: bool | None = None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Verdicts and anomalies of all runs, by one audit."""
    tables = read_tables(spark, place)
    result = audit(spark, tables, rows_max=rows_max, events_max=events_max, look_first=look_first)
    anomalies: dict[str, Counter[tuple[Any, ...]]] = {}
    for row in result.anomalies.toArrow().to_pylist():
        told = (
            *(row[name] for name in ("kind", "client", "subscription", "event", "publisher")),
            tuple(row["witness"]),
        )
        anomalies.setdefault(row["run"], Counter())[(*told, row["message"])] += 1
    verdicts = {row["run"]: row for row in result.verdicts.toArrow().to_pylist(maps_as_pydicts="strict")}
    result.release()
    return verdicts, anomalies


@pytest.fixture(scope="module")
def judged(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Judged:
    kinds: Counter[str] = Counter()
    traces = [*runs_that_went_wrong(SEEDS), *honest_runs(5), *(group_trace(run) for run in GROUPS)]
    for kind, trace in planted_runs(20):
        if kinds[kind] < PLANTED:
            kinds[kind] += 1
            traces.append(trace)
    traces += [chain_of_answers(CHAIN), a_live_run(tmp_path_factory.mktemp("live"))]
    expected = {trace.runs[0].run: check(trace) for trace in traces}
    place = tmp_path_factory.mktemp("agreement") / "trace"
    write_trace(traces, place)
    sizes = {
        trace.runs[0].run: sum(len(getattr(trace, table)) for table in Trace.__struct_fields__) for trace in traces
    }
    rows_max = sorted(sizes.values())[len(traces) // 20]
    by_joins: list[Sizes] = []

    def glance_at(spark: SparkSession, tables: TraceTables, runs: Sizes) -> tuple[DataFrame, Sizes]:
        """Only every other run that arrays can judge is left to them."""
        clear, unclear = large_runs.glance_at(spark, tables, runs)
        others = sorted(runs.keys() - unclear.keys())[::2]
        by_joins.append({**unclear, **{run: runs[run] for run in others}})
        return clear.where(~F.col("run").isin(others)), by_joins[0]

    with pytest.MonkeyPatch.context() as patch, counted_jobs(spark) as jobs:
        patch.setattr(judge, "glance_at", glance_at)
        verdicts, anomalies = audited(spark, place, rows_max=rows_max, events_max=EVENTS_MAX, look_first=True)
    in_workers = {run for run, rows in sizes.items() if rows <= rows_max}
    ways = Ways(in_workers, set(by_joins[0]), sizes.keys() - in_workers - by_joins[0].keys())
    return Judged(place, traces, expected, verdicts, anomalies, kinds, ways, len(jobs))


@contextmanager
def counted_jobs(spark: SparkSession) -> Iterator[list[int]]:
    """The numbers of the jobs of the block, once it is over."""
    jobs: list[int] = []
    group = f"counted {next(_GROUPS)}"
    spark.sparkContext.setJobGroup(group, "a block of a test")
    try:
        yield jobs
        jobs += spark.sparkContext.statusTracker().getJobIdsForGroup(group)
    finally:
        spark.sparkContext.setJobGroup("others", "what is not counted")


def test_every_run_is_judged(judged: Judged) -> None:
    assert len(judged.expected) > 400
    assert judged.verdicts.keys() == judged.expected.keys()
    assert judged.verdicts[LIVE]["status"] == "valid"


def test_the_runs_are_of_all_kinds(judged: Judged) -> None:
    statuses = Counter(verdict.status for verdict in judged.expected.values())
    assert min(statuses[status] for status in ("valid", "invalid", "unknown")) > FEW, statuses
    found = Counter(anomaly.kind for verdict in judged.expected.values() for anomaly in verdict.anomalies)
    assert min(found[kind] for kind in ANOMALY_KINDS) > FEW, found
    forged = {f"forged, {how}" for how in FORGERIES}
    assert set(judged.kinds_of_runs) == {*PLANTS, *LATE_STARTS, TOLD_FALSELY} | forged


def test_the_verdicts_agree(judged: Judged) -> None:
    for run, verdict in judged.expected.items():
        row = judged.verdicts[run]
        assert row["status"] == verdict.status, f"{run}: {verdict.reason}"
        assert row["guarantee"] == verdict.guarantee
        assert row["counts"] == verdict.counts, run
        counted = (row["events"], row["subscriptions"], row["deliveries"], row["anomalies"])
        assert counted == (verdict.events, verdict.subscriptions, verdict.deliveries, len(verdict.anomalies)), run
        assert row["cut_short"] == list(verdict.cut_short)
        if len(verdict.anomalies) == 1 or verdict.status == "valid":
            assert row["reason"] == verdict.reason


def test_the_anomalies_agree_with_witnesses_and_words(judged: Judged) -> None:
    for run, verdict in judged.expected.items():
        assert judged.anomalies.get(run, Counter()) == all_told(verdict), run


def test_a_long_chain_of_causes_takes_no_more_jobs(judged: Judged) -> None:
    witnesses = [witness for *_, witness, _ in judged.anomalies["chain"]]
    assert max(map(len, witnesses)) == CHAIN
    assert 0 < judged.jobs <= JOBS_MAX


def test_some_are_judged_in_workers_some_by_arrays_and_most_by_joins(judged: Judged) -> None:
    assert min(map(len, judged.ways)) > FEW, {name: len(runs) for name, runs in judged.ways._asdict().items()}
    assert "chain" in judged.ways.by_joins
    for status in ("valid", "invalid", "unknown"):
        assert sum(judged.expected[run].status == status for run in judged.ways.by_joins) > FEW, status
    found = Counter(anomaly.kind for run in judged.ways.by_joins for anomaly in judged.expected[run].anomalies)
    assert min(found[kind] for kind in ANOMALY_KINDS) > FEW, found


def test_so_are_the_groups(judged: Judged) -> None:
    assert judged.ways.by_joins >= GROUPS.keys()
    assert [judged.expected[run].status for run in GROUPS] == ["valid", "invalid", "invalid", "invalid"]


def test_in_workers_the_verdicts_are_those_of_the_checkers_to_the_last_word(
    spark: SparkSession, judged: Judged
) -> None:
    with counted_jobs(spark) as jobs:
        verdicts, anomalies = audited(spark, judged.place, rows_max=10**9)
    assert len(jobs) <= JOBS_IN_WORKERS_MAX
    assert verdicts.keys() == judged.expected.keys()
    for run, verdict in judged.expected.items():
        row = verdicts[run]
        assert (row["status"], row["reason"], row["counts"]) == (verdict.status, verdict.reason, verdict.counts), run
        assert row["cut_short"] == list(verdict.cut_short)
        counted = (row["events"], row["subscriptions"], row["deliveries"], row["anomalies"])
        assert counted == (verdict.events, verdict.subscriptions, verdict.deliveries, len(verdict.anomalies)), run
        assert anomalies.get(run, Counter()) == all_told(verdict), run


def test_what_is_told_is_chosen_here_as_spark_chooses_it(spark: SparkSession, judged: Judged) -> None:
    result = audit(spark, read_tables(spark, judged.place), rows_max=10**9)
    verdicts, found = result.tell(100)
    assert [row["run"] for row in verdicts] == sorted(judged.expected)
    assert found == first_anomalies(result.anomalies, 100).toArrow().to_pylist()
    assert len(found) == 100
    result.release()
