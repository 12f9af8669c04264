"""`gapless audit --live`: a streaming query checks a network while its clients write."""

import io
import json
import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from rich.console import Console

from gapless.checkers import check
from gapless.cli import audit_live
from gapless.events import Event
from gapless.trace import PartRecorder, RunRow, merge_parts
from gapless_spark.live.parts_source import PartsReader, whole_frames
from gapless_spark.live.query import Batch, LiveAudit
from tests.checkers.live.parts import LiveNetwork, lines_of
from tests.conftest import Cli

PATIENCE_S = 300.0
RUN = RunRow("net", "gapless", "gcd", "net", 0, 3, 1, False, "{}")


class Clients:
    def __init__(self, directory: Path) -> None:
        self.parts = {name: PartRecorder(directory, RUN, name) for name in ("ann", "bob", "eve", "joe")}
        self.counts = {"ann": 0, "bob": 0}
        self.listen("bob", "b", "topic = 'question'", ann=1)
        self.listen("eve", "e", "TRUE", ann=1, bob=1)
        self.listen("joe", "j", "TRUE", ann=1, bob=2)

    def listen(self, client: str, name: str, text: str, **cuts: int) -> None:
        part = self.parts[client]
        part.subscribe(name, text, self.now())
        for publisher, first in cuts.items():
            part.fix_cut(name, publisher, first)
        part.activate(name, self.now())

    def publish(self, client: str, topic: str) -> Event:
        self.counts[client] += 1
        event = Event(client, self.counts[client], {"topic": topic})
        self.parts[client].publish(event, self.now())
        self.parts[client].confirm(event.seq)
        return event

    def ask(self) -> tuple[Event, Event]:
        question = self.publish("ann", "question")
        self.parts["bob"].deliver(question, "b", self.now())
        return question, self.publish("bob", "answer")

    def deliver(self, name: str, *events: Event) -> None:
        client = {"e": "eve", "j": "joe"}[name]
        for event in events:
            self.parts[client].deliver(event, name, self.now())

    def flush(self) -> None:
        for part in self.parts.values():
            part.flush()

    def close(self) -> None:
        for part in self.parts.values():
            part.close()

    def now(self) -> int:
        return time.time_ns() // 1000


def found_within_two(audit: LiveAudit) -> set[tuple[str, str | None, str | None]]:
    """Return the new anomalies of the first batch that reads the latest records, and of the one after it."""
    found: set[tuple[str, str | None, str | None]] = set()
    counted = 0
    while counted < 2:
        batch = audit.next(PATIENCE_S)
        assert batch is not None
        counted += 1 if batch.run.read or counted else 0
        found |= {(each.kind, each.subscription, each.event) for each in batch.anomalies}
    return found


@pytest.mark.timeout(900)
def test_planted_anomalies_are_found_within_two_batches_and_by_the_full_audit(
    spark: SparkSession, tmp_path: Path
) -> None:
    clients = Clients(tmp_path)
    with LiveAudit(spark, tmp_path, every_s=0.5) as audit:
        for _ in range(3):
            pair = clients.ask()
            clients.deliver("e", *pair)
        clients.flush()
        assert found_within_two(audit) == set()
        assert audit.reports["j"].lag == 5  # joe starts with the second answer
        # A gap: ann's third event arrives, the second does not. Then the third arrives again.
        some = [clients.publish("ann", "other") for _ in range(3)]
        clients.deliver("e", some[0], some[2], some[2])
        # An inversion: the answer is delivered before its question.
        question, answer = clients.ask()
        clients.deliver("e", answer, question)
        # A missing effect: joe gets the first question, but starts after its answer.
        clients.deliver("j", Event("ann", 1, {"topic": "question"}))
        clients.flush()
        assert found_within_two(audit) == {
            ("gap", "e", some[1].id),
            ("duplicate", "e", some[2].id),
            ("causal-inversion", "e", question.id),
            ("missing-effect", "j", "bob:1"),
        }
        clients.close()
        while audit.run is None or audit.run.open_clients:
            assert audit.next(PATIENCE_S) is not None
        live = audit.verdict(quiesced=True)
    assert live is not None
    whole = check(merge_parts(tmp_path, quiesced=True))
    assert named(live.anomalies) == named(whole.anomalies)
    assert len(live.anomalies) > 4  # joe never received the other events
    assert (live.status, live.events, live.deliveries) == (whole.status, whole.events, whole.deliveries)


def named(anomalies: object) -> list[tuple[str, str, str]]:
    assert isinstance(anomalies, tuple)
    return sorted((each.kind, str(each.subscription), str(each.event)) for each in anomalies)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_command_prints_a_line_a_batch_and_ends_with_the_verdict(
    spark: SparkSession, cli: Cli, tmp_path: Path
) -> None:
    clients = Clients(tmp_path)
    first, second = clients.publish("ann", "other"), clients.publish("ann", "other")
    clients.deliver("e", second, first)
    clients.close()
    ran = cli("audit", "--live", tmp_path, "--until-quiet", "0", "--json")
    assert ran.code == 1, ran.err
    *lines, last = map(json.loads, ran.out.splitlines())
    assert lines[0]["events"] == 2
    assert [each["kind"] for each in lines[0]["anomalies"]] == ["fifo-inversion"]
    assert {each["subscription"]: each["lag"] for each in lines[0]["subscriptions"]} == {"b": 0, "e": 0, "j": 2}
    assert last["verdict"]["counts"] == {"fifo-inversion": 1, "unobserved": 2}
    assert last["verdict"]["unjudged"] == 0


def test_bad_input_is_a_sentence(cli: Cli, tmp_path: Path) -> None:
    ran = cli("audit", "--live", tmp_path / "nowhere")
    assert (ran.code, ran.out) == (64, "")
    assert "there is no directory" in ran.err
    (tmp_path / "whole" / "runs").mkdir(parents=True)
    assert "is already merged; leave out --live" in cli("audit", "--live", tmp_path / "whole").err
    assert cli("audit", tmp_path, "--until-quiet", "3").code == 64
    assert cli("audit", "--live", tmp_path, "--out", tmp_path / "x").code == 64


def test_an_offset_never_cuts_a_record_and_ticks_follow_the_last(tmp_path: Path) -> None:
    part = PartRecorder(tmp_path, RUN, "ann")
    reader = PartsReader(str(tmp_path))
    limit = reader.getDefaultReadLimit()
    first = reader.latestOffset(reader.initialOffset(), limit)
    assert first["read"] == {"ann.part": part.path.stat().st_size}
    with part.path.open("ab") as file:
        file.write(b"\x20\x00\x00\x00half")
    assert whole_frames(part.path, first["read"]["ann.part"], 1_000) == first["read"]["ann.part"]
    offsets = [first]
    for _ in range(5):
        offsets.append(reader.latestOffset(offsets[-1], limit))
    assert [offset["ticks"] for offset in offsets] == [0, 1, 2, 3, 3, 3]
    shares = reader.partitions(reader.initialOffset(), first)
    rows = [row for share in shares for batch in reader.read(share) for row in batch.to_pylist()]
    assert [(row["part"], row["place"]) for row in rows] == [("ann", 15), ("", 1)]


@pytest.mark.parametrize("damage", [b"", b"no part"])
def test_a_file_that_is_no_part_yet_is_waited_for(damage: bytes, tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "ann.part").write_bytes(damage)
    reader = PartsReader(str(tmp_path))
    assert reader.latestOffset(reader.initialOffset(), reader.getDefaultReadLimit()) == reader.initialOffset()


def test_on_a_terminal_a_table_shows_lag_and_anomalies(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    clients = Clients(tmp_path)
    first, second = clients.publish("ann", "other"), clients.publish("ann", "other")
    clients.deliver("e", second, first)
    clients.close()
    judge = LiveNetwork()
    judge.feed([line for lines in lines_of(tmp_path).values() for line in lines])
    reports = sorted(judge.reports.values(), key=lambda report: report.subscription)
    [inversion] = [each for report in reports for each in report.anomalies]
    console = Console(record=True, force_terminal=True, width=80, file=io.StringIO())
    monkeypatch.setattr(audit_live, "output_console", lambda: console)
    view = audit_live.View("out/parts")
    with view.shown():
        view.show(Batch(7, judge.replay.report(), reports, [inversion], [inversion]), reports)
    view.end(judge.verdict(quiesced=True), 3)
    lines = [" ".join(line.split()) for line in console.export_text().splitlines()]
    for line_end in (
        "batch 7 fifo-inversion eve was delivered ann:2 before ann:1 for e, although",
        "batch 7 ann:1 arrived late for e: not a fifo-inversion",
    ):
        assert any(line.endswith(line_end) for line in lines)  # animated output can precede it
    assert "subscription delivered lag behind anomalies" in lines
    assert "e active 2 0 1" in lines
    assert any(line.startswith("j active 0 2") for line in lines)
    assert "INVALID 1 fifo-inversion, 2 unobserved" in lines
    assert any(line.startswith("3 deliveries could not be checked here") for line in lines)
