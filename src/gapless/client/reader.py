"""Converts delivered events to instances of a type: a msgspec struct, a dataclass or a pydantic model.

Attributes fill fields of the same name; those without a field are ignored. A field of type `bytes` gets the payload,
one of type `Event` the event itself; one of type `DurableEvent`, in a durable subscription, the event that can be
acknowledged. With a codec, the one field that is none of these and cannot be an attribute (a list, for example) gets
the decoded payload. A field that no attribute can fill is reported when the type is given (for a pydantic model, when
an event is read). An event that does not fit is reported when it is read, with the attribute.
"""

import re
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import inspect

from gapless.client.codecs import Codec
from gapless.client.models import PLAIN, Model, is_model
from gapless.errors import CallError, ConversionError
from gapless.events import Event

__all__ = ["Reader"]

T = TypeVar("T")

FILLABLE = (
    inspect.AnyType, inspect.BoolType, inspect.DateTimeType, inspect.DateType, inspect.DecimalType, inspect.EnumType,
    inspect.FloatType, inspect.IntType, inspect.LiteralType, inspect.NoneType, inspect.StrType, inspect.TimeDeltaType,
    inspect.TimeType, inspect.UUIDType,
)  # fmt: skip
"""The field types to which a string, a number or a boolean can be converted."""

_MISSING = re.compile(r"Object missing required field `(.*)`")
_WRONG = re.compile(r"Expected `(.*)`, got `(.*)` - at `\$\.([^`]*)`")
_AT = re.compile(r"(.*) - at `\$\.([^`]*)`")


class Reader(Generic[T]):
    """Converts events to instances of one type."""

    def __init__(self, kind: type[T], durable: type[Event] | None = None, codec: Codec | None = None) -> None:
        """Check that the fields of type `kind` can be filled. `durable` is the class of events that can be
        acknowledged, or None. With a codec, the one field that cannot be an attribute gets the decoded payload.
        """
        self._codec = codec
        self._body: list[str] = []
        self._kind = kind
        self._name = getattr(kind, "__name__", repr(kind))
        self._durable = durable
        self._payload: list[str] = []
        self._event: list[str] = []
        self._wrapped: list[str] = []
        self._model = Model(kind) if is_model(kind) else None
        if self._model is not None:
            for name, kinds in self._model.kinds.items():
                is_whole = any(self._takes_all(name, each) for each in kinds)
                if codec is not None and not is_whole and not any(each in PLAIN for each in kinds):
                    self._body.append(name)
        else:
            for field in self._fields():
                self._place(field)

    def _fields(self) -> tuple[inspect.Field, ...]:
        try:
            info = inspect.type_info(self._kind)
        except Exception as error:  # unresolvable annotations raise errors of many types
            raise CallError(f"{self._name} cannot be the type of events: {error}") from None
        if not isinstance(info, inspect.StructType | inspect.DataclassType) or self._kind is Event:
            raise CallError(
                "the type of events must be a msgspec struct, a dataclass or a pydantic model, which "
                f"{self._name} is not"
            )
        if isinstance(info, inspect.StructType) and info.array_like:
            raise CallError(
                f"{self._name} is an array_like struct, which cannot be the type of events; remove array_like"
            )
        return info.fields

    def _place(self, field: inspect.Field) -> None:
        kind = field.type
        whole = bytes if isinstance(kind, inspect.BytesType) else getattr(kind, "cls", None)
        if self._takes_all(field.encode_name, whole) or _is_fillable(kind):
            return
        if self._codec is not None and not self._body:
            self._body.append(field.encode_name)
        elif self._body:
            raise CallError(
                f"fields {self._body[0]!r} and {field.name!r} of {self._name} fit no attribute, and an "
                "event has only one payload; put one field into the other"
            )
        else:
            raise CallError(
                f"field {field.name!r} of {self._name} fits no attribute; attributes are strings, integers, floats and "
                "booleans, a field of type bytes gets the payload, and one of type Event the whole event"
            )

    def _takes_all(self, name: str, kind: object) -> bool:
        """Return whether a field of this type receives the payload or the whole event instead of an attribute."""
        if kind is bytes:
            self._payload.append(name)
        elif kind is Event:
            self._event.append(name)
        elif isinstance(kind, type) and issubclass(kind, Event):
            if kind is not self._durable:
                there = "Event" if self._durable is None else f"{_shown(self._durable)}, or Event"
                raise CallError(
                    f"field {name!r} of {self._name} is a {_shown(kind)}, which this subscription does not "
                    f"deliver; write {there}. Only durable subscriptions have events that can be acknowledged"
                )
            self._wrapped.append(name)
        else:
            return False
        return True

    def read(self, event: Event, wrap: Callable[[Event], Event] | None = None) -> T:
        """Return an instance of the type, or raise a `ConversionError`. `wrap` converts the event into one that can be
        acknowledged.
        """
        source: dict[str, Any] = event.attributes
        if self._body:
            source = {**source, **dict.fromkeys(self._body, decoded(event, self._codec))}
        if self._payload or self._event or self._wrapped:
            source = {**source, **dict.fromkeys(self._payload, event.payload), **dict.fromkeys(self._event, event)}
            if self._wrapped:
                assert wrap is not None, "only durable subscriptions have such fields"
                source.update(dict.fromkeys(self._wrapped, wrap(event)))
        try:
            if self._model is not None:
                read: T = self._model.read(source)
                return read
            return msgspec.convert(source, self._kind)
        except ValueError as error:  # msgspec's errors are ValueErrors, too
            raise ConversionError(f"event {event.id} does not fit {self._name}: {_reason(str(error))}", event) from None


def decoded(event: Event, codec: Codec | None, type: type[Any] | None = None) -> Any:
    """Return the payload of an event, decoded by the codec and converted to the type."""
    if codec is None:
        raise CallError('this client has no codec for payloads; connect with codec="json" or another codec')
    try:
        found = codec.decode(event.payload)
        return found if type is None else msgspec.convert(found, type)
    except Exception as error:  # codecs raise errors of many types
        raise ConversionError(f"the payload of event {event.id} cannot be decoded: {error}", event) from None


def _shown(kind: type) -> str:
    return f"{'gapless.sync' if 'sync' in kind.__module__ else 'gapless'}.{kind.__name__}"


def _is_fillable(kind: inspect.Type) -> bool:
    if isinstance(kind, inspect.Metadata):
        return _is_fillable(kind.type)
    if isinstance(kind, inspect.UnionType):
        return all(map(_is_fillable, kind.types))
    return isinstance(kind, FILLABLE)


def _reason(complaint: str) -> str:
    if found := _MISSING.fullmatch(complaint):
        return f"it has no attribute {found[1]!r}"
    if found := _WRONG.fullmatch(complaint):
        return f"its attribute {found[3]!r} is {found[2]}, but should be {found[1]}"
    if found := _AT.fullmatch(complaint):
        return f"its attribute {found[2]!r}: {found[1]}"
    return complaint
