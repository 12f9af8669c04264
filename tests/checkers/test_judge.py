"""Verdicts: valid, unknown, and several runs at once; and small runs written by hand."""

import random

import msgspec
import pytest

from gapless.checkers import ANOMALY_KINDS, JUDGED, Verdict, check, check_all
from gapless.errors import TraceError
from gapless.events import Event
from gapless.protocol import Guarantee
from gapless.trace import Recorder, Trace

from .model import Model, record

GUARANTEES: tuple[Guarantee, ...] = ("gcd", "gfd", "topic-causal", "best-effort")


def recorder(guarantee: Guarantee = "gcd", run: str = "r") -> Recorder:
    return Recorder(run=run, protocol="none", guarantee=guarantee, scenario="by hand", seed=0, brokers=1, f=0)


def event(name: str, topic: str = "t") -> Event:
    publisher, _, seq = name.partition(":")
    return Event(publisher, int(seq), {"by": publisher, "topic": topic})


def play(
    script: str, *, guarantee: Guarantee = "gcd", quiesced: bool = True, topics: dict[str, str] | None = None
) -> Verdict:
    """Check a run that is written as a script with one call per line, and return the verdict.

    `ann ! ann:1` publishes; `bob < ann:1` delivers to bob's subscription `bob`, which matches all events but his own;
    `bob ? ann 1` subscribes if necessary and fixes a cut; `bob ok` activates; `bob . ann 3` ends the subscription with
    an ending cut.
    """
    recording = recorder(guarantee)
    asked = set()
    for now, line in enumerate(script.strip().splitlines()):
        client, act, *rest = line.split()
        if act == "?" and client not in asked:
            recording.subscribe(client, client, f"by <> '{client}'", now)
            asked.add(client)
        match act, rest:
            case "!", [name]:
                recording.publish(client, event(name, (topics or {}).get(name, "t")), now)
            case "<", [name]:
                recording.deliver(client, event(name, (topics or {}).get(name, "t")), client, now)
            case "?", [publisher, seq]:
                recording.fix_cut(client, publisher, int(seq))
            case "?", []:
                pass
            case "ok", []:
                recording.activate(client, now)
            case ".", ends:
                recording.end(client, {p: int(seq) for p, seq in zip(ends[::2], ends[1::2], strict=True)}, now)
            case _:
                raise AssertionError(line)
    return check(recording.finish(quiesced=quiesced))


def kinds(verdict: Verdict) -> list[tuple[str, str | None]]:
    return [(anomaly.kind, anomaly.event) for anomaly in verdict.anomalies]


# ---- valid runs -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("guarantee", GUARANTEES)
@pytest.mark.parametrize("quiesced", [True, False])
def test_honest_runs_have_no_anomaly(guarantee: Guarantee, quiesced: bool) -> None:
    for seed in range(80):
        verdict = check(record(Model(seed, guarantee=guarantee).run(quiesced=quiesced)))
        assert not verdict.anomalies, f"seed {seed}: {verdict.reason}"
        if quiesced and verdict.deliveries:
            assert verdict.status == "valid", f"seed {seed}: {verdict.reason}"


def test_the_order_of_rows_does_not_matter() -> None:
    for seed in range(20):
        trace = record(Model(seed).run())
        shuffled = Trace(*(list(getattr(trace, table)) for table in trace.__struct_fields__))
        for table in ("events", "history", "pasts", "cuts"):
            random.Random(seed).shuffle(getattr(shuffled, table))
        assert check(shuffled) == check(trace)


def test_several_runs_are_judged_one_by_one() -> None:
    traces = [record(Model(seed).run(), f"run-{seed}") for seed in range(3)]
    together = Trace(*([row for t in traces for row in getattr(t, table)] for table in Trace.__struct_fields__))
    assert check_all(together) == [check(trace) for trace in traces]
    with pytest.raises(TraceError, match="3 runs"):
        check(together)


def test_two_runs_of_one_name_are_refused() -> None:
    one, other = record(Model(1).run(), "same"), record(Model(2).run(), "same")
    rows = {table: getattr(one, table) + getattr(other, table) for table in Trace.__struct_fields__}
    with pytest.raises(TraceError, match="two runs have the name 'same'"):
        check_all(Trace(**rows))


def test_counts() -> None:
    verdict = play("bob ? ann 1\nbob ok\nann ! ann:1\nann ! ann:2\nbob < ann:2\nbob < ann:2")
    assert (verdict.events, verdict.subscriptions, verdict.deliveries) == (2, 1, 2)
    assert verdict.counts == {"duplicate": 1, "gap": 1}
    assert verdict.reason.endswith("(and 1 more)")


def test_anomalies_that_each_guarantee_forbids() -> None:
    assert JUDGED["gcd"] == set(ANOMALY_KINDS)
    assert JUDGED["gcd"] - JUDGED["gfd"] == {"causal-inversion", "late-start", "missing-effect"}
    assert JUDGED["gcd"] - JUDGED["topic-causal"] == {"late-start", "missing-effect"}
    assert JUDGED["best-effort"] == {"spurious", "duplicate", "false-loss", "false-past"}


# ---- unknown verdicts -------------------------------------------------------------------------------------


@pytest.mark.parametrize("guarantee", GUARANTEES)
@pytest.mark.parametrize("quiesced", [True, False])
def test_a_run_without_deliveries_is_unknown(guarantee: Guarantee, quiesced: bool) -> None:
    assert play("bob ?\nbob ok", guarantee=guarantee, quiesced=quiesced).status == "unknown"


def test_a_subscription_without_deliveries_leaves_the_run_unknown() -> None:
    script = "bob ? ann 1\nbob ok\neve ? ann 1\neve ok\nann ! ann:1\nbob < ann:1"
    assert play(script, quiesced=False).status == "unknown"
    assert play(script, quiesced=False, guarantee="best-effort").status == "valid"
    assert play(script, quiesced=True).status == "invalid"
    assert play(script + "\neve < ann:1", quiesced=False).status == "valid"


def test_silence_without_a_cut_is_no_proof_either() -> None:
    script = "bob ? ann 1\nbob ok\neve ?\neve ok\nann ! ann:1\nbob < ann:1"
    verdict = play(script)
    assert (verdict.status, "eve" in verdict.reason) == ("unknown", True)
    assert play(script + "\neve .").status == "valid"


def test_a_subscription_that_never_became_active_has_no_due_events_before_the_run_is_quiet() -> None:
    script = "bob ? ann 1\nbob ok\neve ?\nann ! ann:1\nbob < ann:1"
    assert play(script, quiesced=False).status == "valid"
    assert kinds(play(script)) == [("unobserved", None)]


# ---- runs written by hand ---------------------------------------------------------------------------------

CONVERSATION = """
bob ? ann 1
bob ok
eve ? ann 1
eve ? bob 1
eve ok
ann ! ann:1
bob < ann:1
bob ! bob:1
"""


def test_the_effect_first() -> None:
    verdict = play(CONVERSATION + "eve < bob:1\neve < ann:1")
    assert kinds(verdict) == [("causal-inversion", "ann:1")]
    assert verdict.anomalies[0].witness == ("ann:1", "bob:1")
    assert verdict.anomalies[0].message == "eve was delivered bob:1 before its cause ann:1 for eve"


def test_the_effect_alone() -> None:
    for quiesced in (True, False):
        verdict = play(CONVERSATION + "eve < bob:1", quiesced=quiesced)
        assert kinds(verdict) == [("causal-inversion", "ann:1")]
        assert verdict.anomalies[0].message == "eve was delivered bob:1 without its cause ann:1 for eve"
        assert kinds(play(CONVERSATION + "eve < bob:1", quiesced=quiesced, guarantee="gfd")) == (
            [("unobserved", "ann:1")] if quiesced else []
        )


def test_an_ending_cut_that_parts_an_effect_from_its_cause() -> None:
    script = CONVERSATION + "eve < bob:1\neve . ann 0 bob 1"
    assert kinds(play(script)) == [("causal-inversion", "ann:1")]
    assert play(script, guarantee="gfd").status == "valid"


def test_a_cause_before_the_starting_cut_is_not_due() -> None:
    script = CONVERSATION.replace("eve ? ann 1", "eve ? ann 2") + "eve < bob:1"
    assert play(script).status == "valid"


def test_an_effect_before_the_starting_cut_is_due() -> None:
    script = CONVERSATION.replace("eve ? bob 1", "eve ? bob 2") + "eve < ann:1"
    verdict = play(script)
    assert kinds(verdict) == [("missing-effect", "bob:1")]
    assert verdict.anomalies[0].witness == ("ann:1", "bob:1")
    assert kinds(play(script, quiesced=False)) == [("missing-effect", "bob:1")]


def test_an_effect_of_an_unknown_publisher_is_due_once_the_run_is_quiet() -> None:
    script = CONVERSATION.replace("eve ? bob 1\n", "") + "eve < ann:1"
    assert kinds(play(script)) == [("missing-effect", "bob:1")]
    assert play(script, quiesced=False).status == "valid"
    assert play(script + "\neve . ann 1").status == "valid"


def test_a_late_event_of_the_publisher_makes_the_effect_due_though_the_subscription_ended() -> None:
    script = CONVERSATION.replace("eve ? bob 1", "eve ? bob 2") + "eve < ann:1\nbob ! bob:2\neve < bob:2\neve . ann 1"
    assert kinds(play(script)) == [("missing-effect", "bob:1")]


RELAY = """
bob ? ann 1
bob ok
cat ? bob 1
cat ok
eve ? ann 1
eve ? cat 1
eve ok
ann ! ann:1
bob < ann:1
bob ! bob:1
cat < bob:1
cat ! cat:1
eve < cat:1
eve < ann:1
"""


def test_a_chain_through_several_clients_is_shown_in_full() -> None:
    verdict = play(RELAY, quiesced=False)
    assert kinds(verdict) == [("causal-inversion", "ann:1")]
    assert verdict.anomalies[0].witness == ("ann:1", "bob:1", "cat:1")


def test_a_topic_knows_no_chains_that_leave_it() -> None:
    assert kinds(play(RELAY, guarantee="topic-causal", quiesced=False)) == [("causal-inversion", "ann:1")]
    other = {"bob:1": "another"}
    assert play(RELAY, guarantee="topic-causal", quiesced=False, topics=other).status == "valid"
    assert kinds(play(RELAY, guarantee="gcd", quiesced=False, topics=other)) == [("causal-inversion", "ann:1")]


def test_an_inversion_is_named_once() -> None:
    script = "bob ? ann 1\nbob ok\nann ! ann:1\nann ! ann:2\nann ! ann:3\nbob < ann:3\nbob < ann:2\nbob < ann:1"
    assert kinds(play(script)) == [("fifo-inversion", "ann:2"), ("fifo-inversion", "ann:1")]


def test_a_duplicate_after_the_end_is_a_duplicate_and_a_late_first_one_is_spurious() -> None:
    script = "bob ? ann 1\nbob ok\nann ! ann:1\nann ! ann:2\nbob < ann:1\nbob . ann 2\nbob < ann:1\nbob < ann:2"
    assert kinds(play(script)) == [("duplicate", "ann:1"), ("spurious", "ann:2")]


def test_a_superfluous_row_of_the_certificate_is_valid() -> None:
    recording = recorder()
    recording.subscribe("bob", "s", "topic = 't'", 0)
    recording.publish("ann", event("ann:1"), 1)
    recording.deliver("bob", event("ann:1"), "s", 2)
    recording.publish("bob", event("bob:1"), 3)
    recording.publish("bob", event("bob:2"), 4)
    trace = recording.finish(quiesced=False)
    again = msgspec.structs.replace(trace.pasts[0], event_id="bob:2")
    assert not check(msgspec.structs.replace(trace, pasts=[*trace.pasts, again])).anomalies
