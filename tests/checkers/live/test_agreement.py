"""The final report of the live checker equals that of `check` on all parts together."""

import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from gapless.checkers import Verdict, check
from gapless.protocol import Guarantee, Ready
from gapless.trace import merge_parts
from tests.checkers import test_agreement as whole
from tests.checkers.model import Call, Model, Run
from tests.spark.traces import LATE_STARTS, PLANTS

from .parts import judged, write_parts

GUARANTEES: tuple[Guarantee, ...] = ("gcd", "gfd", "topic-causal", "best-effort")


def compare(run: Run, place: Path, seed: int, *, close: bool = True, lost: Sequence[str] = ()) -> Verdict:
    written = [client for client in write_parts(run, place, close=close) if client not in lost]
    for client in lost:
        (place / "parts" / f"{client}.part").unlink()
    expected = check(merge_parts(place, quiesced=run.quiesced))
    live = judged(place, written, seed, quiesced=run.quiesced)
    assert names(live) == names(expected)
    assert live.status == expected.status
    assert (live.events, live.subscriptions, live.deliveries) == (
        expected.events, expected.subscriptions, expected.deliveries,
    )  # fmt: skip
    assert live.cut_short == expected.cut_short
    return expected


def names(verdict: Verdict) -> Counter[tuple[str, str, str | None, str | None]]:
    return Counter((each.kind, each.client, each.subscription, each.event) for each in verdict.anomalies)


@pytest.mark.parametrize("guarantee", GUARANTEES)
@pytest.mark.parametrize("quiesced", [True, False])
def test_honest_runs_are_found_honest(guarantee: Guarantee, quiesced: bool, tmp_path: Path) -> None:
    for seed in range(15):
        run = Model(seed, guarantee=guarantee, ready=("first", "whole")).run(quiesced=quiesced)
        verdict = compare(run, tmp_path / str(seed), seed)
        assert verdict.anomalies == ()


@pytest.mark.parametrize("what", [*PLANTS, *LATE_STARTS])
def test_planted_anomalies_are_named_as_by_the_full_audit(what: str, tmp_path: Path) -> None:
    plant = {**PLANTS, **LATE_STARTS}[what]
    ready: tuple[Ready, ...] = ("whole",) if what in LATE_STARTS else ("first",)
    planted = 0
    for seed in range(25):
        outcome = plant(Model(seed, ready=ready).run(), random.Random(seed))
        if outcome is not None:
            planted += 1
            verdict = compare(outcome[0], tmp_path / str(seed), seed)
            assert verdict.status == ("valid" if what == "cut moved" else "invalid")
    assert planted


@pytest.mark.parametrize("guarantee", GUARANTEES)
def test_runs_that_went_wrong_in_random_ways_are_judged_alike(guarantee: Guarantee, tmp_path: Path) -> None:
    compared = Counter[str]()
    for seed in range(150):
        draw = random.Random(seed)
        run = Model(seed, guarantee=guarantee, ready=("first", "whole")).run(quiesced=draw.random() < 0.5)
        run = whole.mutate(run, draw)
        if not is_in_order(run):
            continue
        verdict = compare(run, tmp_path / str(seed), seed, close=draw.random() < 0.8)
        compared[verdict.status] += 1
    assert compared["invalid"] >= 25


@pytest.mark.parametrize("guarantee", GUARANTEES)
def test_both_checks_report_clients_without_a_part_and_neither_blames_the_network(
    guarantee: Guarantee, tmp_path: Path
) -> None:
    missed = Counter[int]()
    for seed in range(60):
        draw = random.Random(seed)
        run = Model(seed, clients=5, guarantee=guarantee).run(quiesced=draw.random() < 0.5)
        clients = sorted({call.client for call in run.calls})
        verdict = compare(
            run, tmp_path / str(seed), seed, close=draw.random() < 0.8, lost=draw.sample(clients, draw.choice([1, 2]))
        )
        assert verdict.anomalies == ()
        missed[sum("wrote no part" in reported for reported in verdict.cut_short)] += 1
    assert min(missed[1], missed[2]) > 5, missed


def is_in_order(run: Run) -> bool:
    """Return whether no client learns of a cut after the deliveries that depend on it, or receives anything after an
    end."""
    delivered: set[tuple[str, str]] = set()
    fixed: set[tuple[str, str]] = set()
    ended: set[str] = set()
    for call in run.calls:
        if call.kind == "deliver":
            delivered.add((call.subscription, call.happening.publisher))
        elif call.kind == "cut":
            key = (call.subscription, call.publisher)
            if key in delivered or key in fixed or call.subscription in ended:
                return False
            fixed.add(key)
        elif call.kind == "end":
            if call.subscription in ended:
                return False
            ended.add(call.subscription)
    return _asked_first(run.calls)


def _asked_first(calls: list[Call]) -> bool:
    asked: set[str] = set()
    for call in calls:
        if call.kind == "subscribe":
            asked.add(call.subscription)
        elif call.kind in ("cut", "end", "activate") and call.subscription not in asked:
            return False
    return True
