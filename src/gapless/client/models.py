"""pydantic's models as types of events, for programs that use them; pydantic is never imported for it.

A class can be a model only if its program has imported pydantic, so a look at the modules that are loaded is enough.
"""

import sys
from collections.abc import Mapping
from typing import Any, get_args

from gapless.errors import CallError

__all__ = ["Model", "is_model"]


def is_model(kind: object) -> bool:
    """Whether this is a class of pydantic's models."""
    pydantic = sys.modules.get("pydantic")
    return pydantic is not None and isinstance(kind, type) and issubclass(kind, pydantic.BaseModel)


class Model:
    """One of these classes. Which attributes fit its fields, pydantic says when it reads an event."""

    def __init__(self, kind: Any) -> None:
        self._kind = kind
        self.kinds: dict[str, tuple[Any, ...]] = {}
        """Of each attribute's name, what its field may hold."""
        for field_name, field in kind.model_fields.items():
            name = field.validation_alias or field.alias or field_name
            if not isinstance(name, str):
                raise CallError(
                    f"field {field_name!r} of {kind.__name__} has several aliases; an attribute has one name"
                )
            self.kinds[name] = (field.annotation, *get_args(field.annotation))

    def read(self, source: Mapping[str, Any]) -> Any:
        """The value; a `ValueError` that names the attribute, if one does not fit."""
        try:
            return self._kind.model_validate(source)
        except sys.modules["pydantic"].ValidationError as error:
            first = error.errors(include_url=False)[0]
            reason = str(first["msg"])
            raise ValueError(f"its attribute {first['loc'][0]!r}: {reason}" if first["loc"] else reason) from None
