"""A large run at a glance. Most runs are right, or have nothing but gaps: arrays are enough to tell that.

All rules but one are about one client: what it did, and what its subscriptions were delivered. The one that is not, the
certificate, says of each event what its publisher knew; if every publisher's own claims follow from what it read and
from the claims about *that*, all of them are true (see `relations`). So a run is judged in *shares*, each of some of
its clients: a share takes the events and the certificate of the whole run, and the history of its own clients, as
arrays of numbers. Forty bytes an act are held, where the checkers hold a thousand.

All that is wrong, except for gaps, is left to the joins, which have the words for it: after an `UnclearError` they
judge the run as if nothing had been tried. So nothing here has to explain anything; it only has to be sure.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any
from zlib import crc32

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from gapless.checkers import JUDGED
from gapless.checkers.matching import parsed_filter
from gapless.filters import FilterIndex
from gapless.trace import CutRow, RunRow, SubscriptionRow, attributes_from_text

__all__ = ["ENTRIES_MAX", "Glance", "Judged", "UnclearError"]

ENTRIES_MAX = 100_000_000
"""Entries of all pasts of a run: some 400 megabytes, in the hands of every task."""

MATCHES_MAX = 50_000_000
"""Pairs of a filter and a text of attributes that match."""

PAIRS_MAX = 20_000_000_000
"""Pairs of a subscription and an event: a task looks at so many in about a minute."""

GAPS_MAX = 10_000
"""Gaps that a share tells. Where there are more, something else is wrong, too, as a rule."""

SEQ_MAX = 2**31 - 1
_NONE = 2**62
"""In place of the lowest number of a publisher of which there is none."""
_ENTRIES_AT_ONCE = 4_000_000

Numbers = npt.NDArray[Any]
Gap = dict[str, Any]


class UnclearError(Exception):
    """Something is wrong, or may be, that is not told here."""


def _sure(holds: Any) -> None:
    if not holds:
        raise UnclearError


def _codes(column: pa.Array, values: pa.Array) -> Numbers:
    """For each entry its place among the values; -1 for what is not there."""
    if pa.types.is_dictionary(column.type):
        known = _codes(column.dictionary, values)
        at = column.indices.fill_null(len(known)).to_numpy(zero_copy_only=False)
        return np.append(known, np.int32(-1))[at]  # type: ignore[no-any-return]
    found = pc.index_in(column, value_set=values).fill_null(-1)
    return found.to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _chunks(count: int, width: int) -> Iterator[slice]:
    """Rows of so many entries, a few megabytes at a time."""
    size = max(1, _ENTRIES_AT_ONCE // max(1, width))
    return (slice(first, min(first + size, count)) for first in range(0, count, size))


# ---- what all shares know --------------------------------------------------------------------------------------


class _Events:
    """The events of the run, in the order of publishers and numbers."""

    def __init__(self, batches: Iterable[pa.RecordBatch]) -> None:
        read = [batch for batch in batches if len(batch)]
        _sure(read)
        table = pa.Table.from_batches(read)
        publisher, seq = _whole(table.column("publisher")), table.column("seq").to_numpy()
        ids = _whole(table.column("event_id"))
        self.publishers = pc.unique(publisher).sort()
        self.place_of = {name: at for at, name in enumerate(self.publishers.to_pylist())}
        self.width = len(self.publishers)
        place = _codes(publisher, self.publishers)
        _sure(not len(seq) or (seq.min() >= 1 and seq.max() <= SEQ_MAX))
        named = pc.binary_join_element_wise(publisher, pa.array(seq).cast(pa.string()), ":")
        _sure(pc.all(pc.equal(named, ids)).as_py() is not False)
        order = np.lexsort((seq, place))
        self.place, self.seq = place[order], seq[order]
        self.ids = ids.take(pa.array(order))
        self.published_ms = table.column("published_ms").to_numpy()[order]
        _sure(not ((np.diff(self.place) == 0) & (np.diff(self.seq) == 0)).any())
        self.first = np.searchsorted(self.place, np.arange(self.width + 1))
        texts = _whole(table.column("attributes")).dictionary_encode()
        self.texts: list[str] = texts.dictionary.to_pylist()
        self.text = texts.indices.to_numpy()[order]

    def __len__(self) -> int:
        return len(self.seq)


class _Matches:
    """Which texts of attributes match which filter."""

    def __init__(self, filters: Iterable[str], texts: Sequence[str]) -> None:
        self._texts = len(texts)
        self._numbers = {text: number for number, text in enumerate(dict.fromkeys(filters))}
        index: FilterIndex[int] = FilterIndex()
        for text, number in self._numbers.items():
            index.add(number, parsed_filter(text))
        answers = index.match_many([attributes_from_text(text) for text in texts]) if self._numbers else []
        counts = np.fromiter(map(len, answers), np.int64, len(answers))
        _sure(counts.sum() <= MATCHES_MAX)
        found = np.fromiter((number for answer in answers for number in answer), np.int32, int(counts.sum()))
        order = np.argsort(found, kind="stable")
        self._matching = np.repeat(np.arange(len(answers), dtype=np.int32), counts)[order]
        self._first = np.searchsorted(found[order], np.arange(len(self._numbers) + 1))

    def of(self, filter_text: str) -> Numbers:
        """Of each text, whether it matches."""
        number = self._numbers[filter_text]
        answer = np.zeros(self._texts, bool)
        answer[self._matching[self._first[number] : self._first[number + 1]]] = True
        return answer


def _claimed_pasts(events: _Events, claims: Iterable[pa.RecordBatch]) -> Numbers:
    """The past of each event, as the certificate has it, and a matrix for all."""
    _sure(len(events) * events.width <= ENTRIES_MAX)
    read = [_claims(events, batch) for batch in claims]
    at, about, reach = (
        np.concatenate([np.zeros(0, np.int64), *(part[column] for part in read)]) for column in range(3)
    )
    _sure((np.diff(np.sort(at * events.width + about)) > 0).all())
    pasts = np.zeros((len(events), events.width), np.int32)
    pasts[at, about] = reach
    for start, end in pairwise(events.first.tolist()):
        np.maximum.accumulate(pasts[start:end], axis=0, out=pasts[start:end])
    _sure((pasts[at, about] == reach).all())
    return pasts


def _claims(events: _Events, batch: pa.RecordBatch) -> tuple[Numbers, Numbers, Numbers]:
    at, about = _codes(batch.column("event_id"), events.ids), _codes(batch.column("publisher"), events.publishers)
    reach = batch.column("seq").to_numpy()
    _sure((at >= 0).all() and (about >= 0).all() and (reach >= 0).all() and (reach <= SEQ_MAX).all())
    _sure((events.place[at] != about).all())
    return at.astype(np.int64), about, reach


# ---- one share -------------------------------------------------------------------------------------------------


@dataclass
class _Acts:
    """What the clients of a share did, client by client, in the order of their steps."""

    client: Numbers
    event: Numbers
    subscription: Numbers
    """-1 where an event was published."""
    time_ms: Numbers
    first: Numbers
    """Where the acts of each client begin."""


@dataclass(frozen=True)
class Judged:
    """What a share found."""

    deliveries: int
    accepted: int
    gaps: list[Gap]


class Glance:
    """One run, one share of its clients after the other."""

    def __init__(
        self,
        run: RunRow,
        subscriptions: Sequence[SubscriptionRow],
        cuts: Sequence[CutRow],
        events: Iterable[pa.RecordBatch],
        claims: Iterable[pa.RecordBatch],
    ) -> None:
        _sure(run.guarantee in ("gcd", "gfd"))
        self._run = run
        self._events = _Events(events)
        _sure(len(self._events) * len(subscriptions) <= PAIRS_MAX)
        self._pasts = _claimed_pasts(self._events, claims)
        self._subscriptions = subscriptions
        self._ids = pa.array([row.subscription_id for row in subscriptions], pa.string())
        _sure(len(pc.unique(self._ids)) == len(self._ids))
        self._cuts = _cuts_by_subscription(subscriptions, cuts)
        self._matches = _Matches((row.filter for row in subscriptions), self._events.texts)
        names = {row.client for row in subscriptions} | set(self._events.publishers.to_pylist())
        self._clients = pa.array(sorted(names), pa.string())
        self._owner = _codes(pa.array([row.client for row in subscriptions], pa.string()), self._clients)
        self._own_place = _codes(self._clients, self._events.publishers)

    @property
    def events(self) -> int:
        """How many the run has."""
        return len(self._events)

    def judge(self, history: Iterable[pa.RecordBatch], share: int, shares: int) -> Judged:
        """What the clients of one share did, of so many; `history` may hold others, too."""
        mine = np.array([crc32(name.encode()) % shares == share for name in self._clients.to_pylist()], bool)
        acts = self._acts(history, mine)
        for client in np.flatnonzero(mine & (self._own_place >= 0)).tolist():
            self._look_at_publisher(acts, client)
        delivered = acts.subscription >= 0
        order = np.argsort(acts.subscription[delivered], kind="stable")
        event, time_ms = acts.event[delivered][order], acts.time_ms[delivered][order]
        first = np.searchsorted(acts.subscription[delivered][order], np.arange(len(self._subscriptions) + 1))
        gaps: list[Gap] = []
        for number in np.flatnonzero(mine[self._owner]).tolist() if len(self._owner) else ():
            rows = slice(first[number], first[number + 1])
            gaps += _Subscription(self, number, event[rows], time_ms[rows]).gaps()
            _sure(len(gaps) <= GAPS_MAX)
        return Judged(len(event), len(event), gaps)

    def _acts(self, history: Iterable[pa.RecordBatch], mine: Numbers) -> _Acts:
        read = [self._read(batch, mine) for batch in history]
        kinds = (np.int32, np.int64, np.int32, np.int32, np.float64)
        columns = [np.concatenate([np.zeros(0, kind), *(part[at] for part in read)]) for at, kind in enumerate(kinds)]
        client, step, event, subscription, time_ms = columns
        order = np.argsort(client, kind="stable")
        if (np.diff(step[order])[np.diff(client[order]) == 0] < 0).any():
            order = np.lexsort((step, client))
        client, step = client[order], step[order]
        first = np.searchsorted(client, np.arange(len(self._clients) + 1))
        _sure((step == np.arange(len(step)) - first[client]).all())
        return _Acts(client, event[order], subscription[order], time_ms[order], first)

    def _read(self, batch: pa.RecordBatch, mine: Numbers) -> tuple[Numbers, ...]:
        """client, step, event, subscription, time_ms of the share's own acts."""
        client = _codes(batch.column("client"), self._clients)
        _sure((client >= 0).all())
        batch = batch.filter(pa.array(mine[client]))
        client = client[mine[client]]
        publishes = _codes(batch.column("kind"), pa.array(["deliver", "publish"]))
        _sure((publishes >= 0).all())
        event = _codes(batch.column("event_id"), self._events.ids)
        _sure((event >= 0).all())
        subscription = _codes(batch.column("subscription_id"), self._ids)
        named = batch.column("subscription_id").is_valid().to_numpy(zero_copy_only=False)
        _sure((named == (publishes == 0)).all() and (subscription[named] >= 0).all())
        _sure((self._owner[subscription[named]] == client[named]).all())
        step, time_ms = batch.column("step").to_numpy(), batch.column("time_ms").to_numpy()
        return client, step, event, subscription, time_ms

    def _look_at_publisher(self, acts: _Acts, client: int) -> None:
        """It published its events, each once and in order, and the certificate says what it had read."""
        events, own = self._events, int(self._own_place[client])
        rows = slice(acts.first[client], acts.first[client + 1])
        event, publishes = acts.event[rows], acts.subscription[rows] < 0
        first, end = int(events.first[own]), int(events.first[own + 1])
        _sure(np.array_equal(event[publishes], np.arange(first, end)))
        before = np.cumsum(publishes)[~publishes]
        event = event[~publishes]
        is_own = events.place[event] == own
        _sure((event[is_own] < first + before[is_own]).all())
        counts = ~is_own & (before < end - first)
        known = self._known(event[counts], before[counts], end - first)
        # No event happens before itself.
        _sure((known[:, own] < events.seq[first:end]).all())
        known[:, own] = 0
        _sure(np.array_equal(known, self._pasts[first:end]))

    def _known(self, event: Numbers, before: Numbers, count: int) -> Numbers:
        """What a publisher of so many events knew at each: it read these, after so many events of its own."""
        known = np.zeros((count, self._events.width), np.int32)
        for rows in _chunks(len(event), self._events.width):
            read, at = event[rows], before[rows]
            pasts = self._pasts[read]
            pasts[np.arange(len(read)), self._events.place[read]] = self._events.seq[read]
            starts = np.flatnonzero(np.diff(at, prepend=-1))
            at = at[starts]
            known[at] = np.maximum(known[at], np.maximum.reduceat(pasts, starts, axis=0))
        return np.maximum.accumulate(known, axis=0, out=known) if count else known


def _cuts_by_subscription(
    subscriptions: Sequence[SubscriptionRow], cuts: Sequence[CutRow]
) -> Mapping[str, dict[str, CutRow]]:
    found: dict[str, dict[str, CutRow]] = {row.subscription_id: {} for row in subscriptions}
    ended = {row.subscription_id for row in subscriptions if row.ended_ms is not None}
    for cut in cuts:
        _sure(cut.subscription_id in found and cut.publisher not in found[cut.subscription_id])
        _sure(cut.to_seq is None or cut.subscription_id in ended)
        found[cut.subscription_id][cut.publisher] = cut
    return found


# ---- one subscription ------------------------------------------------------------------------------------------


class _Subscription:
    """What one subscription was delivered, and what it was not."""

    def __init__(self, glance: Glance, number: int, event: Numbers, time_ms: Numbers) -> None:
        self._row = glance._subscriptions[number]
        self._run, self._events, self._pasts = glance._run, glance._events, glance._pasts
        self._event = event
        events = self._events
        self._place, self._seq = events.place[event], events.seq[event]
        self._take_cuts(glance._cuts[self._row.subscription_id])
        due = glance._matches.of(self._row.filter)[events.text]
        _sure(due[event].all())
        self._sure_all_are_accepted(time_ms)
        self._sure_of_order()
        due[event] = False
        self._missing = np.flatnonzero(due)
        self._sort_missing()

    def gaps(self) -> list[Gap]:
        """The gaps; `UnclearError` if anything else is wrong."""
        self._sure_of_starts()
        self._sure_of_progress()
        if self._run.guarantee == "gcd":
            self._sure_of_causal_order()
            self._sure_of_effects()
        return [self._gap(int(event)) for event in self._missing[self._within]]

    def _take_cuts(self, cuts: Mapping[str, CutRow]) -> None:
        places = {name: self._events.place_of[name] for name in cuts if name in self._events.place_of}
        self._from = np.zeros(self._events.width, np.int64)
        self._to = np.full(self._events.width, _NONE)
        self._has_cut = np.zeros(self._events.width, bool)
        for name, place in places.items():
            self._has_cut[place], self._from[place] = True, cuts[name].from_seq
            if cuts[name].to_seq is not None:
                self._to[place] = cuts[name].to_seq

    def _sure_all_are_accepted(self, time_ms: Numbers) -> None:
        _sure((self._seq >= self._from[self._place]).all() and (self._seq <= self._to[self._place]).all())
        _sure((time_ms >= self._row.requested_ms).all())
        _sure(self._row.ended_ms is None or (time_ms <= self._row.ended_ms).all())

    def _sure_of_order(self) -> None:
        """Of each publisher the numbers rise, so nothing came twice."""
        order = np.argsort(self._place, kind="stable")
        place, seq = self._place[order], self._seq[order]
        changes = np.diff(place) != 0
        _sure((changes | (np.diff(seq) > 0)).all())
        self._low, self._high = np.full(self._events.width, _NONE), np.zeros(self._events.width, np.int64)
        if len(place):
            starts, ends = np.flatnonzero(np.append(True, changes)), np.flatnonzero(np.append(changes, True))
            self._low[place[starts]], self._high[place[ends]] = seq[starts], seq[ends]
        self._start = np.where(self._has_cut, self._from, self._low)

    def _sort_missing(self) -> None:
        """What never came is before the start, within, or after the last that came."""
        place, seq = self._events.place[self._missing], self._events.seq[self._missing]
        last = np.maximum(self._high, np.where(self._to < _NONE, self._to, 0))
        self._before = seq < self._start[place]
        self._within = ~self._before & (seq <= last[place])
        self._after = ~self._before & ~self._within

    def _is_reached(self) -> Numbers:
        """Of what is missing, what is not after the end of its publisher, as far as that is known."""
        place, seq = self._events.place[self._missing], self._events.seq[self._missing]
        known = self._high > 0
        if self._row.ended_ms is None:
            known = (self._start < _NONE) | self._run.quiesced
        return np.where(self._to[place] < _NONE, seq <= self._to[place], known[place])

    def _sure_of_starts(self) -> None:
        """Nothing that was promised is left out by a late start."""
        row, skew = self._row, self._run.clock_skew_ms
        if "late-start" not in JUDGED[self._run.guarantee] or row.ready != "whole" or row.active_ms is None:
            return
        published = self._events.published_ms[self._missing]
        promised = published > row.active_ms + skew
        if row.ended_ms is not None:
            promised &= published < row.ended_ms - skew
        _sure(not (promised & self._before & self._is_reached()).any())

    def _sure_of_progress(self) -> None:
        """Nothing should have come by now, and silence is no riddle."""
        row = self._row
        if row.ended_ms is not None:
            return
        if self._run.quiesced:
            _sure(row.active_ms is not None and not self._after.any())
        if len(self._event):
            return
        if not self._run.quiesced:
            _sure(not self._after.any())
            return
        uncut = ~self._has_cut[self._events.place[self._missing]]
        since = self._events.published_ms[self._missing] > row.active_ms
        _sure(not (self._before & uncut & since).any())

    def _sure_of_causal_order(self) -> None:
        """Nothing came after one of its effects, and no effect of what is missing came."""
        covered = np.zeros((1, self._events.width), np.int32)
        for rows in _chunks(len(self._event), self._events.width):
            pasts = np.concatenate((covered, self._pasts[self._event[rows]]))
            np.maximum.accumulate(pasts, axis=0, out=pasts)
            count = len(pasts) - 1
            _sure((pasts[np.arange(count), self._place[rows]] < self._seq[rows]).all())
            covered = pasts[-1:].copy()
        missing = self._missing[self._after]
        _sure((covered[0, self._events.place[missing]] < self._events.seq[missing]).all())

    def _sure_of_effects(self) -> None:
        """Pasts grow along a publisher: if the last that is missing before the start is no effect, none is."""
        missing = self._missing[self._before & self._is_reached()]
        place = self._events.place[missing]
        last = missing[np.flatnonzero(np.append(np.diff(place) != 0, True))] if len(missing) else missing
        _sure(not (self._pasts[last] >= self._low).any())

    def _gap(self, event: int) -> Gap:
        """In the words and with the witness of `gapless.checkers.gapless_fifo`."""
        row, place, seq = self._row, int(self._events.place[event]), int(self._events.seq[event])
        publisher = self._events.publishers[place].as_py()
        above = self._seq[(self._place == place) & (self._seq > seq)]
        start, missing = f"{publisher}:{self._start[place]}", f"{publisher}:{seq}"
        witness = [missing] if self._has_cut[place] else [start, missing]
        why = f"its ending cut is {publisher}:{self._to[place]}"
        if len(above):
            witness.append(f"{publisher}:{above.min()}")
            why = f"it was delivered {witness[-1]}"
        for_what = f"{row.client} was never delivered {missing} for {row.subscription_id}"
        return {
            "kind": "gap", "client": row.client, "subscription": row.subscription_id, "event": missing,
            "publisher": publisher, "witness": witness,
            "message": f"{for_what}, though it starts at {start} and {why}",
        }  # fmt: skip
