"""The two steps of the query, each with its state in Spark's hands.

*By run*: one task follows all clients, and tells each subscription what it has to know (`Replay`). *By subscription*:
any number of tasks judge, each some subscriptions (`LiveChecker`). The state of a key is what its object holds,
and is read and written once a batch.
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
"""In place of a subscription: what is said of the run."""


class _Keeping(StatefulProcessor):
    """Keeps one object for each key."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Spark hands over its state."""
        self._state = handle.getValueState("state", "state binary")

    def close(self) -> None:
        """Nothing is left open."""

    def _kept(self) -> Any:
        kept = self._state.get()
        return pickle.loads(kept[0]) if kept is not None else None

    def _keep(self, value: Any) -> None:
        self._state.update((pickle.dumps(value, pickle.HIGHEST_PROTOCOL),))


class Following(_Keeping):
    """By run."""

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803
        """A batch of records; what subscriptions are told, and at last what is said of the run."""
        replay: Replay = self._kept() or Replay()
        lines = sorted((row.part, row.place, bytes(row.record)) for row in rows if row.part)
        told = replay.feed([(part, part_records.decode(record)) for part, _, record in lines])
        for number, (name, fact) in enumerate(told):
            yield Row(subscription=name, number=number, fact=facts.encode(fact))
        yield Row(subscription=OF_RUN, number=len(told), fact=msgspec.msgpack.encode(replay.report()))
        self._keep(replay)


class Judging(_Keeping):
    """By subscription."""

    def __init__(self, skew_ms: float) -> None:
        self._skew_ms = skew_ms

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803
        """What it has to know; what there is to say of it."""
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
    """What the query says."""
    if subscription == OF_RUN:
        return msgspec.msgpack.decode(report, type=RunReport)
    return msgspec.msgpack.decode(report, type=SubscriptionReport)
