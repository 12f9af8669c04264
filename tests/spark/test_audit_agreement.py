"""The audit and the checkers agree on several hundred runs: verdicts, anomalies, witnesses and messages.

Small runs are checked in workers as a whole, larger ones in shares of their clients. Shares can be compared without
Spark; one audit on Spark checks some runs in each way.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
from pyspark.sql import SparkSession

from gapless.checkers import ANOMALY_KINDS, Anomaly, Verdict, check
from gapless.checkers.verdict_rows import Row
from gapless.protocol import Guarantee
from gapless.trace import Trace, read_trace, write_trace
from gapless.trace.tables import TABLES
from gapless_spark.audit import audit, first_anomalies, shares
from gapless_spark.audit.findings import verdict_rows
from gapless_spark.audit.shares import Share, judge_share
from gapless_spark.tables import read_tables

from .traces import (
    FORGERIES,
    GROUPS,
    LATE_STARTS,
    PLANTS,
    REPORTED_FALSELY,
    all_reported,
    chain_of_answers,
    group_trace,
    honest_runs,
    planted_runs,
    reported,
    runs_that_went_wrong,
    together,
)

SEEDS: dict[Guarantee, int] = {"gcd": 60, "gfd": 25, "topic-causal": 25, "best-effort": 10}
PLANTED = 2
FEW = 8
CHAIN = 30
SHARES = 3
JOBS_MAX = 12

_GROUPS = count()


class Corpus(NamedTuple):
    place: Path
    expected: dict[str, Verdict]
    sizes: dict[str, int]
    kinds: set[str]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    kinds: Counter[str] = Counter()
    traces = [*runs_that_went_wrong(SEEDS), *honest_runs(3), *(group_trace(run) for run in GROUPS)]
    for kind, trace in planted_runs(20):
        if kinds[kind] < PLANTED:
            kinds[kind] += 1
            traces.append(trace)
    traces.append(chain_of_answers(CHAIN))
    place = tmp_path_factory.mktemp("agreement") / "trace"
    write_trace(traces, place)
    sizes = {
        trace.runs[0].run: sum(len(getattr(trace, table)) for table in Trace.__struct_fields__) for trace in traces
    }
    return Corpus(place, {trace.runs[0].run: check(trace) for trace in traces}, sizes, set(kinds))


def test_the_runs_are_of_all_kinds(corpus: Corpus) -> None:
    statuses = Counter(verdict.status for verdict in corpus.expected.values())
    assert min(statuses[status] for status in ("valid", "invalid", "unknown")) > FEW, statuses
    found = Counter(anomaly.kind for verdict in corpus.expected.values() for anomaly in verdict.anomalies)
    assert min(found[kind] for kind in ANOMALY_KINDS) > FEW, found
    assert corpus.kinds == {*PLANTS, *LATE_STARTS, REPORTED_FALSELY, *(f"forged, {how}" for how in FORGERIES)}
    assert [corpus.expected[run].status for run in GROUPS] == ["valid", "invalid", "invalid", "invalid"]


def agrees(row: Row, verdict: Verdict) -> None:
    counted = (row["events"], row["subscriptions"], row["deliveries"], row["anomalies"])
    assert counted == (verdict.events, verdict.subscriptions, verdict.deliveries, len(verdict.anomalies)), verdict.run
    assert (row["status"], row["guarantee"]) == (verdict.status, verdict.guarantee), verdict.reason
    assert (row["counts"], row["cut_short"]) == (verdict.counts, list(verdict.cut_short)), verdict.run


def files_of(place: Path) -> dict[str, list[str]]:
    return {table: [f"file:{file}" for file in sorted((place / table).glob("*.parquet"))] for table in TABLES}


def test_shares_together_find_what_the_checkers_find_in_the_whole_trace(corpus: Corpus) -> None:
    files, replayed = files_of(corpus.place), Counter[str]()
    chosen = dict(list(corpus.expected.items())[::2]) | {run: corpus.expected[run] for run in (*GROUPS, "chain")}
    for run, verdict in chosen.items():
        rows = [judge_share(Share(run, number, SHARES), files) for number in range(SHARES)]
        if any(row["unclear"] for row in rows):
            replayed[verdict.guarantee] += 1
            rows = [judge_share(Share(run, number, SHARES, replays=True), files) for number in range(SHARES)]
        found = [msgspec.convert(each, Anomaly) for row in rows for each in row["found"]]
        assert Counter(map(reported, found)) == all_reported(verdict), run
        [judged] = verdict_rows({**row, "counts": dict(row["counts"])} for row in rows)
        agrees({**judged, "cut_short": list(judged["cut_short"])}, verdict)
        assert judged["reason"] == verdict.reason, run
    assert min(replayed["gcd"], replayed["gfd"]) > 0, replayed
    assert replayed.total() < len(chosen) / 2, "the certificate is of use"


def test_the_proof_of_an_inversion_leads_through_the_clients_of_other_shares(corpus: Corpus) -> None:
    rows = [judge_share(Share("chain", number, CHAIN), files_of(corpus.place)) for number in range(CHAIN)]
    assert max(len(each["witness"]) for row in rows for each in row["found"]) == CHAIN


def test_beyond_a_number_of_chains_cause_and_effect_are_the_proof(
    corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shares, "CHAINS_MAX", 1)
    row = judge_share(Share("chain", 0, 1), files_of(corpus.place))
    lengths = sorted(len(each["witness"]) for each in row["found"])
    assert len(lengths) == len(corpus.expected["chain"].anomalies)
    assert lengths[:-1] == [2] * (len(lengths) - 1)


@contextmanager
def counted_jobs(spark: SparkSession) -> Iterator[list[int]]:
    jobs: list[int] = []
    group = f"counted {next(_GROUPS)}"
    spark.sparkContext.setJobGroup(group, "a block of a test")
    try:
        yield jobs
        jobs += spark.sparkContext.statusTracker().getJobIdsForGroup(group)
    finally:
        spark.sparkContext.setJobGroup("others", "what is not counted")


@pytest.mark.parametrize("half", [False, True], ids=["in workers", "half of them in shares"])
def test_on_spark_it_is_the_same(spark: SparkSession, corpus: Corpus, half: bool, tmp_path: Path) -> None:
    chosen = dict(list(corpus.expected.items())[::6]) | {"chain": corpus.expected["chain"]}
    rows_max = sorted(corpus.sizes[run] for run in chosen)[len(chosen) * 9 // 10] if half else 10**9
    traces = [trace for trace in read_trace(corpus.place).split() if trace.runs[0].run in chosen]
    write_trace(together(traces), tmp_path / "trace")
    with counted_jobs(spark) as jobs:
        result = audit(spark, read_tables(spark, tmp_path / "trace"), rows_max=rows_max, rows_per_share=40)
        found: dict[str, Counter[tuple[Any, ...]]] = {}
        for row in result.anomalies.toArrow().to_pylist():
            run = row.pop("run")
            found.setdefault(run, Counter())[reported(msgspec.convert(row, Anomaly))] += 1
    assert len(jobs) <= JOBS_MAX
    assert result.rows == sorted(result.rows, key=lambda row: str(row["run"]))
    assert result.verdicts.toArrow().to_pylist(maps_as_pydicts="strict") == result.rows
    assert {row["run"] for row in result.rows} == set(chosen)
    for row in result.rows:
        verdict = chosen[row["run"]]
        agrees(row, verdict)
        assert row["reason"] == verdict.reason
        assert found.get(verdict.run, Counter()) == all_reported(verdict), verdict.run
    _, some = result.summary(100)
    assert some == first_anomalies(result.anomalies, 100).toArrow().to_pylist()
