"""The shortest chain of events from a cause to an effect: the proof that one happens before the other.

The search is that of `gapless.checkers.causal_chain`, and among chains of the same length it takes the same one, so
both judges show the same witness. What it needs of a relation is little beside the run: what its publishers were
delivered, and the pasts of its events. That goes to one worker, which walks all chains of the relation there, of any
length, with arrays in its hands: one step of Spark for all anomalies of all runs.

A relation that has more than `ENTRIES_MAX` entries is sent to nobody; its witnesses are cause and effect alone.
"""

from collections.abc import Iterator
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from gapless_spark.audit.encoding import Encoded, place_of, run_of
from gapless_spark.audit.keeping import shared
from gapless_spark.audit.relations import Relations
from gapless_spark.audit.streams import NO_VECTOR

__all__ = ["ENTRIES_MAX", "Causes", "Reads", "Search", "find_chains"]

ENTRIES_MAX = 100_000_000
"""Entries of the pasts of a relation, and what its publishers read: some 400 megabytes, in the hands of one worker."""

READ_ENTRIES = 12
"""What was read once takes as much memory as so many entries of a past."""

Numbers = npt.NDArray[Any]
Event = tuple[int, int]
"""The place of its publisher, and its number."""

_NAME, _PAST, _READ, _EFFECT, _CAUSE = range(5)
_ROWS = {
    "role": "int", "id": "bigint", "reader": "int", "place": "int", "seq": "bigint", "order": "bigint",
    "before": "bigint", "past": "array<int>", "name": "string",
}  # fmt: skip
"""What is sent to the worker beside `rel`: rows of five roles, each with what it needs, and nothing else."""
_FOUND_DDL = "id bigint, chain array<string>"
_FOUND = pa.schema([("id", pa.int64()), ("chain", pa.list_(pa.string()))])


def find_chains(encoded: Encoded, relations: Relations, effects: DataFrame, causes: DataFrame) -> DataFrame:
    """id, chain (ids of events, from the cause to the effect).

    `effects` has id, rel, p, seq; `causes` has id, rel, p, seq and place, the order in which they are preferred.
    """
    concerned = effects.select("rel").distinct()
    held = relations.nodes.select("rel", "width").union(relations.reads.select("rel", F.lit(READ_ENTRIES)))
    sizes = held.join(concerned, "rel", "left_semi").groupBy("rel").agg(F.sum("width").alias("entries"))
    concerned = shared(sizes.where(F.col("entries") <= ENTRIES_MAX).select("rel"))
    place = place_of("p")
    named = encoded.names.select(run_of("actor").alias("run_no"), F.col("actor").alias("p"), "name", "width")
    names = named.where(place < F.col("width")).join(concerned.select("rel", run_of("rel").alias("run_no")), "run_no")
    rows = [
        _rows(names, _NAME, place=place, name=F.col("name")),
        _rows(relations.vectors, _PAST, place=place, seq=F.col("seq"), past=F.col("past")),
        _rows(
            relations.reads.where("c <> p"), _READ,
            reader=F.col("own"), place=F.col("idx"), seq=F.col("seq"), order=F.col("step"), before=F.col("before"),
        ),
        _rows(effects, _EFFECT, id=F.col("id"), place=place, seq=F.col("seq")),
        _rows(causes, _CAUSE, id=F.col("id"), place=place, seq=F.col("seq"), order=F.col("place")),
    ]  # fmt: skip
    together = reduce(DataFrame.union, rows).join(concerned, "rel", "left_semi")
    return together.groupBy("rel").applyInArrow(_walked, _FOUND_DDL)


def _rows(frame: DataFrame, role: int, **columns: Column) -> DataFrame:
    known = {"role": F.lit(role), "past": F.expr(NO_VECTOR), **columns}
    nothing = F.lit(None)
    return frame.select("rel", *(known.get(name, nothing).cast(kind).alias(name) for name, kind in _ROWS.items()))


# ---- on an executor --------------------------------------------------------------------------------------------


class Reads:
    """What each publisher of a relation was delivered of each other, in the order of its steps."""

    def __init__(self, reader: Numbers, place: Numbers, seq: Numbers, step: Numbers, before: Numbers) -> None:
        order = np.lexsort((step, place, reader))
        reader, place, step = reader[order], place[order], step[order]
        self._seq, self._before = seq[order], before[order]
        starts = np.flatnonzero(np.diff(reader, prepend=-1) | np.diff(place, prepend=-1))
        ends = [*starts[1:].tolist(), len(reader)][: len(starts)]
        self._heard: dict[int, list[tuple[int, int, slice]]] = {}
        for start, end in zip(starts.tolist(), ends, strict=True):
            heard = (int(step[start]), int(place[start]), slice(start, end))
            self._heard.setdefault(int(reader[start]), []).append(heard)
        for heard_of in self._heard.values():
            heard_of.sort(key=lambda heard: heard[0])

    def before(self, event: Event) -> Iterator[tuple[int, Numbers]]:
        """Of each publisher, in the order in which the event's own first heard of them, what came before the event."""
        reader, number = event
        for _, place, rows in self._heard.get(reader, ()):
            count = int(np.searchsorted(self._before[rows], number))
            if count:
                yield place, self._seq[rows][:count]


class Causes(NamedTuple):
    """The causes that one search may end at."""

    numbers: dict[int, tuple[Numbers, Numbers]]
    """Of each publisher, numbers and their order of preference."""
    lowest: dict[int, int]

    @classmethod
    def of(cls, place: Numbers, seq: Numbers, order: Numbers) -> "Causes":
        chosen = {int(where): place == where for where in np.unique(place)}
        numbers = {where: (seq[rows], order[rows]) for where, rows in chosen.items()}
        return cls(numbers, {where: int(seq.min()) for where, (seq, _) in numbers.items()})

    def best(self, place: int, are_near: Numbers) -> tuple[int, Event] | None:
        """The one that is preferred among those near, with its order."""
        if not are_near.any():
            return None
        numbers, order = (column[are_near] for column in self.numbers[place])
        first = int(order.argmin())
        return int(order[first]), (place, int(numbers[first]))


class Search:
    """Walks back from effects to causes in one relation."""

    def __init__(self, reads: Reads, pasts: dict[int, tuple[Numbers, Numbers]]) -> None:
        self._reads = reads
        self._pasts = pasts
        self.followed = 0
        """Events that were followed in all searches: the work that was done."""

    def shortest(self, causes: Causes, effect: Event) -> list[Event]:
        """From one of the causes to the effect; nothing if none leads there."""
        level: list[tuple[Event, ...]] = [(effect,)]
        reached: dict[int, int] = {}
        while level:
            for chain in level:
                found = self._direct_cause(causes, chain[0])
                if found is not None:
                    return [found, *chain]
            level = [(event, *chain) for chain in level for event in self._leads(chain[0], causes.lowest, reached)]
        return []

    def _direct_cause(self, causes: Causes, event: Event) -> Event | None:
        own, number = event
        found = []
        if own in causes.numbers:
            found.append(causes.best(own, causes.numbers[own][0] < number))
        for place, numbers in self._reads.before(event):
            if place in causes.numbers:
                found.append(causes.best(place, np.isin(causes.numbers[place][0], numbers)))
        return min((best for best in found if best is not None), default=(0, None))[1]

    def _leads(self, event: Event, lowest: dict[int, int], reached: dict[int, int]) -> Iterator[Event]:
        """The latest of each publisher that was delivered before the event was published, if it can lead on."""
        for place, numbers in self._reads.before(event):
            latest = int(numbers.max())
            if latest > reached.get(place, 0) and self._has_cause((place, latest), lowest):
                reached[place] = latest
                self.followed += 1
                yield place, latest

    def _has_cause(self, event: Event, lowest: dict[int, int]) -> bool:
        place, number = event
        if lowest.get(place, number) < number:
            return True
        numbers, pasts = self._pasts[place]
        past = pasts[int(np.searchsorted(numbers, number))]
        return any(past[other] >= low for other, low in lowest.items() if other != place and other < len(past))


def _walked(table: pa.Table) -> pa.Table:
    """The chains of one relation: a row for each effect to which one leads."""
    rows = table.combine_chunks()
    role = rows.column("role").to_numpy()
    columns = [name for name in _ROWS if name not in ("past", "name")]

    def of(wanted: int, *names: str) -> list[Numbers]:
        chosen = rows.select(columns).filter(pa.array(role == wanted))
        return [chosen.column(name).to_numpy() for name in names]

    [place] = of(_NAME, "place")
    said = rows.column("name").filter(pa.array(role == _NAME)).to_pylist()
    names = dict(zip(place.tolist(), said, strict=True))
    search = Search(Reads(*of(_READ, "reader", "place", "seq", "order", "before")), _pasts(rows, role))
    causes = of(_CAUSE, "id", "place", "seq", "order")
    found = []
    for number, place, seq in zip(*(column.tolist() for column in of(_EFFECT, "id", "place", "seq")), strict=True):
        mine = causes[0] == number
        chain = search.shortest(Causes.of(*(column[mine] for column in causes[1:])), (place, seq))
        if chain:
            found.append({"id": number, "chain": [f"{names[place]}:{seq}" for place, seq in chain]})
    return pa.Table.from_pylist(found, schema=_FOUND)


def _pasts(rows: pa.Table, role: Numbers) -> dict[int, tuple[Numbers, Numbers]]:
    """Of each publisher, its numbers in order, and the past of each, as rows of a matrix."""
    chosen = rows.select(["place", "seq", "past"]).filter(pa.array(role == _PAST))
    if not chosen.num_rows:
        return {}
    place, seq = chosen.column("place").to_numpy(), chosen.column("seq").to_numpy()
    vectors = chosen.column("past").combine_chunks().flatten().to_numpy().reshape(len(place), -1)
    order = np.lexsort((seq, place))
    starts = np.flatnonzero(np.diff(place[order], prepend=-1)).tolist()
    parts = [order[start:end] for start, end in zip(starts, [*starts[1:], len(order)], strict=True)]
    return {int(place[part[0]]): (seq[part], vectors[part]) for part in parts}
