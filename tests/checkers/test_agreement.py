"""The checker and the naive checker report the same anomalies for runs with random changes."""

import random
from collections import Counter
from itertools import pairwise

import msgspec
import pytest

from gapless.checkers import Verdict, check
from gapless.protocol import Guarantee, Ready
from gapless.trace import CutShortRow, PastRow, Trace

from .model import Call, Model, Run, record
from .naive import NaiveJudge, Name


def names(verdict: Verdict) -> Counter[Name]:
    return Counter((a.kind, a.client, a.subscription, a.event, a.publisher) for a in verdict.anomalies)


def mutate(run: Run, draw: random.Random) -> Run:
    """Change the calls in a few random ways. Publications keep their places, so that every run is possible."""
    calls = list(run.calls)
    for _ in range(draw.randint(1, 6)):
        free = [place for place, call in enumerate(calls) if call.kind in ("deliver", "end", "activate", "cut")]
        if not free:
            break
        place = draw.choice(free)
        match draw.choice(["drop", "repeat", "delay", "stray", "cut", "end", "start late", "stop early"]):
            case "drop":
                del calls[place]
            case "repeat":
                calls.insert(draw.randint(place, len(calls)), calls[place])
            case "delay":
                call = calls.pop(place)
                calls.insert(draw.randint(place, len(calls)), call)
            case "stray":
                _stray(calls, draw)
            case "start late" | "stop early" as how:
                calls = _thin_out(calls, how == "start late", draw)
            case "cut" if calls[place].kind == "cut":
                calls[place] = calls[place]._replace(from_seq=max(1, calls[place].from_seq + draw.randint(-2, 3)))
            case "end" if calls[place].kind == "end":
                last_seq = [(publisher, max(0, seq + draw.randint(-2, 2))) for publisher, seq in calls[place].last_seq]
                calls[place] = calls[place]._replace(last_seq=tuple(draw.sample(last_seq, len(last_seq) - 1)))
            case _:
                pass
    return run._replace(calls=calls)


def _thin_out(calls: list[Call], start_late: bool, draw: random.Random) -> list[Call]:
    """Drop the deliveries of one publisher's events to a subscription, before some event or from it on; the cut is
    moved or not."""
    delivered = [call for call in calls if call.kind == "deliver"]
    if not delivered:
        return calls
    chosen = draw.choice(delivered)
    publisher, seq = chosen.happening.publisher, chosen.happening.seq

    def is_dropped(call: Call) -> bool:
        if call.kind != "deliver" or call.subscription != chosen.subscription:
            return False
        event = call.happening
        return event.publisher == publisher and (event.seq <= seq if start_late else event.seq >= seq)

    kept = [call for call in calls if not is_dropped(call)]
    if start_late and draw.random() < 0.8:
        kept.append(Call("cut", chosen.client, chosen.subscription, publisher=publisher, from_seq=seq + 1))
    return kept


def _stray(calls: list[Call], draw: random.Random) -> None:
    events = [(place, call.happening) for place, call in enumerate(calls) if call.kind == "publish"]
    subscriptions = [(place, call) for place, call in enumerate(calls) if call.kind == "subscribe"]
    if events and subscriptions:
        published, event = draw.choice(events)
        requested, subscription = draw.choice(subscriptions)
        place = draw.randint(max(published, requested) + 1, len(calls))
        calls.insert(place, Call("deliver", subscription.client, subscription.subscription, event))


def forge(trace: Trace, draw: random.Random) -> Trace:
    rows = list(trace.pasts)
    if rows and draw.random() < 0.3:
        place = draw.randrange(len(rows))
        if draw.random() < 0.5:
            del rows[place]
        else:
            rows[place] = PastRow("model", rows[place].event_id, rows[place].publisher, draw.randint(0, 5))
    return msgspec.structs.replace(trace, pasts=rows)


def went_wrong(seed: int, guarantee: Guarantee) -> Trace:
    draw = random.Random(f"{guarantee} {seed}")
    claims: tuple[Ready, ...] = ("first", "whole")
    model = Model(seed, clients=draw.randint(2, 4), acts=draw.randint(15, 90), guarantee=guarantee, ready=claims)
    trace = forge(record(mutate(model.run(quiesced=draw.random() < 0.6), draw)), draw)
    skew_ms = draw.choice([0.0, 0.0, 0.25])
    return msgspec.structs.replace(
        trace,
        runs=[msgspec.structs.replace(trace.runs[0], clock_skew_ms=skew_ms)],
        cut_short=cut_short(trace, draw),
    )


def cut_short(trace: Trace, draw: random.Random) -> list[CutShortRow]:
    """Mark some clients as incomplete. Their delivered events, and perhaps more, were sent."""
    rows = []
    for client in sorted({row.client for row in trace.history}):
        if draw.random() < 0.1:
            numbers = [0, *(row.seq for row in trace.events if row.publisher == client)]
            came = [0, *(int(row.event_id.partition(":")[2]) for row in trace.history
                         if row.kind == "deliver" and row.event_id.startswith(f"{client}:"))]  # fmt: skip
            acts = sum(row.client == client for row in trace.history)
            sent = draw.randint(max(came), max(*numbers, *came))
            rows.append(CutShortRow(trace.runs[0].run, client, acts, 1.0, sent, draw.choice([0, 0, 3])))
    if draw.random() < 0.05:
        left_out = draw.choice([0, 4])
        rows.append(CutShortRow(trace.runs[0].run, "never heard of", 0, None, left_out, left_out))
    return rows


@pytest.mark.parametrize(
    ("guarantee", "seeds"), [("gcd", 300), ("gfd", 100), ("topic-causal", 100), ("best-effort", 50)]
)
def test_both_judges_agree(guarantee: Guarantee, seeds: int) -> None:
    statuses: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    for seed in range(seeds):
        trace = went_wrong(seed, guarantee)
        verdict = check(trace)
        status, expected = NaiveJudge(trace).judge()
        assert names(verdict) == expected, f"seed {seed}"
        assert verdict.status == status, f"seed {seed}: {verdict.reason}"
        statuses[status] += 1
        kinds.update(anomaly.kind for anomaly in verdict.anomalies)
    assert statuses["invalid"] > seeds / 4
    assert statuses["valid"] + statuses["unknown"] > 0
    if guarantee == "gcd":
        assert min(kinds.values()) >= 20, kinds
        assert len(kinds) == 9, kinds


def test_chains_are_direct_and_as_short_as_can_be() -> None:
    chains = 0
    for seed in range(300):
        trace = went_wrong(seed, "gcd")
        direct = _direct_links(trace)
        history = {(row.subscription_id, row.event_id) for row in trace.history if row.kind == "deliver"}
        for anomaly in check(trace).anomalies:
            if anomaly.kind not in ("causal-inversion", "missing-effect"):
                continue
            chain = anomaly.witness
            assert all(link in direct for link in pairwise(chain))
            first, last = chain[0], chain[-1]
            delivered, judged = (last, first) if anomaly.kind == "causal-inversion" else (first, last)
            assert judged == anomaly.event
            assert (anomaly.subscription, delivered) in history
            assert len(chain) == _distance(direct, first, last)
            chains += 1
    assert chains > 100


def _direct_links(trace: Trace) -> set[tuple[str, str]]:
    known: dict[str, list[str]] = {}
    links = set()
    for row in sorted(trace.history, key=lambda row: row.step):
        if row.kind == "publish":
            links |= {(before, row.event_id) for before in known.get(row.client, [])}
        known.setdefault(row.client, []).append(row.event_id)
    return links


def _distance(links: set[tuple[str, str]], first: str, last: str) -> int:
    reached, length = {first}, 1
    while last not in reached:
        reached |= {after for before, after in links if before in reached}
        length += 1
    return length
