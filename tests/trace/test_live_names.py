"""The deliveries to several clients of one durable subscription on a live network are checked as one stream, from their
parts."""

from pathlib import Path

from gapless.checkers import check
from gapless.events import Event
from gapless.trace import PartRecorder, merge_parts
from gapless.trace.rows import RunRow

START_US = 1_800_000_000_000_000
RUN = RunRow("net", "gapless", "gcd", "net", 0, 3, 1, False, "{}")
EVENTS = [Event("p", seq, {"x": seq}, b"", START_US + 1_000_000 * seq) for seq in range(1, 7)]


def speak(folder: Path) -> None:
    speaker = PartRecorder(folder, RUN, "p")
    for event in EVENTS:
        speaker.publish(event, event.stamp - 10)
    speaker.confirm(len(EVENTS))
    speaker.close()


def begin(folder: Path, client: str, at: int) -> PartRecorder:
    made = PartRecorder(folder, RUN, client)
    made.subscribe(f"{client}/s", "x > 0", at, ready="whole")
    return made


def listen(folder: Path, client: str, generation: int, after: int, seqs: list[int], kept: int | None) -> None:
    """Record a client that attaches after some event, receives events, and acknowledges some. Without `kept`, the
    client is killed."""
    at = START_US + 10_000_000 * generation
    made = begin(folder, client, at)
    made.open_name(f"{client}/s", "n", generation, START_US + 1_000_000 * after + 500_000, {}, at)
    made.activate(f"{client}/s", at)
    for seq in seqs:
        made.deliver(EVENTS[seq - 1], f"{client}/s", at + 1)
    if kept is None:
        made.acknowledged(f"{client}/s", len(seqs), at + 2, is_stored=False)
        return
    made.acknowledged(f"{client}/s", kept, at + 2, is_stored=False)
    made.acknowledged(f"{client}/s", kept, at + 3, is_stored=True)
    made.end(f"{client}/s", {}, at + 4)
    made.close()


def judged(folder: Path) -> list[tuple[str, str | None]]:
    trace = merge_parts(folder, quiesced=True)
    return [(anomaly.kind, anomaly.event) for anomaly in check(trace).anomalies if anomaly.client == "name:n"]


def test_one_continues_where_the_other_stopped(tmp_path: Path) -> None:
    speak(tmp_path)
    listen(tmp_path, "ann", 1, 0, [1, 2, 3, 4], 3)
    listen(tmp_path, "bob", 2, 3, [4, 5, 6], 3)
    trace = merge_parts(tmp_path, quiesced=True)
    assert check(trace).status == "valid"
    whole = [row.event_id for row in trace.history if row.client == "name:n"]
    assert whole == [f"p:{seq}" for seq in range(1, 7)]


def test_events_between_them_are_missing(tmp_path: Path) -> None:
    speak(tmp_path)
    listen(tmp_path, "ann", 1, 0, [1, 2, 3, 4], 3)
    listen(tmp_path, "bob", 2, 4, [5, 6], 2)
    assert judged(tmp_path) == [("gap", "p:4")]


def test_a_redelivery_of_an_acknowledged_event_is_a_duplicate(tmp_path: Path) -> None:
    speak(tmp_path)
    listen(tmp_path, "ann", 1, 0, [1, 2, 3], 3)
    listen(tmp_path, "bob", 2, 2, [3, 4, 5, 6], 4)
    assert judged(tmp_path) == [("duplicate", "p:3")]


def test_a_killed_client_may_have_sent_its_pending_acknowledgements(tmp_path: Path) -> None:
    speak(tmp_path)
    listen(tmp_path, "ann", 1, 0, [1, 2, 3], None)
    listen(tmp_path, "bob", 2, 3, [4, 5, 6], 3)
    assert judged(tmp_path) == []
    trace = merge_parts(tmp_path, quiesced=True)
    assert [row.client for row in trace.cut_short] == ["ann", "name:n"]


def pick(folder: Path, seqs: list[int], each: list[int], upto: int, *, is_killed: bool = False) -> PartRecorder:
    at = START_US + 10_000_000
    made = begin(folder, "ann", at)
    made.open_name("ann/s", "n", 1, START_US + 500_000, {}, at)
    made.activate("ann/s", at)
    for seq in seqs:
        made.deliver(EVENTS[seq - 1], "ann/s", at + 1)
    made.acknowledged("ann/s", upto, at + 2, is_stored=False)
    made.acknowledged_each("ann/s", each, at + 2, is_stored=False)
    if not is_killed:
        made.acknowledged("ann/s", upto, at + 3, is_stored=True)
        made.acknowledged_each("ann/s", each, at + 3, is_stored=True)
        made.end("ann/s", {}, at + 4)
        made.close()
    return made


def test_single_acknowledgements_leave_events_to_the_next_client(tmp_path: Path) -> None:
    for case, (each, bob, found) in enumerate([
        ([2, 4], [1, 3, 5, 6], []),
        ([2, 4], [1, 3, 4, 5, 6], [("duplicate", "p:4")]),
        ([2, 4], [1, 5, 6], [("gap", "p:3")]),
    ]):  # fmt: skip
        for is_killed in (False, True):
            folder = tmp_path / f"{case}{is_killed}"
            speak(folder)
            pick(folder, [1, 2, 3, 4], each, 0, is_killed=is_killed)
            listen(folder, "bob", 2, 0, bob, len(bob))
            # It is unknown whether the last acknowledgement of a killed client has arrived.
            assert judged(folder) == [each for each in found if not (is_killed and each[0] == "duplicate")]


def test_a_dead_letter_represents_its_event(tmp_path: Path) -> None:
    for has_letter in (False, True):
        folder = tmp_path / str(has_letter)
        speak(folder)
        at = START_US + 10_000_000
        made = begin(folder, "ann", at)
        made.open_name("ann/s", "n", 1, START_US + 500_000, {}, at)
        made.activate("ann/s", at)
        for number, seq in enumerate([1, 2, 3, 4, 5, 6], start=1):
            made.deliver(EVENTS[seq - 1], "ann/s", at + number)
        made.revoke("ann/s", [2])
        made.deliver(EVENTS[1], "ann/s", at + 10, redelivered=True)
        if has_letter:
            made.dead_letter("ann/s", "p", 2, 1)
        made.acknowledged_each("ann/s", [1, 3, 4, 5, 6], at + 20, is_stored=True)
        made.end("ann/s", {}, at + 30)
        made.close()
        listen(folder, "bob", 2, 6, [], 0)
        assert judged(folder) == ([] if has_letter else [("gap", "p:2")])


def member(folder: Path, client: str, seqs: list[int], kept: int, again: list[int] | None = None) -> None:
    at = START_US + 10_000_000
    made = begin(folder, client, at)
    made.join_group(f"{client}/s", "n", START_US + 500_000, at)
    made.activate(f"{client}/s", at)
    for seq in [*seqs, *(again or [])]:
        made.deliver(EVENTS[seq - 1], f"{client}/s", at + seq, redelivered=seq in (again or []))
    made.acknowledged(f"{client}/s", kept, at + 20, is_stored=True)
    made.close()


def test_a_group_is_judged_by_what_its_members_got(tmp_path: Path) -> None:
    for case, (ann, bob, again, found) in enumerate([
        ([1, 3, 5], [2, 4, 6], [], []),
        ([1, 3], [2, 4, 6], [], [("gap", "group:n")]),
        ([1, 3, 5], [2, 4, 6], [3], [("duplicate", "group:n")]),
        ([3, 1, 5], [2, 4, 6], [], [("fifo-inversion", "ann/s")]),
    ]):  # fmt: skip
        folder = tmp_path / str(case)
        speak(folder)
        member(folder, "ann", ann, len(ann))
        member(folder, "bob", bob, len(bob) + len(again), again)
        anomalies = check(merge_parts(folder, quiesced=True)).anomalies
        assert [(anomaly.kind, anomaly.subscription) for anomaly in anomalies] == found, case
