"""Many small runs in one trace: one Spark job judges thousands."""

import random
from collections import Counter
from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from typing import Any

import msgspec

from gapless.checkers import Anomaly, Verdict
from gapless.events import Event
from gapless.protocol import Guarantee
from gapless.trace import Recorder, SkippedRow, Trace
from tests.checkers import test_late_start as late_start
from tests.checkers import test_planted as planted
from tests.checkers.model import Model, record
from tests.checkers.test_agreement import went_wrong
from tests.checkers.test_planted import Plant

GUARANTEES: tuple[Guarantee, ...] = ("gcd", "gfd", "topic-causal", "best-effort")

PLANTS: dict[str, Plant] = {
    "dropped in the middle": planted.drop_in_the_middle,
    "dropped before the end": planted.drop_last_before_the_end,
    "dropped at the end": planted.drop_last(effect=False),
    "dropped before its effect": planted.drop_last(effect=True),
    "cut moved": planted.move_the_cut(effect=False),
    "cut moved behind an effect": planted.move_the_cut(effect=True),
    "publisher dropped": planted.drop_a_publisher,
    "two of one publisher swapped": planted.swap(same_publisher=True),
    "cause and effect swapped": planted.swap(same_publisher=False),
    "repeated": planted.repeat,
    "delivered without a match": planted.deliver_too_much("no match"),
    "delivered before the cut": planted.deliver_too_much("before the cut"),
    "delivered after the end": planted.deliver_too_much("after the end"),
    "delivered, but never published": planted.deliver_the_unpublished,
}

LATE_STARTS: dict[str, Plant] = {
    "started behind": partial(late_start.start_behind, with_cut=True),
    "never started": partial(late_start.start_behind, with_cut=False),
}
"""Anomalies for a run whose subscriptions claim the whole cut."""

REPORTED_FALSELY = "told of losses that are none"
LIES = 4
"""The number of deliveries that are falsely reported as lost."""

FORGERIES = ("too low", "too high", "missing", "about a stranger", "about itself", "about no event")


def renamed(trace: Trace, run: str) -> Trace:
    tables = {}
    for table in Trace.__struct_fields__:
        rows: list[Any] = getattr(trace, table)
        tables[table] = [msgspec.structs.replace(row, run=run) for row in rows]
    return Trace(**tables)


def together(traces: list[Trace]) -> Trace:
    return Trace(*([row for trace in traces for row in getattr(trace, table)] for table in Trace.__struct_fields__))


def runs_that_went_wrong(seeds: dict[Guarantee, int]) -> Iterator[Trace]:
    """Yield valid runs with random changes, some of them with a forged certificate."""
    for guarantee, count in seeds.items():
        for seed in range(count):
            yield renamed(went_wrong(seed, guarantee), f"{guarantee} {seed}")


def honest_runs(seeds: int) -> Iterator[Trace]:
    """Yield runs without an anomaly, for each guarantee, some of them quiet at the end."""
    for guarantee in GUARANTEES:
        for seed in range(seeds):
            run = Model(seed, guarantee=guarantee).run(quiesced=seed % 2 == 0)
            yield record(run, f"honest {guarantee} {seed}")


def planted_runs(seeds: int) -> Iterator[tuple[str, Trace]]:
    """Yield runs with each anomaly that can be planted, and with each forgery of the certificate."""
    for name, plant in PLANTS.items():
        for seed in range(seeds):
            outcome = plant(Model(seed).run(), random.Random(seed))
            if outcome is not None:
                yield name, record(outcome[0], f"{name} {seed}")
    for name, plant in LATE_STARTS.items():
        for seed in range(2 * seeds):
            outcome = plant(Model(seed, ready=("whole",)).run(), random.Random(seed))
            if outcome is not None:
                yield name, record(outcome[0], f"{name} {seed}")
    for seed in range(seeds):
        lied_to = falsely_reported(record(Model(seed).run(), f"{REPORTED_FALSELY} {seed}"))
        if lied_to is not None:
            yield REPORTED_FALSELY, lied_to
    for how in FORGERIES:
        for seed in range(seeds):
            forged = planted.forge(record(Model(seed).run(), f"forged {how} {seed}"), how, random.Random(seed))
            if forged is not None:
                yield f"forged, {how}", forged[0]


def falsely_reported(trace: Trace) -> Trace | None:
    """Return the trace with a loss report for a delivered event, and for one that was never published."""
    came = [row for row in trace.history if row.kind == "deliver"]
    if len(came) < LIES:
        return None
    for row in came[:LIES]:
        publisher, _, seq = row.event_id.rpartition(":")
        name = str(row.subscription_id)
        trace.skipped.append(SkippedRow(trace.runs[0].run, name, publisher, int(seq), int(seq)))
    last = max(event.seq for event in trace.events if event.publisher == publisher)
    trace.skipped.append(SkippedRow(trace.runs[0].run, name, publisher, last + 1, last + 3))
    return trace


def chain_of_answers(clients: int) -> Trace:
    """Return a run in which each client answers the previous one; eve receives the last answer before its causes."""
    recorder = Recorder(run="chain", protocol="p", guarantee="gcd", scenario="s", seed=0, brokers=1, f=0)
    names = [f"c{number:02}" for number in range(clients)]
    answers = [Event(name, 1, {"by": name}) for name in names]
    for before, name in pairwise(names):
        recorder.subscribe(name, name, f"by = '{before}'", 0)
        recorder.fix_cut(name, before, 1)
        recorder.activate(name, 1)
    recorder.subscribe("eve", "eve", "TRUE", 0)
    for name in names:
        recorder.fix_cut("eve", name, 1)
    recorder.activate("eve", 1)
    for number, name in enumerate(names):
        if number:
            recorder.deliver(name, answers[number - 1], name, 10 * number)
        recorder.publish(name, answers[number], 10 * number + 1)
    for answer in [answers[-1], *answers[:-1]]:
        recorder.deliver("eve", answer, "eve", 10 * clients)
    return recorder.finish(quiesced=True)


def reported(anomaly: Anomaly) -> tuple[Any, ...]:
    return (*identity(anomaly), anomaly.witness, anomaly.message)


def identity(anomaly: Anomaly) -> tuple[Any, ...]:
    return anomaly.kind, anomaly.client, anomaly.subscription, anomaly.event, anomaly.publisher


def all_reported(verdict: Verdict) -> Counter[tuple[Any, ...]]:
    """Return the contents of a verdict, regardless of the order."""
    return Counter(map(reported, verdict.anomalies))


GROUP_EVENTS = [Event("p", seq, {"x": seq if seq <= 4 else 0}, b"", 100 * seq) for seq in range(1, 80)]
"""The published events: the first four are for the group; the others make the run large enough for joins."""
_Given = list[tuple[str, int, bool]]
GROUPS: dict[str, tuple[_Given, dict[str, int]]] = {
    "group, good": (
        [("ann", 1, False), ("bob", 2, False), ("ann", 3, False), ("bob", 4, False), ("bob", 3, True)],
        {"bob": 3},
    ),
    "group, missing": ([("ann", 1, False), ("bob", 3, False), ("ann", 4, False)], {}),
    "group, twice": (
        [("ann", 1, False), ("bob", 2, False), ("ann", 3, False), ("bob", 4, False), ("bob", 3, True)],
        {"ann": 2, "bob": 3},
    ),
    "group, out of order": ([("ann", 3, False), ("bob", 2, False), ("ann", 1, False), ("bob", 4, False)], {}),
}


def group_trace(run: str) -> Trace:
    """Return a run of two clients of one durable subscription, with their deliveries and acknowledgements."""
    made = Recorder(run=run, protocol="gapless", guarantee="gcd", scenario=run, seed=0, brokers=3, f=1)
    for event in GROUP_EVENTS:
        made.publish("p", event, event.stamp)
    for client in ("ann", "bob"):
        made.subscribe(client, client, "x > 0", 9_000, ready="whole")
        made.join_group(client, "n", 50, 9_000)
        made.activate(client, 9_000)
    given, kept = GROUPS[run]
    for at, (client, seq, redelivered) in enumerate(given):
        made.deliver(client, GROUP_EVENTS[seq - 1], client, 10_000 + at, redelivered=redelivered)
    for client, count in kept.items():
        made.acknowledged(client, count, 20_000, is_stored=True)
    return made.finish(quiesced=True)
