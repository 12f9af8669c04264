"""Writes TOML files, as far as scenarios need it.

Fields with their default values are omitted. Plain values come first, then tables, then arrays of
tables, as TOML requires. Tables more than two deep, and those inside an array, become inline
tables.
"""

import json
import math
import re
from collections.abc import Mapping
from typing import Any

import msgspec

__all__ = ["toml_text"]

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


def toml_text(document: msgspec.Struct) -> str:
    """Return the document as the text of a TOML file."""
    return "\n".join(_table(_without_defaults(document), "")).strip() + "\n"


def _without_defaults(value: Any) -> Any:
    """Return structs as dictionaries without default values, recursively."""
    if isinstance(value, list | tuple):
        return [_without_defaults(item) for item in value]
    if not isinstance(value, msgspec.Struct):
        return value
    config = value.__struct_config__
    table = {config.tag_field: config.tag} if config.tag_field else {}
    for field in msgspec.structs.fields(value):
        item = getattr(value, field.name)
        default = field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()
        if item != default:
            table[field.encode_name] = _without_defaults(item)
    return table


def _table(table: Mapping[str, Any], path: str) -> list[str]:
    lines = []
    below = []
    for key, value in table.items():
        name = f"{path}{_key(key)}"
        if isinstance(value, Mapping) and path.count(".") < 2:
            below += ["", f"[{name}]", *_table(value, f"{name}.")]
        elif path == "" and isinstance(value, list | tuple) and value and isinstance(value[0], Mapping):
            for row in value:
                below += ["", f"[[{name}]]", *(f"{_key(k)} = {_value(v)}" for k, v in row.items())]
        else:
            lines.append(f"{_key(key)} = {_value(value)}")
    return lines + below


def _key(key: str) -> str:
    return key if _BARE_KEY.fullmatch(key) else _string(key)


def _value(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            return _float(value)
        case str():
            return _string(value)
        case Mapping():
            inside = ", ".join(f"{_key(key)} = {_value(item)}" for key, item in value.items())
            return f"{{ {inside} }}" if inside else "{}"
        case list() | tuple():
            return f"[{', '.join(_value(item) for item in value)}]"
    raise TypeError(f"TOML cannot represent a {type(value).__name__}")


def _float(value: float) -> str:
    if math.isnan(value) or math.isinf(value):
        return str(value)
    return repr(value)


def _string(text: str) -> str:
    """Return a basic string. JSON's escapes are valid in TOML, except for the delete character."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
