"""Events: their attributes, their names, and runs of them."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cached_property
from html import escape
from itertools import chain, count, repeat
from math import copysign
from operator import itemgetter
from reprlib import Repr
from typing import Annotated, ClassVar, TypeAlias, TypeVar, overload

import msgspec

from gapless.positions import Position

__all__ = [
    "INTEGER_MAX", "INTEGER_MIN", "AttributeValue", "Attributes", "Event", "EventList", "EventRun", "Events",
    "PublishedEvent", "Stretch", "are_alike", "bounds_of", "size_apart",
]  # fmt: skip

INTEGER_MIN, INTEGER_MAX = -(2**63), 2**63 - 1
"""The bounds of an integer attribute: signed 64 bits, as in SQL, Arrow and Spark; MessagePack allows larger ones."""
Integer: TypeAlias = Annotated[int, msgspec.Meta(ge=INTEGER_MIN, le=INTEGER_MAX)]
AttributeValue: TypeAlias = str | Integer | float | bool
"""The values of attributes. Every decoder of messages, files or JSON checks the bounds, because they are part of the
type."""
Attributes: TypeAlias = dict[str, AttributeValue]

T = TypeVar("T")

_REQUIRED: object = object()
"""As a default: there is none."""
SHOWN_BYTES = 60
"""The number of payload bytes that `repr` and notebooks show."""
_short = Repr()
_short.maxstring, _short.maxdict = 80, 12


class PublishedEvent(msgspec.Struct, frozen=True, array_like=True, gc=False, eq=False):
    """A publication as its publisher knows it. `(publisher, seq)` identifies it; a publisher numbers its events 1, 2,
    3…

    It has no position: brokers assign one when they admit it, and the `Event` that a subscription delivers has it. It
    compares equal to that event.

    Events refer only to older objects and so are never part of a reference cycle; the garbage collector skips them.
    """

    _misfit: ClassVar[type[Exception]] = ValueError
    """The error for an attribute of the wrong type: `ConversionError`, set by `gapless.errors`, which imports this
    module."""

    publisher: str
    seq: int
    attributes: Attributes
    payload: bytes = b""

    def __eq__(self, other: object) -> bool:
        """Compare without the timestamp, so that a published event equals the delivered one."""
        if not isinstance(other, PublishedEvent):
            return NotImplemented
        return (self.publisher, self.seq, self.attributes, self.payload) == (
            other.publisher, other.seq, other.attributes, other.payload
        )  # fmt: skip

    def __hash__(self) -> int:
        return hash((self.publisher, self.seq))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id} {_short.repr(self.attributes)}{self._shown_payload(' ')}>"

    def _shown_payload(self, before: str) -> str:
        """Return the beginning of the payload; empty if there is none."""
        more = "…" if len(self.payload) > SHOWN_BYTES else ""
        return f"{before}{bytes(self.payload[:SHOWN_BYTES])!r}{more}" if self.payload else ""

    @property
    def id(self) -> str:
        """Return the publisher and the number, joined by a colon, as in traces."""
        return f"{self.publisher}:{self.seq}"

    @overload
    def text(self, name: str) -> str: ...
    @overload
    def text(self, name: str, default: T) -> str | T: ...
    def text(self, name: str, default: object = _REQUIRED) -> object:
        """Return a string attribute. Raises a `ConversionError` if it has another type.

        Parameters:
            name: the name of the attribute.
            default: the result if the event has no such attribute; without a default, that is an error, too.

        Example: `topic = event.text("topic", "none")`
        """
        return self._attribute(name, default, "text", str)

    @overload
    def integer(self, name: str) -> int: ...
    @overload
    def integer(self, name: str, default: T) -> int | T: ...
    def integer(self, name: str, default: object = _REQUIRED) -> object:
        """Return an integer attribute. Raises a `ConversionError` if it has another type.

        Parameters:
            name: the name of the attribute.
            default: the result if the event has no such attribute; without a default, that is an error, too.

        Example: `total += event.integer("amount")`
        """
        return self._attribute(name, default, "an integer", int)

    @overload
    def number(self, name: str) -> float: ...
    @overload
    def number(self, name: str, default: T) -> float | T: ...
    def number(self, name: str, default: object = _REQUIRED) -> object:
        """Return an attribute that is an integer or a float. Raises a `ConversionError` if it has another type.

        Parameters:
            name: the name of the attribute.
            default: the result if the event has no such attribute; without a default, that is an error, too.

        Example: `price = event.number("price")`
        """
        return self._attribute(name, default, "a number", int, float)

    @overload
    def boolean(self, name: str) -> bool: ...
    @overload
    def boolean(self, name: str, default: T) -> bool | T: ...
    def boolean(self, name: str, default: object = _REQUIRED) -> object:
        """Return a boolean attribute. Raises a `ConversionError` if it has another type.

        Parameters:
            name: the name of the attribute.
            default: the result if the event has no such attribute; without a default, that is an error, too.

        Example: `if event.boolean("sold", False): print(event)`
        """
        return self._attribute(name, default, "a boolean", bool)

    def _repr_html_(self) -> str:
        """Return a table for notebooks."""
        stamp = getattr(self, "stamp", 0)
        at = datetime.fromtimestamp(stamp / 1e6, UTC).isoformat(" ", "milliseconds") if stamp else ""
        rows = [("event", self.id), ("published at", at), *self.attributes.items()]
        if self.payload:
            rows.append((f"payload, {len(self.payload):,} bytes", self._shown_payload("")))
        cells = "".join(
            f"<tr><th style='text-align:left'>{escape(str(name))}</th>"
            f"<td style='text-align:left'>{escape(value if isinstance(value, str) else repr(value))}</td></tr>"
            for name, value in rows
            if value != ""
        )
        return f"<table>{cells}</table>"

    def _attribute(self, name: str, default: object, wanted: str, *kinds: type) -> object:
        if name not in self.attributes:
            if default is _REQUIRED:
                raise self._misfit(f"event {self.id} has no attribute {name!r}", self)
            return default
        value = self.attributes[name]
        if type(value) not in kinds:
            raise self._misfit(f"attribute {name!r} of event {self.id} is {_short.repr(value)}, not {wanted}", self)
        return value


class Event(PublishedEvent, frozen=True, array_like=True, gc=False, eq=False):
    """A publication as subscriptions deliver it."""

    stamp: int = 0
    """The timestamp in microseconds, assigned by the broker that admitted the event: larger than the timestamps of all
    its causes. 0 before that, and in protocols without positions."""

    @property
    def position(self) -> Position:
        """The event's place in the stream of the network: `since=event.position` means everything after it."""
        if not self.stamp:
            raise ValueError(
                f"event {self.id} has no position: the protocol of its network keeps no history, or it was not "
                "delivered by a subscription"
            )
        return Position.after(self.stamp, self.publisher, self.seq)


Stretch: TypeAlias = tuple[Attributes, int]
"""The shared attributes of consecutive events, and the index after the last of them."""


def bounds_of(alike: list[Stretch]) -> Iterator[tuple[Attributes, int, int]]:
    """Yield the attributes of each stretch, the index of its first event, and the index after its last."""
    begin = 0
    for attributes, end in alike:
        yield attributes, begin, end
        begin = end


class EventRun(msgspec.Struct, dict=True, eq=False):
    """Events that one client published together, with consecutive numbers and one timestamp.

    It is a sequence that creates its events on access, so that forwarding a run creates none. Like an event it is
    immutable. The shared parts of its events are sent once.
    """

    publisher: str
    first: int
    """The number of the first event."""
    payloads: list[bytes]
    alike: list[Stretch]
    """The attributes of the events."""
    stamp: int = 0

    def __post_init__(self) -> None:
        """Check that the stretches of attributes ascend and cover all payloads."""
        place = 0
        for _, end in self.alike:
            if end <= place:
                raise ValueError("the places in a run of events do not ascend")
            place = end
        if not place or place != len(self.payloads):
            raise ValueError(f"a run of events has {len(self.payloads):,} payloads, and attributes for {place:,}")

    def __len__(self) -> int:
        return len(self.payloads)

    def __iter__(self) -> Iterator[Event]:
        """Yield the events; those of a stretch share their attributes."""
        return self._events(self._attributes())

    def apart(self) -> Iterator[Event]:
        """Yield the events, each with its own copy of the attributes, for callers that may change them."""
        return self._events(map(dict.copy, self._attributes()))

    def _attributes(self) -> Iterator[Attributes]:
        if len(self.alike) == len(self.payloads):  # no two share attributes
            return map(itemgetter(0), self.alike)
        return chain.from_iterable(repeat(each, end - begin) for each, begin, end in bounds_of(self.alike))

    def _events(self, attributes: Iterator[Attributes]) -> Iterator[Event]:
        return map(Event, repeat(self.publisher), count(self.first), attributes, self.payloads, repeat(self.stamp))

    @overload
    def __getitem__(self, place: int) -> Event: ...

    @overload
    def __getitem__(self, place: slice) -> "Events": ...

    def __getitem__(self, place: int | slice) -> "Event | Events":
        """Return one event, or a slice."""
        if isinstance(place, slice):
            begin, end, _ = place.indices(len(self.payloads))
            return self._part(begin, end)
        payload = self.payloads[place]
        at = place + len(self.payloads) if place < 0 else place
        stretch = 0 if len(self.alike) == 1 else bisect_right(self.alike, at, key=itemgetter(1))
        return Event(self.publisher, self.first + at, self.alike[stretch][0], payload, self.stamp)

    def _part(self, begin: int, end: int) -> "Events":
        if begin >= end:
            return []
        some = self.alike[bisect_right(self.alike, begin, key=itemgetter(1)) :]
        some = some[: 1 + bisect_left(some, end, key=itemgetter(1))]
        alike = [(attributes, min(stop, end) - begin) for attributes, stop in some]
        return EventRun(self.publisher, self.first + begin, self.payloads[begin:end], alike, self.stamp)

    def __eq__(self, other: object) -> bool:
        return list(self) == list(other) if isinstance(other, EventRun | list) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    @property
    def last(self) -> int:
        """The number of the last event."""
        return self.first + len(self.payloads) - 1

    @cached_property
    def encoded(self) -> bytes:
        """The bytes on the wire, cached because the run is sent to many peers and to a disk."""
        return _encode(self)


class EventList(list[Event]):
    """Events that are not a run. The list is immutable, and its encoding is cached because it is sent to many peers."""

    @cached_property
    def encoded(self) -> bytes:
        """The bytes on the wire."""
        return _encode(self)


Events: TypeAlias = list[Event] | EventRun
"""Events in order."""
NUMBERS_BYTES = 20
"""The size of an event on the wire, without its publisher, attributes and payload."""
_encode = msgspec.msgpack.Encoder().encode


def are_alike(some: Attributes, others: Attributes) -> bool:
    """Return whether two sets of attributes are identical: the same names, and values with the same type and bits.

    Equality is not enough: 1, 1.0 and true are equal, and so are 0.0 and -0.0. A NaN equals only itself as an object;
    another NaN counts as different, which costs bytes and nothing else.
    """
    return some == others and all(_is_same(value, others[name]) for name, value in some.items())


def _is_same(value: AttributeValue, other: AttributeValue) -> bool:
    """Return whether two equal values have the same type and sign."""
    if type(value) is not type(other):
        return False
    return bool(value) or type(value) is not float or copysign(1.0, value) == copysign(1.0, other)  # type: ignore[arg-type]


def size_apart(events: Events, encoded: bytes) -> int:
    """Return the size of the events if each is sent alone, given their size on the wire."""
    if not isinstance(events, EventRun):
        return len(encoded)
    shared = 0
    if len(events.alike) < len(events):
        repeated = [(each, end - begin - 1) for each, begin, end in bounds_of(events.alike) if end - begin > 1]
        shared = sum(times * len(_encode(each)) for each, times in repeated)
    return len(encoded) + shared + (len(events) - 1) * (len(events.publisher.encode()) + NUMBERS_BYTES)
