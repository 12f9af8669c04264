"""Writes TOML: as much of it as a scenario needs.

Plain values first, then tables, then arrays of tables, as TOML wants it. An array of tables below the top, and a
table inside an array, become inline tables.
"""

import json
import math
import re
from collections.abc import Mapping
from typing import Any

__all__ = ["toml_text"]

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


def toml_text(document: Mapping[str, Any]) -> str:
    """The document as TOML; None is left out."""
    return "\n".join(_table(document, "")).strip() + "\n"


def _table(table: Mapping[str, Any], path: str) -> list[str]:
    lines = []
    below = []
    for key, value in table.items():
        name = f"{path}{_key(key)}"
        if isinstance(value, Mapping) and not _is_leaf(path, key):
            below += ["", f"[{name}]", *_table(value, f"{name}.")]
        elif path == "" and isinstance(value, list | tuple) and value and isinstance(value[0], Mapping):
            for row in value:
                below += ["", f"[[{name}]]", *(f"{_key(k)} = {_value(v)}" for k, v in row.items() if v is not None)]
        elif value is not None:
            lines.append(f"{_key(key)} = {_value(value)}")
    return lines + below


def _is_leaf(path: str, key: str) -> bool:
    """Tables that read better inline: those three deep."""
    return path.count(".") >= 2


def _key(key: str) -> str:
    return key if _BARE_KEY.fullmatch(key) else json.dumps(key, ensure_ascii=False)


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
            inside = ", ".join(f"{_key(key)} = {_value(item)}" for key, item in value.items() if item is not None)
            return f"{{ {inside} }}" if inside else "{}"
        case list() | tuple():
            return f"[{', '.join(_value(item) for item in value)}]"
    raise TypeError(f"TOML has no {type(value).__name__}")


def _float(value: float) -> str:
    if math.isnan(value) or math.isinf(value):
        return str(value)
    return repr(value)


def _string(text: str) -> str:
    """A basic string: JSON's escapes are TOML's, but for the delete character."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
