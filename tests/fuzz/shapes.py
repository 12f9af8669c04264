"""Random values of a message's type, from the type information of `msgspec`."""

from __future__ import annotations

from random import Random
from typing import Any

import msgspec
from msgspec import inspect

__all__ = ["Shapes"]

_WORDS = ("b0", "b1", "b0/0", "b1/0", "ann", "bob", "ann/s1", "ann/s2", "bob/s1", "ann/a1", "bob/a1", "x", "price", "")
_FILTERS = ("TRUE", "price < 10", "x = 1 OR x = 2", "price <", "x LIKE '%a%'", '"order-id" = 1', "x + price > 3")
_NUMBERS = (0, 1, 1, 1, 2, 2, 2, 3, 4, 5, 100, 2**53, 2**63, 2**64 - 1, -1)


class Shapes:
    """Draws values of one or several message types."""

    def __init__(self, *types: type[Any]) -> None:
        self._types = [inspect.type_info(kind) for kind in types]

    def draw(self, dice: Random) -> Any:
        return self._value(dice.choice(self._types), dice, 0)

    def _value(self, kind: Any, dice: Random, depth: int) -> Any:
        match kind:
            case inspect.StructType():
                values = [self._field(field, dice, depth) for field in kind.fields]
                if not kind.array_like:
                    return dict(zip([field.encode_name for field in kind.fields], values, strict=True))
                return values if kind.tag is None else [kind.tag, *values]
            case inspect.UnionType():
                return self._value(dice.choice(kind.types), dice, depth)
            case inspect.ListType():
                return [self._value(kind.item_type, dice, depth + 1) for _ in range(self._length(dice, depth))]
            case inspect.TupleType():
                return [self._value(item, dice, depth + 1) for item in kind.item_types]
            case inspect.DictType():
                length = self._length(dice, depth)
                return {
                    self._value(kind.key_type, dice, depth + 1): self._value(kind.value_type, dice, depth + 1)
                    for _ in range(length)
                }
            case inspect.StrType():
                return dice.choice(_WORDS)
            case inspect.IntType():
                return dice.choice(_NUMBERS)
            case inspect.FloatType():
                return dice.choice((0.0, 1.5, -1e300, float("nan")))
            case inspect.BoolType():
                return dice.random() < 0.5
            case inspect.BytesType():
                return dice.choice((b"", bytes(50), pack([b""]), pack([1, None]), pack(["a"])))
            case inspect.NoneType():
                return None
        return None

    def _field(self, field: inspect.Field, dice: Random, depth: int) -> Any:
        if field.name == "filter":
            return dice.choice(_FILTERS)
        return self._value(field.type, dice, depth + 1)

    @staticmethod
    def _length(dice: Random, depth: int) -> int:
        return 0 if depth > 6 else dice.choice((0, 0, 1, 1, 2, 3))


def pack(value: Any) -> bytes:
    return msgspec.msgpack.encode(value)
