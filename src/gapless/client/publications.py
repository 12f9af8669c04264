"""Checks an application's publications, and converts them to calls of the protocol node.

All invalid input is rejected here: values that are not attributes, that cannot be encoded, or that are too large. So an
invalid event ends the call that published it, and affects nothing else.
"""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from operator import itemgetter
from typing import Any, ClassVar, Protocol, TypeAlias

import msgspec

from gapless.client.arguments import surrogate_in
from gapless.client.attribute_values import is_convertible, plain_attributes
from gapless.client.codecs import Codec, encoded
from gapless.client.hints import hint_at_name
from gapless.client.models import is_model
from gapless.errors import EventError
from gapless.event_runs import EventTable
from gapless.events import INTEGER_MAX, INTEGER_MIN, Attributes, Event
from gapless.protocol import Publish, PublishMany
from gapless.runtime.codec import ATTRIBUTE_BYTES

__all__ = ["Batch", "Checked", "EventLike", "Payload", "Publication", "check_all", "check_publication", "parts_of"]

Payload: TypeAlias = bytes | bytearray | memoryview | Any
"""A payload: bytes, or with a codec any value that it can encode."""


class _Dataclass(Protocol):
    __dataclass_fields__: ClassVar[dict[str, Any]]


class _Model(Protocol):
    __pydantic_fields__: ClassVar[dict[str, Any]]


EventLike: TypeAlias = Mapping[str, Any] | msgspec.Struct | _Dataclass | _Model
"""An event to be published: a mapping of attribute names to values, a struct, a dataclass or a pydantic model. In the
last three, None is omitted and a field of type bytes is the payload, as `gapless.client.reader` reads it.
`gapless.client.attribute_values` converts the values."""

Publication: TypeAlias = EventLike | tuple[EventLike, Payload]
"""An item of `publish_many`: an event's attributes, or a pair of attributes and payload."""

Checked: TypeAlias = tuple[Publish, int]
"""A checked publication: the call, and the size of the event in bytes."""

NAMES_MAX = 1_000
_names: dict[str, int] = {}
"""The sizes of attribute names that were checked before: most events have the names of the previous one."""


class Batch:
    """A sequence of checked publications."""

    def __init__(self) -> None:
        self.payloads: list[bytes] = []
        self.sizes: list[int] = []
        """The size of each publication in bytes."""
        self._rows: list[Attributes] = []
        self._columns: dict[str, Sequence[Any]] | None = None
        """The values of each attribute, if all publications were checked in one step."""

    @classmethod
    def of_columns(cls, columns: dict[str, Sequence[Any]], payloads: list[bytes], sizes: list[int]) -> "Batch":
        """Return a batch of events that were checked in one step."""
        batch = cls()
        batch.payloads, batch.sizes, batch._columns = payloads, sizes, columns
        return batch

    def __len__(self) -> int:
        return len(self.payloads)

    def add(self, checked: Checked) -> None:
        call, size = checked
        self._rows.append(call.attributes)
        self.payloads.append(call.payload)
        self.sizes.append(size)

    def fitting(self, begin: int, most: int, bytes_max: int) -> int:
        """Return the end index of the publications that fit into one message: at most `most`, and at most `bytes_max`
        bytes unless one alone is larger.
        """
        sizes = self.sizes[begin : begin + most]
        if sum(sizes) > bytes_max:
            return begin + 1 + sum([total < bytes_max for total in accumulate(sizes[:-1])])
        return begin + len(sizes)

    def call(self, begin: int, end: int) -> PublishMany:
        """Return the call that publishes the items from `begin` to `end`."""
        payloads = self.payloads[begin:end]
        if self._columns is None or end - begin == 1:
            rows = self._rows[begin:end] if self._columns is None else [self._row(begin)]
            return PublishMany(EventTable.of(rows, payloads))
        columns = {name: column[begin:end] for name, column in self._columns.items()}
        return PublishMany(EventTable.of_columns(columns, payloads))

    def _row(self, place: int) -> Attributes:
        assert self._columns is not None
        return {name: column[place] for name, column in self._columns.items()}


def check_all(items: Sequence[Publication], event_max: int) -> tuple[Batch, EventError | None]:
    """Return a batch of all publications before the first invalid one, and the error of that one."""
    together = _check_together(items, event_max)
    if together is not None:
        return together, None
    batch = Batch()
    for item in items:
        try:
            batch.add(check_publication(item, event_max))
        except EventError as error:
            return batch, error
    return batch, None


def _check_together(items: Sequence[Publication], event_max: int) -> Batch | None:
    """Return one batch of all items, or None if the items have different names or some item needs an
    individual check."""
    kinds = set(map(type, items))
    if kinds == {tuple} and set(map(len, items)) == {2}:  # type: ignore[arg-type]
        rows, payloads = map(list, zip(*items, strict=True))
    elif kinds == {dict}:
        rows, payloads = list(items), [b""] * len(items)
    else:
        return None
    if set(map(type, rows)) != {dict} or set(map(type, payloads)) != {bytes}:
        return None
    first: dict[Any, Any] = rows[0]
    if not first or set(map(len, rows)) != {len(first)}:
        return None
    try:
        columns: dict[str, Sequence[Any]] = {name: list(map(itemgetter(name), rows)) for name in first}
        base = ATTRIBUTE_BYTES * len(first) + sum((_names.get(name) or _size_of_name(name)) for name in first)
    except KeyError:
        return None
    sizes = list(map(len, payloads))
    for column in columns.values():
        types = set(map(type, column))
        if types == {str}:
            if column[0] == column[-1] and column.count(column[0]) == len(column) and column[0].isascii():
                base += len(column[0])
            elif "".join(column).isascii():
                sizes = list(map(int.__add__, sizes, map(len, column)))
            else:
                return None
        elif types == {int}:
            if min(column) < INTEGER_MIN or max(column) > INTEGER_MAX:
                return None
        elif not types <= {float, bool}:
            return None
    if base + max(sizes) > event_max:
        return None
    return Batch.of_columns(columns, payloads, [base + size for size in sizes])


def check_publication(item: Publication, event_max: int) -> Checked:
    """Return the call that publishes the item and the event's size. Raise an `EventError` if it is invalid."""
    attributes, payload = parts_of(item)
    size = len(payload) + ATTRIBUTE_BYTES * len(attributes)
    known = _names
    for name, value in attributes.items():
        size += (known.get(name) if type(name) is str else None) or _size_of_name(name)
        kind = type(value)
        if kind is str:
            size += len(value) if value.isascii() else _bytes_of(value, f"attribute {name!r}")
        elif kind is int:
            if not INTEGER_MIN <= value <= INTEGER_MAX:
                raise EventError(
                    f"attribute {name!r} is {value}, which does not fit into a signed 64-bit integer (-2**63 to "
                    "2**63 - 1); publish it as a string, or put it into the payload"
                )
        elif kind is not float and kind is not bool:
            return check_publication((plain_attributes(attributes), payload), event_max)
    if size > event_max:
        raise EventError(
            f"the event has {size:,} bytes, but {event_max:,} is the limit; make it smaller, or raise event_max "
            "in the network's file"
        )
    return Publish({**attributes}, payload), size


def _size_of_name(name: object) -> int:
    if type(name) is not str:
        raise EventError(f"the attribute name {name!r} is not a string")
    if not name:
        raise EventError("the name of an attribute is empty")
    size = len(name) if name.isascii() else _bytes_of(name, "the name of an attribute")
    if "-" in name:
        hint_at_name(name)
    if len(_names) < NAMES_MAX:
        _names[name] = size
    return size


def parts_of(item: Any, codec: Codec | None = None) -> tuple[Mapping[str, Any], bytes]:
    """Return the attributes and the payload of an item. The values are not checked yet."""
    attributes, payload = item, b""
    if isinstance(item, tuple):
        if len(item) != 2:
            raise EventError(
                f"an event is its attributes, or a pair of attributes and payload, but this has {len(item)} parts"
            )
        attributes, payload = item
    if type(payload) is not bytes:
        if isinstance(payload, bytes | bytearray | memoryview):
            payload = bytes(payload)
        elif codec is not None:
            payload = encoded(codec, payload)
        else:
            way_out = ', or connect with codec="json"' if isinstance(payload, str | dict | list) else ""
            raise EventError(f"a payload must be bytes, but this is {_article(payload)}; encode it first{way_out}")
    if type(attributes) is dict or isinstance(attributes, Mapping):
        return attributes, payload
    return _taken_apart(attributes, payload, codec)


def _taken_apart(value: Any, payload: bytes, codec: Codec | None) -> tuple[dict[str, Any], bytes]:
    """Return the attributes and the payload of a struct, dataclass or pydantic model."""
    attributes = {}
    for name, field in _fields(value):
        is_bytes = isinstance(field, bytes | bytearray | memoryview)
        if is_bytes or (codec is not None and is_body(field)):
            if payload:
                raise EventError(f"field {name!r} is a second payload; an event has only one")
            payload = bytes(field) if is_bytes or codec is None else encoded(codec, field)
        elif field is not None and not isinstance(field, Event):
            attributes[name] = field
    return attributes, payload


def is_body(value: object) -> bool:
    """Return whether the value cannot be an attribute, so that a codec must encode it as the payload."""
    return not isinstance(value, Event) and not is_convertible(value)


def _fields(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, msgspec.Struct) and not isinstance(value, Event):
        names = zip(value.__struct_fields__, value.__struct_encode_fields__, strict=True)
        return ((label, getattr(value, name)) for name, label in names)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return ((field.name, getattr(value, field.name)) for field in dataclasses.fields(value))
    if is_model(type(value)):
        return iter(value.model_dump(by_alias=True).items())
    raise EventError(
        f"an event's attributes must be a dictionary, such as {{'topic': 'price'}}, but this is {_article(value)}"
    )


def _bytes_of(text: str, what: str) -> int:
    half = surrogate_in(text)
    if half:
        raise EventError(
            f"{what} contains {half}, half of a surrogate pair, which cannot be sent; put bytes that are not text into "
            "the payload"
        )
    return len(text.encode())


def _article(value: object) -> str:
    name = type(value).__name__
    return "None" if value is None else f"{'an' if name[0] in 'aeio' else 'a'} {name}"
