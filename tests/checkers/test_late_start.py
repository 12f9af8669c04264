"""`late-start`: events published after `subscribe()` has returned that the starting cut omits."""

import random
from pathlib import Path

import msgspec
import pytest

from gapless.checkers import Verdict, check
from gapless.events import Event
from gapless.protocol import Guarantee, Ready
from gapless.simulator import parse_scenario, run_scenario
from gapless.trace import Recorder, Trace

from .model import Call, Model, Run, record
from .test_planted import cut_of, deliveries, lives, named, of_subscription

SEEDS = range(60)


def claiming(trace: Trace, ready: Ready) -> Trace:
    rows = [msgspec.structs.replace(row, ready=ready) for row in trace.subscriptions]
    return msgspec.structs.replace(trace, subscriptions=rows)


def with_skew(trace: Trace, clock_skew_ms: float) -> Trace:
    return msgspec.structs.replace(
        trace, runs=[msgspec.structs.replace(trace.runs[0], clock_skew_ms=clock_skew_ms)]
    )  # fmt: skip


@pytest.mark.parametrize("protocol", ["locaps", "gapless"])
def test_near_and_far(protocol: str) -> None:
    """The near publisher's cut arrives at once, and the far one's arrives later. The far publisher publishes in
    between."""
    text = Path(__file__).with_name("near_and_far.toml").read_text()
    result = run_scenario(parse_scenario(text.replace('name = "gapless"', f'name = "{protocol}"')))
    assert result.trace is not None
    assert check(result.trace).status == "valid", "what the protocol claims itself, it keeps"
    if protocol == "locaps":
        verdict = check(claiming(result.trace, "whole"))
        assert named(verdict) == [("late-start", "far:1")]
        assert "it starts at far:2 only" in verdict.reason


# ---- planted anomalies -------------------------------------------------------------------------------------


def published_at(run: Run) -> dict[str, int]:
    return {call.happening.id: place for place, call in enumerate(run.calls) if call.kind == "publish"}


def active_at(run: Run) -> dict[str, int]:
    return {call.subscription: place for place, call in enumerate(run.calls) if call.kind == "activate"}


def start_behind(run: Run, draw: random.Random, *, with_cut: bool) -> tuple[Run, str] | None:
    """Start a subscription after the first event that it received from a publisher and that was published while it was
    active.

    With `with_cut`, the starting cut says so; without it, no other event of that publisher was delivered.
    """
    published, active = published_at(run), active_at(run)

    def is_promised(call: Call) -> bool:
        event = call.happening
        numbers = [o.happening.seq for o in of_subscription(run, call.subscription)
                   if o.happening.publisher == event.publisher]  # fmt: skip
        if event.seq != min(numbers) or published[event.id] <= active[call.subscription]:
            return False
        if with_cut:
            return cut_of(run, call.subscription, event.publisher) is not None
        alone = len(numbers) == 1 and cut_of(run, call.subscription, event.publisher) is None
        return alone and lives(run, call.subscription)

    places = [place for place in deliveries(run) if is_promised(run.calls[place])]
    if not places:
        return None
    place = draw.choice(places)
    call = run.calls[place]
    calls = run.calls[:place] + run.calls[place + 1 :]
    if with_cut:
        cut = Call("cut", call.client, call.subscription, publisher=call.happening.publisher)
        calls.insert(place, cut._replace(from_seq=call.happening.seq + 1))
    return run._replace(calls=calls), call.happening.id


@pytest.mark.parametrize(("with_cut", "floor"), [(True, 15), (False, 5)])
def test_an_event_published_when_it_was_active_and_left_out_is_a_late_start(with_cut: bool, floor: int) -> None:
    planted = 0
    for seed in SEEDS:
        outcome = start_behind(Model(seed, ready=("whole",)).run(), random.Random(seed), with_cut=with_cut)
        if outcome is None:
            continue
        run, event = outcome
        verdict = check(record(run))
        assert named(verdict) == [("late-start", event)], f"seed {seed}: {verdict.reason}"
        assert verdict.anomalies[0].witness == (event,)
        assert ("starts at" if with_cut else "no event of") in verdict.anomalies[0].message
        for guarantee in ("gfd", "topic-causal"):
            claims: Guarantee = guarantee
            assert "late-start" not in check(record(run._replace(guarantee=claims))).counts
        assert "late-start" not in check(claiming(record(run), "first")).counts
        planted += 1
    assert planted >= floor


def test_an_honest_run_that_claims_the_whole_cut_is_valid() -> None:
    for seed in SEEDS:
        for quiesced in (True, False):
            verdict = check(record(Model(seed, ready=("whole",)).run(quiesced=quiesced)))
            assert not verdict.anomalies, f"seed {seed}: {verdict.reason}"


# ---- runs written by hand ----------------------------------------------------------------------------------


class _Script:
    def __init__(self) -> None:
        self.recorder = Recorder(run="r", protocol="p", guarantee="gcd", scenario="s", seed=0, brokers=1, f=0)
        self.recorder.subscribe("bob", "s", "by = 'ann'", 0, ready="whole")

    def publish(self, seq: int, at_ms: int) -> None:
        self.recorder.publish("ann", Event("ann", seq, {"by": "ann"}), at_ms * 1000)

    def deliver(self, seq: int, at_ms: int) -> None:
        self.recorder.deliver("bob", Event("ann", seq, {"by": "ann"}), "s", at_ms * 1000)

    def judge(self, *, quiesced: bool = True, clock_skew_ms: float = 0.0) -> Verdict:
        return check(with_skew(self.recorder.finish(quiesced=quiesced), clock_skew_ms))


def test_the_publication_must_be_later_by_more_than_the_clocks_differ() -> None:
    script = _Script()
    script.recorder.fix_cut("s", "ann", 2)
    script.recorder.activate("s", 10_000)
    script.publish(1, 15)
    script.publish(2, 16)
    script.deliver(2, 17)
    assert named(script.judge()) == [("late-start", "ann:1")]
    assert named(script.judge(clock_skew_ms=4.9)) == [("late-start", "ann:1")]
    assert script.judge(clock_skew_ms=5.0).status == "valid"


def test_events_published_at_the_same_moment_are_not_promised() -> None:
    script = _Script()
    script.recorder.fix_cut("s", "ann", 2)
    script.recorder.activate("s", 10_000)
    script.publish(1, 10)
    script.publish(2, 11)
    script.deliver(2, 12)
    assert script.judge().status == "valid"


def test_without_a_cut_it_takes_a_quiet_end_or_something_later_that_came() -> None:
    script = _Script()
    script.recorder.activate("s", 1_000)
    script.publish(1, 2)
    assert script.judge(quiesced=False).status == "unknown"
    assert named(script.judge()) == [("late-start", "ann:1")]
    script.publish(2, 3)
    script.deliver(2, 4)
    verdict = script.judge(quiesced=False)
    assert named(verdict) == [("late-start", "ann:1")]
    assert verdict.anomalies[0].witness == ("ann:2", "ann:1")


def test_an_ended_subscription_owes_what_its_ending_cut_covers() -> None:
    for last, expected in ((1, [("late-start", "ann:1")]), (0, [])):
        script = _Script()
        script.recorder.fix_cut("s", "ann", 2)
        script.recorder.activate("s", 1_000)
        script.publish(1, 2)
        script.recorder.end("s", {"ann": last}, 9_000)
        script.publish(2, 10)
        assert named(script.judge()) == expected


def test_events_published_after_the_end_are_not_due() -> None:
    script = _Script()
    script.recorder.fix_cut("s", "ann", 2)
    script.recorder.activate("s", 1_000)
    script.recorder.end("s", {"ann": 1}, 2_000)
    script.publish(1, 3)
    assert named(script.judge()) == []


def test_a_subscription_that_is_reset_owes_what_it_promised_when_it_first_returned() -> None:
    before, after = _Script(), _Script()
    before.recorder.fix_cut("s", "ann", 1)
    before.publish(1, 1)
    before.recorder.void_cuts("s")
    before.recorder.fix_cut("s", "ann", 2)
    before.recorder.activate("s", 2_000)
    after.recorder.fix_cut("s", "ann", 1)
    after.recorder.activate("s", 500)
    after.publish(1, 1)
    after.recorder.void_cuts("s")
    after.recorder.fix_cut("s", "ann", 2)
    after.recorder.activate("s", 2_000)
    for script in (before, after):
        script.publish(2, 3)
        script.deliver(2, 4)
    assert before.judge().status == "valid"
    assert named(after.judge()) == [("late-start", "ann:1")]


def test_one_thing_is_named_once() -> None:
    """An effect of a delivered event that was published while the subscription was active counts only as a late
    start.
    """
    recorder = Recorder(run="r", protocol="p", guarantee="gcd", scenario="s", seed=0, brokers=1, f=0)
    for name in ("bob", "eve"):
        recorder.subscribe(name, name, f"by <> '{name}'", 0, ready="whole")
        recorder.fix_cut(name, "ann", 1)
        recorder.activate(name, 1)
    cause, effect = Event("ann", 1, {"by": "ann"}), Event("bob", 1, {"by": "bob"})
    recorder.publish("ann", cause, 2)
    for name in ("bob", "eve"):
        recorder.deliver(name, cause, name, 3)
    recorder.publish("bob", effect, 4)
    recorder.fix_cut("eve", "bob", 2)
    trace = recorder.finish(quiesced=True)
    assert named(check(trace)) == [("late-start", "bob:1")]
    assert named(check(claiming(trace, "first"))) == [("missing-effect", "bob:1")]
