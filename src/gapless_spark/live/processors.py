"""The two steps of the query, each with its state kept by Spark.

*By run*: one task follows all clients, and sends each subscription the facts it needs (`Replay`). *By subscription*:
any number of tasks check some subscriptions each (`LiveChecker`). The state of a key is that of its object, read and
written once per batch.
"""

import pickle
from collections.abc import Iterator
from typing import Any

import msgspec
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from gapless.checkers.live import LiveChecker, Replay, RunReport, SubscriptionReport, facts
from gapless.trace import part_records

__all__ = ["FACTS", "OF_RUN", "REPORTS", "Following", "Judging", "report_of"]

FACTS = "subscription string, number bigint, fact binary"
REPORTS = "subscription string, report binary"
OF_RUN = ""
"""Used instead of a subscription for reports about the run."""


class _Keeping(StatefulProcessor):
    """Base of both steps, which keeps one object for each key."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Store the handle of the state that Spark keeps."""
        self._state = handle.getValueState("state", "state binary")

    def close(self) -> None:
        """Do nothing, because there is nothing to close."""

    def _kept(self) -> Any:
        kept = self._state.get()
        return pickle.loads(kept[0]) if kept is not None else None

    def _keep(self, value: Any) -> None:
        self._state.update((pickle.dumps(value, pickle.HIGHEST_PROTOCOL),))


class Following(_Keeping):
    """The step by run."""

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803
        """Process a batch of records; yield the facts for subscriptions, and at the end the report on the run."""
        replay: Replay = self._kept() or Replay()
        lines = sorted((row.part, row.place, bytes(row.record)) for row in rows if row.part)
        new_facts = replay.feed([(part, part_records.decode(record)) for part, _, record in lines])
        for number, (name, fact) in enumerate(new_facts):
            yield Row(subscription=name, number=number, fact=facts.encode(fact))
        yield Row(subscription=OF_RUN, number=len(new_facts), fact=msgspec.msgpack.encode(replay.report()))
        self._keep(replay)


class Judging(_Keeping):
    """The step by subscription."""

    def __init__(self, skew_ms: float) -> None:
        self._skew_ms = skew_ms

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803
        """Process facts for a subscription, and yield its report."""
        found = sorted((row.number, bytes(row.fact)) for row in rows)
        if key[0] == OF_RUN:
            yield Row(subscription=OF_RUN, report=found[-1][1])
            return
        judge: LiveChecker = self._kept() or LiveChecker(key[0])
        for _, fact in found:
            judge.take(facts.decode(fact))
        report = judge.report(self._skew_ms)
        self._keep(judge)
        yield Row(subscription=key[0], report=msgspec.msgpack.encode(report))


def report_of(subscription: str, report: bytes) -> RunReport | SubscriptionReport:
    """Return the report in a row."""
    if subscription == OF_RUN:
        return msgspec.msgpack.decode(report, type=RunReport)
    return msgspec.msgpack.decode(report, type=SubscriptionReport)
