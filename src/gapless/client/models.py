"""Support for pydantic models as types of events, without importing pydantic.

A class can be a model only if its program has imported pydantic, so it is enough to look at the loaded modules.
"""

import sys
from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any, Literal, get_args, get_origin
from uuid import UUID

from gapless.errors import CallError

__all__ = ["PLAIN", "Model", "is_model"]

PLAIN = (str, int, float, bool, datetime, date, time, timedelta, Decimal, UUID, type(None), Any)
"""The types that a field can have to be filled from an attribute, besides enumerations."""


def is_model(kind: object) -> bool:
    """Return whether the type is a pydantic model class."""
    pydantic = sys.modules.get("pydantic")
    return pydantic is not None and isinstance(kind, type) and issubclass(kind, pydantic.BaseModel)


def _is_enumeration(kind: object) -> bool:
    return get_origin(kind) is Literal or (isinstance(kind, type) and issubclass(kind, Enum | str | int | float))


class Model:
    """A pydantic model as the type of a subscription's events. Pydantic validates the attributes of each event."""

    def __init__(self, kind: Any) -> None:
        self._kind = kind
        self.kinds: dict[str, tuple[Any, ...]] = {}
        """For each attribute name, the types that its field accepts."""
        for field_name, field in kind.model_fields.items():
            name = field.validation_alias or field.alias or field_name
            if not isinstance(name, str):
                raise CallError(
                    f"field {field_name!r} of {kind.__name__} has several aliases, but an attribute has one name"
                )
            kinds = (field.annotation, *get_args(field.annotation))
            self.kinds[name] = tuple(str if _is_enumeration(kind) else kind for kind in kinds)

    def read(self, source: Mapping[str, Any]) -> Any:
        """Return an instance of the model. Raise a `ValueError` that names an attribute that does not fit."""
        try:
            return self._kind.model_validate(source)
        except sys.modules["pydantic"].ValidationError as error:
            first = error.errors(include_url=False)[0]
            reason = str(first["msg"])
            raise ValueError(f"its attribute {first['loc'][0]!r}: {reason}" if first["loc"] else reason) from None
