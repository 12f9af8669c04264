"""Events, with their attributes and names."""

from datetime import UTC, datetime
from html import escape
from reprlib import Repr
from typing import Annotated, ClassVar, TypeAlias, TypeVar, overload

import msgspec

from gapless.positions import Position

__all__ = [
    "INTEGER_MAX", "INTEGER_MIN", "AttributeValue", "Attributes", "Event", "PublishedEvent",
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
"""The default value that marks an argument without a default."""
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
        """Return the beginning of the payload as text, or an empty string if there is none."""
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
        """The event's place in the stream of the network; `since=event.position` denotes everything after it."""
        if not self.stamp:
            raise ValueError(
                f"event {self.id} has no position: the protocol of its network keeps no history, or it was not "
                "delivered by a subscription"
            )
        return Position.after(self.stamp, self.publisher, self.seq)
