"""Clients of a live network write parts, and merging the parts gives a trace."""

from pathlib import Path

import msgspec
import pytest

from gapless.checkers import Verdict, check
from gapless.errors import TraceError
from gapless.events import Event
from gapless.trace import PartRecorder, Recorder, RunRow, Trace, merge_parts, part_log, read_trace, write_trace
from tests.conftest import Cli

RUN = RunRow("net", "gapless", "gcd", "net", 0, 3, 1, False, "{}")


def record(directory: Path) -> None:
    """Record a run in which ann asks, bob answers, and eve receives both, each in a separate process with its own
    clock."""
    ann = PartRecorder(directory, RUN, "ann")
    bob = PartRecorder(directory, RUN, "bob")
    eve = PartRecorder(directory, RUN, "eve")
    question = Event("ann", 1, {"kind": "question"})
    answer = Event("bob", 1, {"kind": "answer"})
    bob.subscribe("bob/s1", "kind = 'question'", 9_000, ready="whole")
    bob.subscribe("bob/s2", "kind = 'rejected'", 9_000)
    bob.refuse("bob/s2")
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
    assert {row.subscription_id: row.ready for row in trace.subscriptions} == {"bob/s1": "whole", "eve/s1": "first"}
    assert trace.cut_short == []
    assert check(trace).status == "valid"
    [eve] = [row for row in trace.subscriptions if row.client == "eve"]
    assert (eve.requested_ms, eve.active_ms, eve.ended_ms) == (0.0, 1.0, 5.0)
    ends = {(row.subscription_id, row.publisher): (row.from_seq, row.to_seq) for row in trace.cuts}
    assert ends == {("bob/s1", "ann"): (1, None), ("eve/s1", "ann"): (1, 1), ("eve/s1", "bob"): (1, 1)}


def test_a_merged_trace_is_a_regular_trace(tmp_path: Path) -> None:
    record(tmp_path / "live")
    trace = merge_parts(tmp_path / "live", quiesced=False)
    write_trace(trace, tmp_path / "whole")
    assert read_trace(tmp_path / "whole") == trace
    with pytest.raises(TraceError, match="is in parts; merge them: gapless trace merge"):
        read_trace(tmp_path / "live")


def test_the_certificate_is_that_of_a_recorder_with_full_view(tmp_path: Path) -> None:
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


def test_a_publication_counts_from_the_call_and_not_from_when_it_leaves(tmp_path: Path) -> None:
    ann = PartRecorder(tmp_path, RUN, "ann")
    ann.publish(Event("ann", 1, {"ratio": float("nan"), "whole": 3, "half": 0.5, "is": True}), 9_000, began_us=2_000)
    ann.close()
    trace = merge_parts(tmp_path, quiesced=True)
    assert trace.events[0].published_ms == 0.0
    assert trace.history[0].time_ms == 7.0
    assert trace.events[0].attributes == '{"half":0.5,"is":true,"ratio":NaN,"whole":3}'


# ---- incomplete parts --------------------------------------------------------------------------------------


def unfinished(directory: Path) -> dict[str, PartRecorder]:
    own = {name: PartRecorder(directory, RUN, name) for name in ("ann", "bob", "eve")}
    own["eve"].subscribe("eve/s1", "TRUE", 1_000, ready="whole")
    for publisher in ("ann", "bob"):
        own["eve"].fix_cut("eve/s1", publisher, 1)
    own["eve"].activate("eve/s1", 2_000)
    for seq in (1, 2, 3):
        for publisher in ("ann", "bob"):
            event = Event(publisher, seq, {})
            own[publisher].publish(event, 3_000 + seq)
            own["eve"].deliver(event, "eve/s1", 4_000 + seq)
    return own


def judged(directory: Path) -> tuple[Trace, Verdict]:
    trace = merge_parts(directory, quiesced=True)
    return trace, check(trace)


def test_a_client_that_did_not_close_is_cut_short_in_the_verdict(tmp_path: Path) -> None:
    own = unfinished(tmp_path)
    PartRecorder(tmp_path, RUN, "zoe")
    own["ann"].close()
    own["eve"].close()
    trace, verdict = judged(tmp_path)
    assert [(row.client, row.acts, row.last_ms, row.sent_seq) for row in trace.cut_short] == [
        ("bob", 3, 2.003, 3), ("zoe", 0, None, 0),
    ]  # fmt: skip
    assert verdict.status == "valid"
    assert verdict.reason == "6 deliveries are as promised; cut short: bob, zoe"
    assert verdict.cut_short == (
        "3 actions are known of bob, which is cut short: later actions are not checked",
        "no actions are known of zoe, which is cut short: later actions are not checked",
    )
    write_trace(trace, tmp_path / "whole")
    assert check(read_trace(tmp_path / "whole")) == verdict


def test_a_part_counts_up_to_every_byte_at_which_it_may_break_off(tmp_path: Path) -> None:
    own = unfinished(tmp_path)
    for recorder in own.values():
        recorder.close()
    whole = own["eve"].path.read_bytes()
    acts = set()
    for length in range(len(whole)):
        own["eve"].path.write_bytes(whole[:length])
        trace, verdict = judged(tmp_path)
        assert not verdict.anomalies, verdict.reason
        [row] = trace.cut_short
        assert row.client == "eve"
        assert row.acts == sum(act.client == "eve" for act in trace.history)
        acts.add(row.acts)
    assert acts == set(range(7))


def test_no_flipped_byte_makes_a_valid_record(tmp_path: Path) -> None:
    own = unfinished(tmp_path)
    for recorder in own.values():
        recorder.close()
    content = own["eve"].path.read_bytes()
    expected = [row for row in merge_parts(tmp_path, quiesced=True).history if row.client == "eve"]
    for place in range(len(content)):
        flipped = bytearray(content)
        flipped[place] ^= 0x15
        own["eve"].path.write_bytes(flipped)
        trace, _ = judged(tmp_path)
        history = [row for row in trace.history if row.client == "eve"]
        assert history == expected[: len(history)]
        assert [row.client for row in trace.cut_short] == ["eve"]


def test_a_subscription_that_is_cut_short_is_not_held_to_a_quiet_end(tmp_path: Path) -> None:
    own = unfinished(tmp_path)
    for seq in (4, 5):
        own["ann"].publish(Event("ann", seq, {}), 5_000)
    own["ann"].confirm(5)
    own["ann"].close()
    own["bob"].close()
    own["eve"].flush()
    assert judged(tmp_path)[1].status == "valid"
    own["eve"].deliver(Event("ann", 5, {}), "eve/s1", 6_000)
    own["eve"].flush()
    assert judged(tmp_path)[1].counts == {"gap": 1}, "what it claims up to there is judged"
    own["eve"].end("eve/s1", {"ann": 5, "bob": 3}, 7_000)
    own["eve"].close()
    assert judged(tmp_path)[1].counts == {"gap": 1}


def test_unsent_events_are_not_due_and_confirmed_ones_are(tmp_path: Path) -> None:
    own = unfinished(tmp_path)
    for seq in (4, 5):
        own["bob"].publish(Event("bob", seq, {}), 5_000)
    own["ann"].close()
    own["eve"].close()
    assert judged(tmp_path)[1].status == "valid"
    own["bob"].confirm(4)
    own["bob"].flush()
    trace, verdict = judged(tmp_path)
    assert trace.cut_short[0].sent_seq == 4
    assert [(anomaly.kind, anomaly.event) for anomaly in verdict.anomalies] == [("unobserved", "bob:4")]


def test_deliveries_known_only_from_a_lost_part_are_left_out_and_counted(tmp_path: Path) -> None:
    own = unfinished(tmp_path)
    own["ann"].close()
    own["eve"].publish(Event("eve", 1, {}), 6_000)
    own["eve"].deliver(Event("eve", 1, {}), "eve/s1", 6_000)
    own["eve"].close()
    content = own["bob"].path.read_bytes()
    own["bob"].path.write_bytes(content[:-10])
    trace, verdict = judged(tmp_path)
    assert [(row.client, row.acts, row.sent_seq, row.forgotten) for row in trace.cut_short] == [("bob", 2, 3, 1)]
    assert verdict.status == "valid"
    assert verdict.deliveries == 6
    assert verdict.cut_short[0].endswith("; 1 deliveries of its events are omitted")
    own["bob"].path.write_bytes(b"")
    trace, verdict = judged(tmp_path)
    assert [(row.client, row.acts, row.last_ms, row.forgotten) for row in trace.cut_short] == [("bob", 0, None, 3)]
    assert verdict.status == "valid"


def test_a_trace_that_contradicts_itself_about_what_was_sent_is_refused(tmp_path: Path) -> None:
    own = unfinished(tmp_path)
    own["ann"].close()
    own["eve"].close()
    trace = merge_parts(tmp_path, quiesced=True)
    row = trace.cut_short[0]
    lying = msgspec.structs.replace(trace, cut_short=[msgspec.structs.replace(row, sent_seq=2)])
    with pytest.raises(TraceError, match="bob:3 was delivered, though bob, which is cut short"):
        check(lying)
    with pytest.raises(TraceError, match="listed twice as cut short"):
        check(msgspec.structs.replace(trace, cut_short=[row, row]))


def test_waiting_messages_in_memory_are_bounded(tmp_path: Path) -> None:
    eve = PartRecorder(tmp_path, RUN, "eve")
    written = eve.path.stat().st_size
    for seq in range(1, 20_001):
        eve.deliver(Event("ann", seq, {}), "eve/s1", seq)
        if seq == 1:
            assert eve.path.stat().st_size == written, "nothing is written one by one"
    before = eve.path.stat().st_size
    eve.flush()
    assert 0 < eve.path.stat().st_size - before < part_log.BUFFER_MAX
    assert before - written > 5 * part_log.BUFFER_MAX


def test_a_full_disk_ends_only_the_part(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    ann = PartRecorder(tmp_path, RUN, "ann")
    ann.publish(Event("ann", 1, {}), 1)
    assert ann._log is not None
    full = open("/dev/full", "wb", buffering=0)  # noqa: SIM115 - the recorder closes it
    ann._log._file, before = full, ann._log._file
    ann.publish(Event("ann", 2, {}), 2)
    ann.publish(Event("ann", 3, {}), 3)
    ann.close()
    before.close()
    full.close()
    assert "ends here" in caplog.text
    assert [row.acts for row in merge_parts(tmp_path, quiesced=False).cut_short] == [1]


def test_mistakes_are_named(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="contains no parts of a trace"):
        merge_parts(tmp_path, quiesced=False)
    PartRecorder(tmp_path, RUN, "ann").close()
    with pytest.raises(TraceError, match="let every run write its trace to a directory of its own"):
        PartRecorder(tmp_path, RUN, "ann")
    other = RunRow("other", "gapless", "gcd", "other", 0, 3, 1, False, "{}")
    PartRecorder(tmp_path, other, "bob").close()
    with pytest.raises(TraceError, match="two networks: 'net' and 'other'"):
        merge_parts(tmp_path, quiesced=False)


def test_files_that_are_no_parts_are_named(tmp_path: Path) -> None:
    strange = PartRecorder(tmp_path, RUN, "ann")
    assert strange._log is not None
    strange._log.append(b"\x91\xa5Other")
    strange.close()
    with pytest.raises(TraceError, match=r"ann.part is not a part of a trace that this version of Gapless can read"):
        merge_parts(tmp_path, quiesced=False)
    strange.path.write_bytes(b"")
    with pytest.raises(TraceError, match=r"no part in .* names its run"):
        merge_parts(tmp_path, quiesced=False)
    strange.path.unlink()
    (tmp_path / "parts" / "ann" / "runs").mkdir(parents=True)
    with pytest.raises(TraceError, match="written by an earlier version of Gapless"):
        merge_parts(tmp_path, quiesced=False)


def test_clocks_of_several_machines_take_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for machine in ("here", "there"):
        monkeypatch.setattr("socket.gethostname", lambda machine=machine: machine)
        PartRecorder(tmp_path, RUN, f"client of {machine}").close()
    with pytest.raises(TraceError, match=r"2 machines \(here, there, …\); state by how many milliseconds"):
        merge_parts(tmp_path, quiesced=False)
    with pytest.raises(TraceError, match="from 0 on, and not by -1"):
        merge_parts(tmp_path, quiesced=False, clock_skew_ms=-1.0)
    assert merge_parts(tmp_path, quiesced=False, clock_skew_ms=2.5).runs[0].clock_skew_ms == 2.5


@pytest.mark.parametrize("name", ["a/b", "..", "ünï", "x" * 300, "with space"])
def test_any_name_has_a_file(tmp_path: Path, name: str) -> None:
    recorder = PartRecorder(tmp_path, RUN, name)
    assert recorder.path.parent == tmp_path / "parts"
    assert [row.client for row in merge_parts(tmp_path, quiesced=False).cut_short] == [name]


def test_an_event_never_published_is_left_to_the_checker(tmp_path: Path) -> None:
    PartRecorder(tmp_path, RUN, "ann").close()
    eve = PartRecorder(tmp_path, RUN, "eve")
    eve.subscribe("eve/s1", "TRUE", 0)
    eve.deliver(Event("ann", 1, {}), "eve/s1", 1)
    eve.close()
    verdict = check(merge_parts(tmp_path, quiesced=False))
    assert [anomaly.kind for anomaly in verdict.anomalies] == ["spurious"]


def test_publishers_without_a_part_are_listed_and_the_network_is_not_blamed(tmp_path: Path, cli: Cli) -> None:
    own = unfinished(tmp_path)
    for recorder in own.values():
        recorder.close()
    own["bob"].path.unlink()
    trace, verdict = judged(tmp_path)
    assert [(row.client, row.acts, row.last_ms, row.sent_seq, row.forgotten) for row in trace.cut_short] == [
        ("bob", 0, None, 3, 3)
    ]
    assert verdict.status == "valid"
    assert verdict.reason == "3 deliveries are as promised; cut short: bob"
    said = "bob published events, but wrote no part: 3 deliveries of its events are omitted"
    assert verdict.cut_short == (said,)
    merged = cli("trace", "merge", tmp_path, tmp_path / "whole", "--quiesced")
    assert said in " ".join(merged.out.split())
    shown = cli("check", tmp_path / "whole")
    assert (shown.code, said in " ".join(shown.out.split())) == (0, True)
    own["ann"].path.unlink()
    assert judged(tmp_path)[1].status == "unknown"
