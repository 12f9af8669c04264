"""Reads one client's part of a trace: its actions as rows, and whether it is complete."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, assert_never
from urllib.parse import unquote

import msgspec

from gapless.errors import TraceError
from gapless.trace import part_records as records
from gapless.trace.attributes_text import attributes_to_text
from gapless.trace.part_log import read_frames
from gapless.trace.rows import CutRow, EventRow, HistoryRow, RunRow, SkippedRow, SubscriptionRow

__all__ = ["Part", "client_of", "read_part"]


@dataclass
class Part:
    """The contents of one client's part. Times are milliseconds since `start_us`."""

    client: str
    start_us: int
    run: RunRow | None = None
    machine: str = ""
    events: list[EventRow] = field(default_factory=list)
    history: list[HistoryRow] = field(default_factory=list)
    subscriptions: dict[str, SubscriptionRow] = field(default_factory=dict)
    cuts: dict[tuple[str, str], CutRow] = field(default_factory=dict)
    skipped: list[SkippedRow] = field(default_factory=list)
    stamps: list[int] = field(default_factory=list)
    """The timestamps of deliveries, by step; 0 for publications."""
    again: list[bool] = field(default_factory=list)
    openings: dict[str, list[records.NameOpened]] = field(default_factory=dict)
    """Records about durable subscriptions, by subscription. The following fields have the same form."""
    members: dict[str, list[records.GroupJoined]] = field(default_factory=dict)
    acks: dict[str, list[records.Acknowledged]] = field(default_factory=dict)
    single_acks: dict[str, list[records.EachAcknowledged]] = field(default_factory=dict)
    letters: dict[str, list[records.DeadLettered]] = field(default_factory=dict)
    revoked: dict[str, list[records.Revoked]] = field(default_factory=dict)
    skipped_reports: dict[str, list[records.Skipped]] = field(default_factory=dict)
    ends: dict[str, records.Ended] = field(default_factory=dict)
    confirmed_seq: int = 0
    last_ms: float | None = None
    is_closed: bool = False

    @property
    def name(self) -> str:
        """Return the name of the run."""
        return self.run.run if self.run is not None else ""

    def ms(self, time_us: int) -> float:
        """Return a wall-clock time as a time of the trace."""
        return (time_us - self.start_us) / 1000

    def us(self, time_ms: float) -> int:
        """Return a time of the trace as wall-clock time."""
        return self.start_us + round(time_ms * 1000)

    def naming(self) -> Iterator[Sequence[records.NameOpened | records.GroupJoined]]:
        """Yield all records about attached durable subscriptions."""
        yield from self.openings.values()
        yield from self.members.values()

    def add(self, record: records.Record) -> None:
        """Process the next record."""
        match record:
            case records.Delivered():
                self._delivered(record)
            case records.Published():
                self._published(record)
            case records.Confirmed():
                self._confirmed(record)
            case records.Acknowledged():
                self._acknowledged(record)
            case records.CutFixed():
                self._cut_fixed(record)
            case records.CutsVoided():
                self._cuts_voided(record)
            case records.Subscribed():
                self._subscribed(record)
            case records.Activated():
                self._activated(record)
            case records.Ended():
                self._ended(record)
            case records.Refused():
                self._refused(record)
            case records.Skipped():
                self._skipped(record)
            case records.EachAcknowledged():
                self.single_acks.setdefault(record.subscription, []).append(record)
            case records.DeadLettered():
                self.letters.setdefault(record.subscription, []).append(record)
            case records.Revoked():
                self._revoked(record)
            case records.NameOpened():
                self._name_opened(record)
            case records.GroupJoined():
                self._group_joined(record)
            case records.Opened():
                self._opened(record)
            case records.Closed():
                self.is_closed = True
            case _:
                assert_never(record)

    def _opened(self, record: records.Opened) -> None:
        self.run, self.client, self.machine = record.run, record.client, record.machine

    def _subscribed(self, record: records.Subscribed) -> None:
        self.subscriptions[record.subscription] = SubscriptionRow(
            self.name, record.subscription, self.client, record.filter, self._pass(record.time_us), None, None,
            record.ready,
        )  # fmt: skip

    def _refused(self, record: records.Refused) -> None:
        self.subscriptions.pop(record.subscription, None)
        self._drop_cuts(record.subscription)

    def _activated(self, record: records.Activated) -> None:
        time_ms = self._pass(record.time_us)
        row = self.subscriptions.get(record.subscription)
        if row is not None and row.active_ms is None:
            self._change(record.subscription, active_ms=time_ms)

    def _cut_fixed(self, record: records.CutFixed) -> None:
        key = (record.subscription, record.publisher)
        self.cuts[key] = CutRow(self.name, *key, record.from_seq, None)

    def _cuts_voided(self, record: records.CutsVoided) -> None:
        self._drop_cuts(record.subscription)

    def _ended(self, record: records.Ended) -> None:
        self._change(record.subscription, ended_ms=self._pass(record.time_us))
        self.ends[record.subscription] = record
        for publisher, seq in record.last_seq.items():
            key = (record.subscription, publisher)
            if key in self.cuts:
                self.cuts[key] = msgspec.structs.replace(self.cuts[key], to_seq=seq)

    def _name_opened(self, record: records.NameOpened) -> None:
        self.openings.setdefault(record.subscription, []).append(record)

    def _group_joined(self, record: records.GroupJoined) -> None:
        self.members.setdefault(record.subscription, []).append(record)

    def _acknowledged(self, record: records.Acknowledged) -> None:
        self.acks.setdefault(record.subscription, []).append(record)

    def _revoked(self, record: records.Revoked) -> None:
        self.revoked.setdefault(record.subscription, []).append(record)

    def _skipped(self, record: records.Skipped) -> None:
        self.skipped_reports.setdefault(record.subscription, []).append(record)
        self.skipped += [
            SkippedRow(self.name, record.subscription, publisher, first, last)
            for publisher, ranges in record.lost.items()
            for first, last in ranges
        ]

    def _published(self, record: records.Published) -> None:
        event_id = f"{self.client}:{record.seq}"
        text = attributes_to_text(record.attributes)
        self.events.append(EventRow(self.name, event_id, self.client, record.seq, text, self.ms(record.began_us)))
        self._act("publish", event_id, None, record.time_us)

    def _delivered(self, record: records.Delivered) -> None:
        event_id = f"{record.publisher}:{record.seq}"
        self._act("deliver", event_id, record.subscription, record.time_us, record.stamp, record.redelivered)

    def _confirmed(self, record: records.Confirmed) -> None:
        self.confirmed_seq = max(self.confirmed_seq, record.seq)

    def _act(
        self, kind: Any, event_id: str, subscription_id: str | None, time_us: int, stamp: int = 0,
        redelivered: bool = False,
    ) -> None:  # fmt: skip
        time_ms = self._pass(time_us)
        self.stamps.append(stamp)
        self.again.append(redelivered)
        self.history.append(
            HistoryRow(self.name, self.client, len(self.history), kind, event_id, subscription_id, time_ms)
        )

    def _pass(self, time_us: int) -> float:
        self.last_ms = self.ms(time_us)
        return self.last_ms

    def _change(self, subscription: str, **what: float) -> None:
        if subscription in self.subscriptions:
            self.subscriptions[subscription] = msgspec.structs.replace(self.subscriptions[subscription], **what)

    def _drop_cuts(self, subscription: str) -> None:
        for key in [key for key in self.cuts if key[0] == subscription]:
            del self.cuts[key]


def read_part(path: Path) -> list[records.Record]:
    """Return the records of a part, up to the first invalid record."""
    try:
        found: list[records.Record] = [records.decode(frame) for frame in read_frames(path) or ()]
    except (OSError, msgspec.MsgspecError) as error:
        raise TraceError(f"{path} is not a part of a trace that this version of Gapless can read: {error}") from None
    if found and not isinstance(found[0], records.Opened):
        raise TraceError(
            f"{path} is not a part of a trace that this version of Gapless can read: it does not name its client"
        )
    return found


def client_of(path: Path) -> str:
    """Return the client of a part, from the file name alone."""
    return unquote(path.stem)
