"""Traces on disk: round trips, identical bytes everywhere, and an error for each kind of damage."""

import hashlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gapless.errors import TraceError
from gapless.events import Event
from gapless.trace import Recorder, Trace, read_trace, storage, write_trace

TABLES = ["cut_short", "cuts", "events", "history", "messages", "pasts", "runs", "skipped", "subscriptions"]


def a_run(name: str = "r1", *, events: int = 5) -> Trace:
    recorder = Recorder(
        run=name, protocol="gapless", guarantee="gfd", scenario="s", seed=3, brokers=2, f=0, with_messages=True
    )
    recorder.subscribe("bob", "s1", "x > 1", 0)
    recorder.fix_cut("s1", "ann", 1)
    recorder.activate("s1", 1)
    recorder.subscribe("bob", "s2", "x < 1", 0)
    for seq in range(1, events + 1):
        event = Event("ann", seq, {"x": seq, "ratio": 0.5, "ok": True, "word": "it's"})
        recorder.publish("ann", event, seq)
        recorder.deliver("bob", event, "s1", seq + 1)
        recorder.publish("bob", Event("bob", seq, {"x": 0}), seq + 1)
        recorder.message("Forward", "b1", "b2", seq, None if seq == 2 else seq + 1, 99)
    recorder.end("s1", {"ann": events}, 90)
    return recorder.finish(quiesced=True)


def merged(traces: list[Trace]) -> Trace:
    return Trace(*([row for trace in traces for row in getattr(trace, table)] for table in Trace.__struct_fields__))


def test_round_trip(tmp_path: Path) -> None:
    write_trace(a_run(), tmp_path / "deep" / "trace")
    assert read_trace(tmp_path / "deep" / "trace") == a_run()
    assert sorted(entry.name for entry in (tmp_path / "deep" / "trace").iterdir()) == TABLES


def test_an_empty_run(tmp_path: Path) -> None:
    empty = Recorder(run="r", protocol="p", guarantee="gcd", scenario="s", seed=0, brokers=0, f=0).finish(quiesced=True)
    write_trace(empty, tmp_path / "trace")
    assert read_trace(tmp_path / "trace") == empty


def test_several_runs_from_a_generator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage, "ROWS_PER_GROUP", 7)
    traces = [a_run(f"run-{number}", events=number) for number in range(5)]

    def one_by_one() -> Iterator[Trace]:
        yield from traces

    write_trace(one_by_one(), tmp_path / "trace")
    found = read_trace(tmp_path / "trace")
    assert found == merged(traces)
    assert found.split() == traces
    assert traces[0].split() == [traces[0]]


def test_split_leaves_out_rows_of_unknown_runs() -> None:
    both = merged([a_run("known"), a_run("unknown")])
    del both.runs[1]
    assert both.split() == [a_run("known")]


def test_two_runs_of_one_name_are_refused_and_leave_nothing(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="two runs have the name 'r1'"):
        write_trace([a_run(), a_run()], tmp_path / "trace")
    assert list(tmp_path.iterdir()) == []


def test_an_earlier_trace_is_replaced(tmp_path: Path) -> None:
    write_trace(a_run(events=2), tmp_path / "trace")
    write_trace(a_run(events=3), tmp_path / "trace")
    assert read_trace(tmp_path / "trace") == a_run(events=3)
    assert [entry.name for entry in tmp_path.iterdir()] == ["trace"]


def test_an_empty_directory_is_used(tmp_path: Path) -> None:
    (tmp_path / "trace").mkdir()
    write_trace(a_run(), tmp_path / "trace")
    assert read_trace(tmp_path / "trace") == a_run()


@pytest.mark.parametrize("entry", ["thesis.txt", "runs/data.parquet", "runs/data.csv"])
def test_something_else_is_not_overwritten(tmp_path: Path, entry: str) -> None:
    precious = tmp_path / "trace" / entry
    precious.parent.mkdir(parents=True)
    precious.write_text("precious")
    with pytest.raises(TraceError, match="something other than a trace"):
        write_trace(a_run(), tmp_path / "trace")
    assert precious.read_text() == "precious"


def test_a_trace_with_something_else_in_it_is_not_overwritten(tmp_path: Path) -> None:
    write_trace(a_run(), tmp_path / "trace")
    (tmp_path / "trace" / "notes.txt").write_text("precious")
    with pytest.raises(TraceError, match="something other than a trace"):
        write_trace(a_run(), tmp_path / "trace")


def test_a_file_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "trace").write_text("precious")
    with pytest.raises(TraceError, match="is a file"):
        write_trace(a_run(), tmp_path / "trace")


def test_a_write_that_fails_leaves_the_earlier_trace(tmp_path: Path) -> None:
    write_trace(a_run(), tmp_path / "trace")

    def breaks_off() -> Iterator[Trace]:
        yield a_run("another")
        raise RuntimeError("the simulator stumbled")

    with pytest.raises(RuntimeError):
        write_trace(breaks_off(), tmp_path / "trace")
    assert read_trace(tmp_path / "trace") == a_run()
    assert [entry.name for entry in tmp_path.iterdir()] == ["trace"]


# ---- reading what is not a whole trace --------------------------------------------------------------------


def part(directory: Path, table: str) -> Path:
    return directory / table / "part-00000.parquet"


def rewrite(directory: Path, table: str, change: Callable[[pa.Table], pa.Table]) -> None:
    file = part(directory, table)
    pq.write_table(change(pq.ParquetFile(file).read()), file)


def flip_a_byte(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[60] ^= 0xFF
    file.write_bytes(content)


def with_version(version: bytes | None) -> Callable[[pa.Table], pa.Table]:
    return lambda t: t.replace_schema_metadata({b"gapless.trace.version": version} if version else {})


def of_version_1(directory: Path) -> None:
    for table, column in (("runs", "clock_skew_ms"), ("subscriptions", "ready")):
        rewrite(directory, table, lambda t, column=column: t.drop_columns([column]))  # type: ignore[misc]
    for table in TABLES:
        rewrite(directory, table, with_version(b"1"))


def test_a_trace_of_version_1_claims_the_first_cut_by_one_clock(tmp_path: Path) -> None:
    write_trace(a_run(), tmp_path / "trace")
    of_version_1(tmp_path / "trace")
    assert read_trace(tmp_path / "trace") == a_run()
    assert {row.ready for row in a_run().subscriptions} == {"first"}
    assert a_run().runs[0].clock_skew_ms == 0.0


def test_a_column_of_version_2_must_be_there_in_version_2(tmp_path: Path) -> None:
    write_trace(a_run(), tmp_path / "trace")
    rewrite(tmp_path / "trace", "subscriptions", lambda t: t.drop_columns(["ready"]))
    with pytest.raises(TraceError, match="has no column 'ready'"):
        read_trace(tmp_path / "trace")


def with_ready(t: pa.Table) -> pa.Table:
    return t.set_column(t.schema.get_field_index("ready"), "ready", pa.array(["soon"] * len(t)))


def with_seed(seed: str) -> Callable[[pa.Table], pa.Table]:
    return lambda t: t.set_column(4, "seed", pa.array([seed] * len(t)))


def with_kind(word: str) -> Callable[[pa.Table], pa.Table]:
    return lambda t: t.set_column(3, "kind", pa.array([word] * len(t)))


def with_nulls(t: pa.Table) -> pa.Table:
    return t.set_column(1, pa.field("event_id", pa.string()), pa.nulls(len(t), pa.string()))


DAMAGES: list[tuple[str, Callable[[Path], object]]] = [
    ("has no table 'cuts'", lambda d: part(d, "cuts").unlink()),
    ("is damaged", lambda d: part(d, "history").write_bytes(part(d, "history").read_bytes()[:-20])),
    ("is damaged", lambda d: part(d, "history").write_bytes(b"")),
    ("is damaged", lambda d: flip_a_byte(part(d, "history"))),
    ("has no column 'seq'", lambda d: rewrite(d, "events", lambda t: t.drop_columns(["seq"]))),
    ("has version 99", lambda d: rewrite(d, "runs", with_version(b"99"))),
    ("not a table of a Gapless trace", lambda d: rewrite(d, "pasts", with_version(None))),
    ("'seed' has type string, but must have int64", lambda d: rewrite(d, "runs", with_seed("seven"))),
    ("'event_id' has 10 nulls", lambda d: rewrite(d, "events", with_nulls)),
    ("'ready' contains 'soon', but only whole, first", lambda d: rewrite(d, "subscriptions", with_ready)),
    ("'kind' contains 'sing', but only publish, deliver", lambda d: rewrite(d, "history", with_kind("sing"))),
]  # fmt: skip


@pytest.mark.parametrize(("sentence", "damage"), DAMAGES, ids=[sentence for sentence, _ in DAMAGES])
def test_a_damaged_trace_is_refused(tmp_path: Path, sentence: str, damage: Callable[[Path], object]) -> None:
    directory = tmp_path / "trace"
    write_trace(a_run(), directory)
    damage(directory)
    with pytest.raises(TraceError, match=sentence) as caught:
        read_trace(directory)
    assert "\n" not in str(caught.value)


def test_no_flipped_byte_makes_another_valid_trace(tmp_path: Path) -> None:
    directory = tmp_path / "trace"
    write_trace(a_run(), directory)
    whole = part(directory, "runs").read_bytes()
    refused = 0
    for place in range(0, len(whole), 9):
        content = bytearray(whole)
        content[place] ^= 0x15
        part(directory, "runs").write_bytes(content)
        try:
            assert read_trace(directory) == a_run()
        except TraceError:
            refused += 1
    assert refused > 100


def test_no_trace_at_all(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="there is no trace at"):
        read_trace(tmp_path / "nowhere")


def test_messages_may_be_missing(tmp_path: Path) -> None:
    write_trace(a_run(), tmp_path / "trace")
    part(tmp_path / "trace", "messages").unlink()
    (tmp_path / "trace" / "messages").rmdir()
    assert read_trace(tmp_path / "trace").messages == []


# ---- the same bytes everywhere ----------------------------------------------------------------------------

WRITE_A_TRACE = """
import random, sys
from gapless.events import Event
from gapless.trace import Recorder, write_trace

draw = random.Random(5)
recorder = Recorder(run="r", protocol="p", guarantee="gcd", scenario="s", seed=5, brokers=1, f=0, with_messages=True)
clients = [f"client-{number}" for number in range(8)]
for client in clients:
    recorder.subscribe(client, "s-" + client, "x > 1", 0)
    for other in set(clients):
        recorder.fix_cut("s-" + client, other, 1)
published, numbers = [], dict.fromkeys(clients, 0)
for now in range(2000):
    client = draw.choice(clients)
    if now < 8 or draw.random() < 0.2:
        numbers[client] += 1
        published.append(Event(client, numbers[client], {name: now for name in set("abcdef")}))
        recorder.publish(client, published[-1], now)
    else:
        recorder.deliver(client, draw.choice(published), "s-" + client, now)
    recorder.message("m", client, "broker", now, now + 1, 10)
recorder.end("s-client-0", {other: 3 for other in set(clients)}, 2001)
write_trace(recorder.finish(quiesced=False), sys.argv[1])
"""


def test_two_processes_with_different_hash_seeds_write_the_same_bytes(tmp_path: Path) -> None:
    prints = []
    for hash_seed in ("1", "4242"):
        directory = tmp_path / f"written-{hash_seed}"
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        subprocess.run([sys.executable, "-c", WRITE_A_TRACE, str(directory)], check=True, env=environment)
        prints.append({table: hashlib.sha256(part(directory, table).read_bytes()).hexdigest() for table in TABLES})
    assert prints[0] == prints[1]
