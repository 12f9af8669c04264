"""A trace in parts: what clients of a live network write, and what it becomes when it is put together."""

from pathlib import Path

import pytest

from gapless.checkers import check
from gapless.errors import TraceError
from gapless.events import Event
from gapless.trace import PartRecorder, Recorder, RunRow, Trace, merge_parts, parts, read_trace, write_trace

RUN = RunRow("net", "gapless", "gcd", "net", 0, 3, 1, False, "{}")


def record(directory: Path) -> None:
    """Ann asks, bob answers, eve sees both; each in a process of its own, with a clock of its own."""
    ann = PartRecorder(directory, RUN, "ann")
    bob = PartRecorder(directory, RUN, "bob")
    eve = PartRecorder(directory, RUN, "eve")
    question = Event("ann", 1, {"kind": "question"})
    answer = Event("bob", 1, {"kind": "answer"})
    bob.subscribe("bob/s1", "kind = 'question'", 9_000)
    bob.fix_cut("bob/s1", "ann", 1)
    bob.activate("bob/s1", 9_500)
    eve.subscribe("eve/s1", "TRUE", 2_000)
    for publisher in ("ann", "bob"):
        eve.fix_cut("eve/s1", publisher, 7)
    eve.void_cuts("eve/s1")
    for publisher in ("ann", "bob"):
        eve.fix_cut("eve/s1", publisher, 1)
    eve.activate("eve/s1", 3_000)
    eve.activate("eve/s1", 4_000)
    eve.deliver(question, "eve/s1", 5_000)
    eve.deliver(answer, "eve/s1", 6_000)
    ann.publish(question, 1_000_000)
    bob.deliver(question, "bob/s1", 10_000)
    bob.publish(answer, 11_000)
    eve.end("eve/s1", {"ann": 1, "bob": 1, "nobody": 3}, 7_000)
    for recorder in (ann, bob, eve):
        recorder.close()


def test_parts_become_one_run_with_its_certificate(tmp_path: Path) -> None:
    record(tmp_path)
    trace = merge_parts(tmp_path, quiesced=True)
    assert [(row.run, row.quiesced) for row in trace.runs] == [("net", True)]
    assert {row.event_id for row in trace.events} == {"ann:1", "bob:1"}
    assert [(row.event_id, row.publisher, row.seq) for row in trace.pasts] == [("bob:1", "ann", 1)]
    assert check(trace).status == "valid"
    [eve] = [row for row in trace.subscriptions if row.client == "eve"]
    assert (eve.requested_ms, eve.active_ms, eve.ended_ms) == (0.0, 1.0, 5.0)
    ends = {(row.subscription_id, row.publisher): (row.from_seq, row.to_seq) for row in trace.cuts}
    assert ends == {("bob/s1", "ann"): (1, None), ("eve/s1", "ann"): (1, 1), ("eve/s1", "bob"): (1, 1)}


def test_what_is_put_together_is_a_trace_like_any_other(tmp_path: Path) -> None:
    record(tmp_path / "live")
    trace = merge_parts(tmp_path / "live", quiesced=False)
    write_trace(trace, tmp_path / "whole")
    assert read_trace(tmp_path / "whole") == trace
    with pytest.raises(TraceError, match="is in parts; put them together: gapless trace merge"):
        read_trace(tmp_path / "live")


def test_the_certificate_is_that_of_a_recorder_who_sees_everything(tmp_path: Path) -> None:
    whole = Recorder(run="net", protocol="gapless", guarantee="gcd", scenario="net", seed=0, brokers=3, f=1)
    own = {name: PartRecorder(tmp_path, RUN, name) for name in ("a", "b", "c")}
    seqs = dict.fromkeys(own, 0)
    for name in own:
        whole.subscribe(name, f"{name}/s", "TRUE", 0)
        own[name].subscribe(f"{name}/s", "TRUE", 0)
    for turn in range(60):
        name = "abc"[turn * turn % 3]
        seqs[name] += 1
        event = Event(name, seqs[name], {"turn": turn})
        whole.publish(name, event, turn)
        own[name].publish(event, turn)
        for other in own:
            if (turn + ord(other)) % 4:
                whole.deliver(other, event, f"{other}/s", turn)
                own[other].deliver(event, f"{other}/s", turn)
    for recorder in own.values():
        recorder.close()
    expected = whole.finish(quiesced=False)
    merged = merge_parts(tmp_path, quiesced=False)

    def pasts(trace: Trace) -> list[tuple[str, str, int]]:
        return sorted((row.event_id, row.publisher, row.seq) for row in trace.pasts)

    assert pasts(merged) == pasts(expected)
    assert len(merged.history) == len(expected.history)


def test_a_long_run_is_written_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "ROWS_PER_FILE", 10)
    ann = PartRecorder(tmp_path, RUN, "ann")
    for seq in range(1, 26):
        ann.publish(Event("ann", seq, {}), seq)
    assert len(list((tmp_path / "parts" / "ann" / "history").glob("*.parquet"))) == 2
    half = merge_parts(tmp_path, quiesced=False)
    assert len(half.events) == 20, "what was written before a client died is whole"
    ann.close()
    whole = merge_parts(tmp_path, quiesced=False)
    assert [row.step for row in whole.history] == list(range(25))


def test_mistakes_are_named(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="holds no parts of a trace"):
        merge_parts(tmp_path, quiesced=False)
    PartRecorder(tmp_path, RUN, "ann").close()
    other = RunRow("other", "gapless", "gcd", "other", 0, 3, 1, False, "{}")
    PartRecorder(tmp_path, other, "bob").close()
    with pytest.raises(TraceError, match="two networks: 'net' and 'other'"):
        merge_parts(tmp_path, quiesced=False)


def test_an_event_that_nobody_published_is_left_to_the_judge(tmp_path: Path) -> None:
    eve = PartRecorder(tmp_path, RUN, "eve")
    eve.subscribe("eve/s1", "TRUE", 0)
    eve.deliver(Event("ghost", 1, {}), "eve/s1", 1)
    eve.close()
    verdict = check(merge_parts(tmp_path, quiesced=False))
    assert [anomaly.kind for anomaly in verdict.anomalies] == ["spurious"]
