"""Events as values of a type: a msgspec struct or a dataclass.

Attributes go into fields of the same name; those without a field are left out. A field of type `bytes` takes the
payload, one of type `Event` the event itself. A field that no attribute could ever fill is a mistake of the program,
and said when the type is named; an event that does not fit is said when it is read, with the attribute.
"""

import re
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import inspect

from gapless.errors import CallError, MisfitError
from gapless.events import Event

__all__ = ["Reader"]

T = TypeVar("T")

FILLABLE = (
    inspect.AnyType, inspect.BoolType, inspect.DateTimeType, inspect.DateType, inspect.DecimalType, inspect.EnumType,
    inspect.FloatType, inspect.IntType, inspect.LiteralType, inspect.NoneType, inspect.StrType, inspect.TimeDeltaType,
    inspect.TimeType, inspect.UUIDType,
)  # fmt: skip
"""What can be made of a string, a number or a boolean."""

_MISSING = re.compile(r"Object missing required field `(.*)`")
_WRONG = re.compile(r"Expected `(.*)`, got `(.*)` - at `\$\.([^`]*)`")
_AT = re.compile(r"(.*) - at `\$\.([^`]*)`")


class Reader(Generic[T]):
    """Makes values of one type."""

    def __init__(self, kind: type[T]) -> None:
        self._kind = kind
        self._name = getattr(kind, "__name__", repr(kind))
        self._payload: list[str] = []
        self._event: list[str] = []
        for field in self._fields():
            self._place(field)

    def _fields(self) -> tuple[inspect.Field, ...]:
        try:
            info = inspect.type_info(self._kind)
        except Exception as error:  # annotations that cannot be resolved fail in many ways
            raise CallError(f"{self._name} cannot be used as a type of events: {error}") from None
        if not isinstance(info, inspect.StructType | inspect.DataclassType) or self._kind is Event:
            raise CallError(f"the type of events is a msgspec struct or a dataclass, which {self._name} is not")
        if isinstance(info, inspect.StructType) and info.array_like:
            raise CallError(f"{self._name} is array_like, but attributes have names; leave that out")
        return info.fields

    def _place(self, field: inspect.Field) -> None:
        if isinstance(field.type, inspect.BytesType):
            self._payload.append(field.encode_name)
        elif isinstance(field.type, inspect.StructType) and field.type.cls is Event:
            self._event.append(field.encode_name)
        elif not _is_fillable(field.type):
            raise CallError(
                f"field {field.name!r} of {self._name} fits no attribute; attributes are strings, integers, floats and "
                "booleans, a field of type bytes takes the payload, and one of type Event the whole event"
            )

    def read(self, event: Event) -> T:
        """The value, or a `MisfitError`."""
        source: dict[str, Any] = event.attributes
        if self._payload or self._event:
            source = {**source, **dict.fromkeys(self._payload, event.payload), **dict.fromkeys(self._event, event)}
        try:
            return msgspec.convert(source, self._kind)
        except msgspec.ValidationError as error:
            raise MisfitError(f"event {event.id} does not fit {self._name}: {_reason(str(error))}", event) from None


def _is_fillable(kind: inspect.Type) -> bool:
    if isinstance(kind, inspect.Metadata):
        return _is_fillable(kind.type)
    if isinstance(kind, inspect.UnionType):
        return all(map(_is_fillable, kind.types))
    return isinstance(kind, FILLABLE)


def _reason(told: str) -> str:
    if found := _MISSING.fullmatch(told):
        return f"it has no attribute {found[1]!r}"
    if found := _WRONG.fullmatch(told):
        return f"its attribute {found[3]!r} is {found[2]}, but should be {found[1]}"
    if found := _AT.fullmatch(told):
        return f"its attribute {found[2]!r}: {found[1]}"
    return told
