"""What the executors do with vectors: three passes over sorted rows, each with one vector in its hands.

The past of an event is a vector: at place i the highest number of publisher i in it, 0 if there is none. Spark's
windows know no maximum of vectors, and one row for each entry would make a hundred rows of one; so these passes take
the rows sorted as a window would sort them, batch by batch, and keep a running maximum. What they hold does not grow
with the trace: a batch, and one vector.

| pass | sorted by | running maximum of | what comes out |
| --- | --- | --- | --- |
| `claimed_pasts` | publisher, number | what the certificate claims | the past of each event, as claimed |
| `merged_pasts` | client, number | what the client had read when it published | the past of each event, as it follows |
| `overtaken` | subscription, step | the pasts of what was delivered | events that came after one of their effects |
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

__all__ = ["CLAIMED_DDL", "MERGED_DDL", "NO_VECTOR", "OVERTAKEN_DDL", "claimed_pasts", "merged_pasts", "overtaken"]

Numbers = npt.NDArray[Any]

NUMBER = np.int32
NUMBER_MAX = 2**31 - 1
"""Numbers of events in vectors; the encoding refuses higher ones."""

ENTRIES_PER_BATCH = 2_000_000
"""Entries of vectors in one batch that leaves a pass: some megabytes."""

CLAIMED_DDL = "p bigint, seq bigint, past array<int>, lies boolean, twice bigint"
MERGED_DDL = "rel bigint, p bigint, seq bigint, past array<int>, fresh array<int>, grew boolean, circular boolean"
OVERTAKEN_DDL = "s bigint, rel bigint, p bigint, seq bigint, state tinyint"


class _Lists:
    """A column of lists, in the making."""

    def __init__(self, kind: pa.DataType) -> None:
        self._kind = kind
        self._parts: list[Numbers | None] = []
        self.entries = 0

    def append(self, values: Numbers | None) -> None:
        self._parts.append(values)
        self.entries += 0 if values is None else len(values)

    def take(self) -> pa.Array:
        """The column; the next one starts empty."""
        parts, self._parts, self.entries = self._parts, [], 0
        lengths = np.fromiter((0 if part is None else len(part) for part in parts), np.int64, len(parts))
        offsets = np.zeros(len(parts) + 1, np.int32)
        np.cumsum(lengths, out=offsets[1:])
        filled = [part for part in parts if part is not None and len(part)]
        values = pa.array(np.concatenate(filled) if filled else np.empty(0, np.int64), self._kind)
        mask = pa.array([part is None for part in parts], pa.bool_())
        return pa.ListArray.from_arrays(pa.array(offsets), values, mask=mask)


NO_VECTOR = "CAST(array() AS array<int>)"
"""What stands for a vector that is not known: no run is without publishers, so none has no entries.

Not null: of a row of nulls in a column of lists, Spark takes stock anew with each row of a batch that it sends."""


class _Column(NamedTuple):
    """A column of vectors that was read: entry i is values[offsets[i]:offsets[i + 1]]."""

    values: Numbers
    offsets: Numbers
    known: Numbers

    @classmethod
    def of(cls, column: pa.Array) -> "_Column":
        offsets = column.offsets.to_numpy()
        return cls(column.values.to_numpy(zero_copy_only=False), offsets, np.diff(offsets) > 0)

    def get(self, row: int) -> Numbers | None:
        return self.values[self.offsets[row] : self.offsets[row + 1]] if self.known[row] else None


def _numbers(column: pa.Array) -> Numbers:
    """A column of integers; -1 where there is none."""
    return column.fill_null(-1).to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]


# ---- what the certificate claims -------------------------------------------------------------------------------


class _Claims:
    """The past of one publisher's events, as the certificate has it."""

    def __init__(self) -> None:
        self.event: tuple[int, int] | None = None
        self._exists = False
        self._own = -1
        self._known: Numbers = np.zeros(0, NUMBER)
        self._rows: list[tuple[Numbers, Numbers, Numbers]] = []

    def begin(self, event: tuple[int, int], exists: bool, own: int, width: int) -> None:
        """The next event. What its publisher's previous one knew, it knows, too."""
        if self.event is None or event[0] != self.event[0]:
            self._known = np.zeros(0, NUMBER)
        if len(self._known) < width:
            self._known = np.zeros(width, NUMBER)
        self.event, self._exists, self._own, self._rows = event, exists, own, []

    def add(self, about: Numbers, idx: Numbers, reach: Numbers) -> None:
        """Claims about the event, in the order of those that they are about."""
        self._rows.append((about, idx, reach))

    def finish(self, out: "_ClaimedBatch") -> None:
        """Write down the event: all its claims are here."""
        if self.event is None:
            return
        lies, twice = False, None
        if self._rows:
            about, idx, reach = (np.concatenate(parts) for parts in zip(*self._rows, strict=True))
            doubled = np.flatnonzero(about[1:] == about[:-1])
            twice = int(about[doubled[0]]) if len(doubled) else None
            if self._exists:
                lies = self._learn(idx, reach)
        out.append(self.event, self._known if self._exists else None, lies, twice)

    def _learn(self, idx: Numbers, reach: Numbers) -> bool:
        """Take over the claims. Whether one of them cannot be true, whatever the histories say."""
        named = idx >= 0
        places, reached = idx[named], reach[named]
        known = self._known.copy()
        known[places] = np.maximum(known[places], np.minimum(reached, NUMBER_MAX).astype(NUMBER))
        self._known = known
        return bool((reach[~named] != 0).any() or (known[places] != reached).any() or (places == self._own).any())


class _ClaimedBatch:
    """Rows of `claimed_pasts` in the making."""

    def __init__(self) -> None:
        self._events: list[tuple[int, int]] = []
        self._past = _Lists(pa.int32())
        self._lies: list[bool] = []
        self._twice: list[int | None] = []

    def append(self, event: tuple[int, int], past: Numbers | None, lies: bool, twice: int | None) -> None:
        self._events.append(event)
        self._past.append(past)
        self._lies.append(lies)
        self._twice.append(twice)

    @property
    def is_full(self) -> bool:
        return self._past.entries > ENTRIES_PER_BATCH

    def take(self) -> pa.RecordBatch:
        columns = [
            pa.array([event[0] for event in self._events], pa.int64()),
            pa.array([event[1] for event in self._events], pa.int64()),
            self._past.take(),
            pa.array(self._lies, pa.bool_()),
            pa.array(self._twice, pa.int64()),
        ]
        self._events, self._lies, self._twice = [], [], []
        return pa.RecordBatch.from_arrays(columns, names=["p", "seq", "past", "lies", "twice"])


def claimed_pasts(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The past of each event, from the entries of the certificate, which are those that advanced.

    Takes p, seq, q, idx, width, reach, sorted by the first three. The event is a row without q, with its publisher's
    place and the width of its run; a claim is a row with q, the number claimed, and q's place, if it has one. Gives a
    row for each event; one without a past where there are claims, but no event; whether some claim cannot be true;
    and of whom, if so, two claims speak.
    """
    claims, out = _Claims(), _ClaimedBatch()
    for batch in batches:
        p, seq, q, idx, width, reach = (_numbers(column) for column in batch.columns)
        starts = (np.flatnonzero((np.diff(p) != 0) | (np.diff(seq) != 0)) + 1).tolist()
        for start, end in zip([0, *starts], [*starts, len(p)], strict=True):
            event, exists = (int(p[start]), int(seq[start])), bool(q[start] < 0)
            if event != claims.event:
                claims.finish(out)
                claims.begin(event, exists, int(idx[start]) if exists else -1, int(width[start]))
            if start + exists < end:
                rows = slice(start + exists, end)
                claims.add(q[rows], idx[rows], reach[rows])
        if out.is_full:
            yield out.take()
    claims.finish(out)
    yield out.take()


# ---- what follows from what was read ---------------------------------------------------------------------------


class _MergedBatch:
    """Rows of `merged_pasts` in the making."""

    def __init__(self) -> None:
        self._nodes: list[tuple[int, int, int]] = []
        self._past, self._fresh = _Lists(pa.int32()), _Lists(pa.int32())
        self._grew: list[bool] = []
        self._circular: list[bool] = []

    def append(self, node: tuple[int, int, int], past: Numbers, fresh: Numbers, grew: bool, circular: bool) -> None:
        self._nodes.append(node)
        self._past.append(past)
        self._fresh.append(fresh)
        self._grew.append(grew)
        self._circular.append(circular)

    @property
    def is_full(self) -> bool:
        return self._past.entries > ENTRIES_PER_BATCH

    def take(self) -> pa.RecordBatch:
        nodes, self._nodes = self._nodes, []
        grew, self._grew = self._grew, []
        circular, self._circular = self._circular, []
        return pa.RecordBatch.from_arrays(
            [
                *(pa.array([node[place] for node in nodes], pa.int64()) for place in range(3)),
                self._past.take(),
                self._fresh.take(),
                pa.array(grew, pa.bool_()),
                pa.array(circular, pa.bool_()),
            ],
            names=["rel", "p", "seq", "past", "fresh", "grew", "circular"],
        )


class _Reader:
    """One publisher in one relation: what it had read, and what follows from that."""

    def __init__(self, key: tuple[int, int], own: int, width: int) -> None:
        self.key = key
        self._own = own
        self._known = np.zeros(width, NUMBER)
        self._last = self._known.copy()

    def read(self, idx: int, number: int, past: Numbers | None) -> None:
        """An event, unless `idx` is negative, and its past, as far as that is known."""
        if past is not None:
            np.maximum(self._known, past, out=self._known)
        if idx >= 0 and number > self._known[idx]:
            self._known[idx] = number

    def publish(self, seq: int, expected: Numbers | None, out: _MergedBatch) -> None:
        """An event of its own, and what its past was held for."""
        # Of its own events, a publisher can have met those that it had published, and no others.
        circular = bool(self._known[self._own] >= seq)
        self._known[self._own] = 0
        fresh = np.flatnonzero(self._known > self._last)
        if len(fresh):
            self._last = self._known.copy()
        grew = expected is None or not np.array_equal(expected, self._last)
        out.append((*self.key, seq), self._last, fresh, grew, circular)


def merged_pasts(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The past of each event: the maximum of all that its publisher had read before, and of the pasts of that.

    Takes rel, p, seq, role, own, width, idx, number, past, sorted by the first four. The row of role 1 is the event
    (p, seq), with what its past is held for, if anything. A row of role 0 belongs into that event's past, one of role
    2 into the past of the next: the event `number` of publisher `idx`, and its past, each of them if it is known.
    Gives each event's past, the places in which it advanced, whether it is other than held for, and whether the event
    would have to happen before itself.
    """
    out = _MergedBatch()
    reader: _Reader | None = None
    for batch in batches:
        rel, p, seq, role, own, width, idx, number = (_numbers(batch.column(place)).tolist() for place in range(8))
        past = _Column.of(batch.column(8))
        for row in range(len(rel)):
            if reader is None or reader.key != (rel[row], p[row]):
                reader = _Reader((rel[row], p[row]), own[row], width[row])
            if role[row] == 1:
                reader.publish(seq[row], past.get(row), out)
            else:
                reader.read(idx[row], number[row], past.get(row))
        if out.is_full:
            yield out.take()
    yield out.take()


# ---- what came too late ----------------------------------------------------------------------------------------


def overtaken(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Events that came after one of their own effects.

    Takes s, rel, step, p, seq, state, late, idx, past, sorted by the first three. An event that never came stands
    behind all others, without a past. One that is late has a name already: it came after a later event of its own
    publisher.
    """
    place: tuple[int, int] | None = None
    covered: Numbers = np.zeros(0, NUMBER)
    for batch in batches:
        s, rel, _, p, seq, state, is_late, idx = (_numbers(batch.column(number)) for number in range(8))
        past = _Column.of(batch.column(8))
        late = np.zeros(len(s), bool)
        starts = (np.flatnonzero((np.diff(s) != 0) | (np.diff(rel) != 0)) + 1).tolist()
        for start, end in zip([0, *starts], [*starts, len(s)], strict=True):
            here = int(s[start]), int(rel[start])
            if here != place:
                place, covered = here, np.zeros(0, NUMBER)
            came = int(past.known[start:end].sum())
            if came:
                vectors = past.values[past.offsets[start] : past.offsets[start + came]].reshape(came, -1)
                if not len(covered):
                    covered = np.zeros(vectors.shape[1], NUMBER)
                running = np.maximum.accumulate(np.vstack((covered, vectors)))
                rows = slice(start, start + came)
                late[rows] = running[np.arange(came), idx[rows]] >= seq[rows]
                covered = running[-1]
            if start + came < end and len(covered):
                rows = slice(start + came, end)
                late[rows] = covered[idx[rows]] >= seq[rows]
        found = np.flatnonzero(late & (is_late == 0))
        yield pa.RecordBatch.from_arrays(
            [pa.array(column[found]) for column in (s, rel, p, seq, state)], names=["s", "rel", "p", "seq", "state"]
        )
