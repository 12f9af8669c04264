"""What a group is promised is judged by the audit as by the checkers: in workers, and by joins."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from gapless.checkers import check
from gapless.events import Event
from gapless.trace import Recorder, Trace, write_trace

from .test_audit_agreement import audited

EVENTS = [Event("p", seq, {"x": seq}, b"", 100 * seq) for seq in range(1, 7)]
Given = list[tuple[str, int, bool]]
RUNS: dict[str, tuple[Given, dict[str, int]]] = {
    "good": (
        [("ann", 1, False), ("bob", 2, False), ("ann", 3, False), ("bob", 4, False), ("bob", 3, True)],
        {"bob": 3},
    ),
    "missing": ([("ann", 1, False), ("bob", 3, False), ("ann", 4, False)], {}),
    "twice": (
        [("ann", 1, False), ("bob", 2, False), ("ann", 3, False), ("bob", 4, False), ("bob", 3, True)],
        {"ann": 2, "bob": 3},
    ),
    "out of order": ([("ann", 3, False), ("bob", 2, False), ("ann", 1, False), ("bob", 4, False)], {}),
}


def trace_of(run: str) -> Trace:
    made = Recorder(run=run, protocol="gapless", guarantee="gcd", scenario=run, seed=0, brokers=3, f=1)
    for event in EVENTS[:4]:
        made.publish("p", event, event.stamp)
    for client in ("ann", "bob"):
        made.subscribe(client, client, "x > 0", 700, ready="whole")
        made.join_group(client, "n", 50, 700)
        made.activate(client, 700)
    given, kept = RUNS[run]
    for at, (client, seq, is_again) in enumerate(given):
        made.deliver(client, EVENTS[seq - 1], client, 1_000 + at, is_again=is_again)
    for client, count in kept.items():
        made.confirming(client, count, 2_000, is_kept=True)
    return made.finish(quiesced=True)


@pytest.mark.parametrize("rows_max", [0, 500_000])
def test_the_audit_says_of_groups_what_the_checkers_say(spark: SparkSession, tmp_path: Path, rows_max: int) -> None:
    traces = [trace_of(run) for run in RUNS]
    write_trace(traces, tmp_path / "trace")
    verdicts, anomalies = audited(spark, tmp_path / "trace", rows_max=rows_max)
    for trace in traces:
        expected = check(trace)
        run = expected.run
        assert verdicts[run]["status"] == expected.status
        found = sorted(
            (kind, subscription or "", event or "") for kind, _, subscription, event, *_ in anomalies.get(run, ())
        )
        assert found == sorted((each.kind, each.subscription or "", each.event or "") for each in expected.anomalies)
    assert [verdicts[run]["status"] for run in RUNS] == ["valid", "invalid", "invalid", "invalid"]
