"""Represents runs of events: events that one client published together, stored by column.

An attribute that is the same in all events of a run is stored once. The values of any other are a **column**: an array
that stays encoded until somebody looks at it, in memory, on the wire and on disk. So a broker decodes only the columns
that its filters mention, and passes on the others as bytes.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import repeat
from math import copysign
from operator import itemgetter
from typing import Annotated, Any, NamedTuple, TypeAlias

import msgspec

from gapless.events import Attributes, AttributeValue, Event
from gapless.message_pack import length_of

__all__ = ["RUN_MAX", "Column", "DecodedTable", "EventRun", "EventTable", "Projection", "TableError", "columns_of"]

RUN_MAX = 65_536
"""Maximum number of events in a run."""
Column: TypeAlias = list[AttributeValue | None]
"""The values of an attribute; None for an event that does not have it."""

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder().decode
_checked_column = msgspec.msgpack.Decoder(Column)
_payloads = msgspec.msgpack.Decoder(list[bytes])
VALUE_BYTES = 9
"""The assumed size in bytes of a value other than a string."""


class TableError(ValueError):
    """Raised when a table of events contradicts itself."""


class Projection(NamedTuple):
    """A table of events reduced to some attributes, as filters see it that mention only these."""

    rows: list[Attributes]
    """The distinct rows."""
    places: list[list[int]] | None
    """For each row, the indices of the events with these values; None if all events have the same."""


class EventTable(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The attributes and payloads of several events, stored by column."""

    count: Annotated[int, msgspec.Meta(ge=1, le=RUN_MAX)]
    shared: Attributes
    """The attributes that have the same value in all events."""
    columns: dict[str, bytes]
    """The encoded columns of the other attributes."""
    payloads: bytes
    """The payloads, as an encoded array."""

    @classmethod
    def of(cls, rows: Sequence[Attributes], payloads: Sequence[bytes]) -> "EventTable":
        """Return a table of events with these attributes and payloads."""
        if len(rows) == 1:
            return cls(1, {**rows[0]}, {}, _encode(payloads))
        return cls.of_columns(columns_of(rows), payloads)

    @classmethod
    def of_columns(cls, columns: dict[str, Sequence[Any]], payloads: Sequence[bytes]) -> "EventTable":
        """Return a table with these columns. Each column has as many values as there are payloads."""
        shared: Attributes = {}
        differing: dict[str, bytes] = {}
        for name, column in columns.items():
            if _is_constant(column):
                shared[name] = column[0]
            else:
                differing[name] = _encode(column)
        return cls(len(payloads), shared, differing, _encode(payloads))

    def __len__(self) -> int:
        return self.count

    @property
    def size(self) -> int:
        """Return the approximate size in bytes."""
        size = len(self.payloads)
        if self.shared:
            size += sum(map(len, self.shared))
            size += sum([len(each) if each.__class__ is str else VALUE_BYTES for each in self.shared.values()])
        return size + sum(map(len, self.columns)) + sum(map(len, self.columns.values()))

    @property
    def values(self) -> int:
        """Return the number of values and payloads in columns."""
        return self.count * (1 + len(self.columns))

    def check(self) -> None:
        """Raise a `TableError` unless every column has a value of an attribute type for each event."""
        if not self.shared.keys().isdisjoint(self.columns):
            raise TableError("an attribute of a run of events is both shared and in a column")
        for what in (*self.columns.values(), self.payloads):
            if length_of(memoryview(what)) != self.count:
                raise TableError(
                    f"a column in a run of {self.count:,} events has {length_of(memoryview(what)):,} values"
                )
        try:
            for column in self.columns.values():
                _checked_column.decode(column)
            _payloads.decode(self.payloads)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise TableError(f"a column in a run of events is malformed: {error}") from None

    def payload_list(self) -> list[bytes]:
        """Return the payloads, decoded."""
        return _payloads.decode(self.payloads)

    def sizes(self, extra: int) -> list[int]:
        """Return the size of each event in bytes: the payload, the texts and attribute names, plus `extra`."""
        sizes = list(map(len, self.payload_list()))
        for name, value in self.shared.items():
            size = extra + len(name.encode()) + (len(value.encode()) if isinstance(value, str) else 0)
            sizes = [each + size for each in sizes]
        for name, column in self.columns.items():
            base = extra + len(name.encode())
            for place, value in enumerate(_decode(column)):
                if value is not None:
                    sizes[place] += base + (len(value.encode()) if isinstance(value, str) else 0)
        return sizes

    def decoded(self) -> "DecodedTable":
        """Return the table with its columns decoded, for several calls of `pick`."""
        columns = {name: _decode(column) for name, column in self.columns.items()}
        return DecodedTable(self.shared, columns, self.payload_list())

    def rows(self) -> list[Attributes]:
        """Return the attributes of each event, in separate dictionaries."""
        if not self.columns:
            return list(map(dict.copy, repeat(self.shared, self.count)))
        return _rows(self.shared, {name: _decode(column) for name, column in self.columns.items()})

    def part(self, begin: int, end: int) -> "EventTable":
        """Return the table of the events from index `begin` to `end`."""
        return self if (begin, end) == (0, self.count) else self.decoded().part(begin, end)

    def project(self, names: Collection[str]) -> Projection:
        """Return the table reduced to these attributes."""
        columns = {name: _decode(column) for name, column in self.columns.items() if name in names}
        if not columns:
            return Projection([self.shared], None)
        keys: Any = zip(*columns.values(), strict=True) if len(columns) > 1 else next(iter(columns.values()))
        if any(
            len(set(map(type, column))) > 1 for column in columns.values()
        ):  # 1, 1.0 and True are equal, but differ as attributes
            keys = zip(keys, zip(*(map(type, column) for column in columns.values()), strict=True), strict=True)
        places: dict[Any, list[int]] = {}
        for place, key in enumerate(keys):
            if key in places:
                places[key].append(place)
            else:
                places[key] = [place]
        lists = list(places.values())
        if len(lists) < self.count:
            firsts = [some[0] for some in lists]
            columns = {name: [column[place] for place in firsts] for name, column in columns.items()}
        return Projection(_rows(self.shared, columns), lists)


class DecodedTable(NamedTuple):
    """An event table with its columns and payloads decoded."""

    shared: Attributes
    columns: dict[str, list[Any]]
    payloads: list[bytes]

    def part(self, begin: int, end: int) -> EventTable:
        """Return the table of the events from index `begin` to `end`."""
        return self._mapped(end - begin, itemgetter(slice(begin, end)))

    def pick(self, places: Sequence[int]) -> EventTable:
        """Return the table of the events at these ascending indices."""
        if len(places) == 1:
            return self.part(places[0], places[0] + 1)
        return self._mapped(len(places), itemgetter(*places))

    def _mapped(self, count: int, choose: Callable[[Any], Any]) -> EventTable:
        columns = {name: choose(column) for name, column in self.columns.items()}
        payloads = choose(self.payloads)
        if count > 1:
            found = EventTable.of_columns(columns, payloads)
            return EventTable(count, self.shared | found.shared, found.columns, found.payloads)
        alone = {name: column[0] for name, column in columns.items() if column[0] is not None}
        return EventTable(1, self.shared | alone, {}, _encode(payloads))


def columns_of(rows: Sequence[Attributes]) -> dict[str, Sequence[AttributeValue | None]]:
    """Return the values of each attribute that occurs in the rows, by attribute."""
    first = rows[0]
    if set(map(len, rows)) == {len(first)}:
        with suppress(KeyError):
            return {name: list(map(itemgetter(name), rows)) for name in first}
    names: dict[str, None] = {}
    for row in rows:
        names |= dict.fromkeys(row)
    return {name: [row.get(name) for row in rows] for name in names}


def _is_constant(column: Sequence[Any]) -> bool:
    """Return whether all values are equal, of one type and with the same bits, so that one value can represent all."""
    first = column[0]
    if first is None or (column[-1] != first and column[-1] is not first):
        return False
    if column.count(first) != len(column) or len(set(map(type, column))) > 1:
        return False
    return type(first) is not float or first != 0 or len({copysign(1, value) for value in column}) == 1


def _rows(shared: Attributes, columns: Mapping[str, Sequence[Any]]) -> list[Attributes]:
    """Return the attributes of each event."""
    rows = _made(shared, tuple(columns), tuple(columns.values()))
    if any(None in column for column in columns.values()):
        return [{name: value for name, value in row.items() if value is not None} for row in rows]
    return rows


def _made(shared: Attributes, names: tuple[str, ...], columns: tuple[Sequence[Any], ...]) -> list[Attributes]:
    """Return a dictionary for each event, including absent values. The usual lengths are unrolled, which is faster."""
    match names:
        case (a,):
            return [{**shared, a: v} for v in columns[0]]
        case (a, b):
            return [{**shared, a: v, b: w} for v, w in zip(*columns, strict=True)]
        case (a, b, c):
            return [{**shared, a: v, b: w, c: x} for v, w, x in zip(*columns, strict=True)]
        case (a, b, c, d):
            return [{**shared, a: v, b: w, c: x, d: y} for v, w, x, y in zip(*columns, strict=True)]
        case (a, b, c, d, e):
            return [{**shared, a: v, b: w, c: x, d: y, e: z} for v, w, x, y, z in zip(*columns, strict=True)]
    values = zip(*map(repeat, shared.values()), *columns)  # noqa: B905 - what is shared is repeated without end
    return list(map(dict, map(zip, repeat((*shared, *names)), values)))


class EventRun(msgspec.Struct, frozen=True, array_like=True, eq=False, gc=False):
    """Events of one publisher in the order of their numbers, with one timestamp.

    Events are created only when a program iterates over the run. Passing a run on creates none.
    """

    publisher: str
    first: int
    """The number of the first event."""
    table: EventTable
    stamp: int = 0
    numbers: list[int] = []
    """The numbers of the events, or an empty list if they are consecutive."""

    @classmethod
    def of(cls, events: Sequence[Event]) -> "EventRun":
        """Return a run of events that have the same publisher and timestamp."""
        first, last = events[0], events[-1]
        numbers = [] if last.seq - first.seq + 1 == len(events) else [event.seq for event in events]
        table = EventTable.of([event.attributes for event in events], [event.payload for event in events])
        return cls(first.publisher, first.seq, table, first.stamp, numbers)

    @classmethod
    def of_one(
        cls, publisher: str, seq: int, attributes: Attributes, payload: bytes = b"", stamp: int = 0
    ) -> "EventRun":
        """Return a run of one event."""
        return cls(publisher, seq, EventTable(1, {**attributes}, {}, _encode([payload])), stamp)

    def __post_init__(self) -> None:
        """Check that the numbers ascend."""
        if self.numbers and (
            len(self.numbers) != self.table.count
            or self.numbers[0] != self.first
            or any(map(int.__ge__, self.numbers, self.numbers[1:]))
        ):
            raise ValueError("the numbers in a run of events do not ascend")

    def __len__(self) -> int:
        return self.table.count

    def __iter__(self) -> Iterator[Event]:
        """Yield the events, each with its own dictionary of attributes."""
        table = self.table
        seqs: Any = self.numbers or range(self.first, self.first + table.count)
        return map(Event, repeat(self.publisher), seqs, table.rows(), table.payload_list(), repeat(self.stamp))

    def __eq__(self, other: object) -> bool:
        """Return whether both runs contain the same events. As for single events, timestamps are not compared."""
        if isinstance(other, EventRun):
            return (self.publisher, self.first, self.numbers, self.table) == (
                other.publisher, other.first, other.numbers, other.table,
            )  # fmt: skip
        return list(self) == other if isinstance(other, list) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    @property
    def last(self) -> int:
        """Return the number of the last event."""
        return self.numbers[-1] if self.numbers else self.first + self.table.count - 1

    @property
    def seqs(self) -> Sequence[int]:
        """Return the numbers of all events."""
        return self.numbers or range(self.first, self.first + self.table.count)

    def event(self, place: int) -> Event:
        """Return the event at an index."""
        [found] = self.part(place, place + 1)
        return found

    def stamped(self, timestamp: int) -> "EventRun":
        """Return a copy of the run with this timestamp."""
        return EventRun(self.publisher, self.first, self.table, timestamp, self.numbers)

    def part(self, begin: int, end: int) -> "EventRun":
        """Return a run of the events from index `begin` to `end`, which must not be empty."""
        if (begin, end) == (0, len(self)):
            return self
        numbers = self.numbers[begin:end]
        first = numbers[0] if numbers else self.first + begin
        return EventRun(self.publisher, first, self.table.part(begin, end), self.stamp, numbers)

    def pick(self, places: Sequence[int]) -> "EventRun":
        """Return a run of the events at these ascending indices, which must not be empty."""
        begin, end = places[0], places[-1] + 1
        if end - begin == len(places):
            return self.part(begin, end)
        return self.picked(places, self.table.decoded().pick(places))

    def picked(self, places: Sequence[int], table: EventTable) -> "EventRun":
        """Return a run of the events at these ascending indices, given their table."""
        seqs = self.seqs
        numbers = [seqs[place] for place in places]
        is_consecutive = numbers[-1] - numbers[0] + 1 == len(numbers)
        return EventRun(self.publisher, numbers[0], table, self.stamp, [] if is_consecutive else numbers)

    def after(self, seq: int) -> "EventRun | None":
        """Return a run of the events with larger numbers, or None if there are none."""
        if seq < self.first:
            return self
        if seq >= self.last:
            return None
        begin = sum(number <= seq for number in self.numbers) or seq + 1 - self.first
        return self.part(begin, len(self))

    def upto(self, seq: int) -> "EventRun | None":
        """Return a run of the events with numbers up to this one, or None if there are none."""
        if seq >= self.last:
            return self
        if seq < self.first:
            return None
        return self.part(0, sum(number <= seq for number in self.numbers) or seq + 1 - self.first)

    @property
    def size(self) -> int:
        """Return the approximate size in bytes."""
        return len(self.publisher) + self.table.size + 9 * len(self.numbers)
