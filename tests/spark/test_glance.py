"""What arrays say of a run is what the checkers say; and they say it of every run that is valid."""

import random
from collections import Counter
from collections.abc import Iterator

import pyarrow as pa
import pytest

from gapless.checkers import check
from gapless.errors import TraceError
from gapless.protocol import Guarantee
from gapless.trace import Trace
from gapless.trace.tables import rows_to_table
from gapless_spark.audit import glance
from gapless_spark.audit.glance import Glance, Judged, UnclearError
from tests.checkers.model import Model, record
from tests.checkers.test_agreement import went_wrong

from .traces import all_told, chain_of_answers, honest_runs, planted_runs

JUDGED: tuple[Guarantee, ...] = ("gcd", "gfd")


def batches(table: pa.Table, few: tuple[str, ...] = ()) -> Iterator[pa.RecordBatch]:
    """Some rows at a time, as they come from files: names that repeat are numbers."""
    for name in few:
        place = table.column_names.index(name)
        table = table.set_column(place, name, table.column(name).dictionary_encode())
    return iter(table.to_batches(max_chunksize=20))


def glanced(trace: Trace, shares: int) -> list[Judged] | None:
    """What each share says; None if one is not sure. Nobody asks them about runs in which losses were told."""
    if trace.skipped:
        return None
    tables = {name: rows_to_table(name, getattr(trace, name)) for name in ("events", "pasts", "history")}
    try:
        found = []
        for share in range(shares):
            events, pasts = batches(tables["events"]), batches(tables["pasts"])
            run = Glance(trace.runs[0], trace.subscriptions, trace.cuts, events, pasts)
            found.append(run.judge(batches(tables["history"], ("client", "kind", "subscription_id")), share, shares))
        return found
    except (UnclearError, TraceError):
        return None


def agree(trace: Trace, shares: int) -> bool:
    """Whether the arrays are sure; if so, they say what the checkers say."""
    verdict = check(trace)
    found = glanced(trace, shares)
    if found is None:
        return False
    told = Counter(
        (*(gap[name] for name in ("kind", "client", "subscription", "event", "publisher")), tuple(gap["witness"]),
         gap["message"])
        for judged in found for gap in judged.gaps
    )  # fmt: skip
    assert told == all_told(verdict), trace.runs[0].run
    assert sum(judged.deliveries for judged in found) == verdict.deliveries
    accepted = sum(judged.accepted for judged in found)
    assert verdict.status == ("invalid" if told else "valid" if accepted else "unknown"), trace.runs[0].run
    return True


def is_clear(trace: Trace) -> bool:
    """Whether the run is of those that arrays must be sure of."""
    verdict = check(trace)
    return verdict.guarantee in JUDGED and verdict.status == "valid"


@pytest.mark.parametrize("guarantee", JUDGED)
def test_runs_that_went_wrong(guarantee: Guarantee) -> None:
    sure = 0
    for seed in range(100):
        trace = went_wrong(seed, guarantee)
        if trace.cut_short:
            continue
        is_sure = agree(trace, 1 + seed % 3)
        assert is_sure or not is_clear(trace), seed
        sure += is_sure
    assert sure > 5


def test_honest_runs_are_clear() -> None:
    for trace in honest_runs(10):
        is_sure = agree(trace, 2)
        assert is_sure or not is_clear(trace), trace.runs[0].run


def test_planted_runs() -> None:
    sure = Counter[str]()
    for kind, trace in planted_runs(4):
        sure[kind] += agree(trace, 1)
    assert set(+sure) == {"dropped in the middle", "dropped before the end", "cut moved"}, sure


def test_a_chain_whose_end_comes_first_is_not_clear() -> None:
    assert glanced(chain_of_answers(5), 1) is None


def test_arrays_may_be_looked_at_a_few_rows_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(glance, "_ENTRIES_AT_ONCE", 5)
    for seed in range(20):
        agree(went_wrong(seed, "gcd"), 1)
        assert agree(record(Model(seed).run(), "honest"), 1)


def test_acts_may_stand_in_any_order() -> None:
    trace = record(Model(4).run(), "honest")
    random.Random(1).shuffle(trace.history)
    random.Random(2).shuffle(trace.events)
    random.Random(3).shuffle(trace.pasts)
    assert agree(trace, 2)


@pytest.mark.parametrize("bound", ["ENTRIES_MAX", "MATCHES_MAX", "PAIRS_MAX"])
def test_a_run_that_is_too_large_is_not_looked_at(monkeypatch: pytest.MonkeyPatch, bound: str) -> None:
    monkeypatch.setattr(glance, bound, 3)
    assert glanced(record(Model(4).run(), "honest"), 1) is None


def test_more_gaps_than_a_share_tells_are_left_to_the_joins(monkeypatch: pytest.MonkeyPatch) -> None:
    [trace] = [trace for kind, trace in planted_runs(1) if kind == "dropped in the middle"]
    assert agree(trace, 1)
    monkeypatch.setattr(glance, "GAPS_MAX", 0)
    assert glanced(trace, 1) is None
