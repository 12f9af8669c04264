"""Converts the events of a read to a table, for `to_arrow()` and `to_pandas()`.

| column | contents |
| --- | --- |
| `publisher`, `seq` | the name of the event |
| `published_at` | when a broker admitted it, in UTC; null in protocols without positions |
| one for each attribute | string, int64, double or boolean; integers with floats become doubles, other mixtures text |
| `payload` | bytes |

An attribute with the name of one of these columns gets the prefix `attributes.`. Missing attributes are null.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from gapless.errors import CallError
from gapless.events import AttributeValue, Event

__all__ = ["table_of"]

OURS = ("publisher", "seq", "published_at", "payload")


def table_of(events: Sequence[Event]) -> Any:
    """Return a `pyarrow.Table` of the events, in order."""
    try:
        import pyarrow as pa
    except ImportError:
        raise CallError("to_arrow() and to_pandas() need pyarrow: install gapless[cli]") from None
    names = dict.fromkeys(name for event in events for name in event.attributes)
    columns: dict[str, Any] = {
        "publisher": pa.array([event.publisher for event in events], pa.string()),
        "seq": pa.array([event.seq for event in events], pa.int64()),
        "published_at": pa.array([event.stamp or None for event in events], pa.timestamp("us", "UTC")),
    }
    for name in names:
        values = _uniform([event.attributes.get(name) for event in events])
        columns[f"attributes.{name}" if name in OURS else name] = pa.array(values)
    columns["payload"] = pa.array([event.payload for event in events], pa.binary())
    return pa.table(columns)


def _uniform(values: list[AttributeValue | None]) -> Iterable[AttributeValue | None]:
    kinds = {type(value) for value in values if value is not None}
    if len(kinds) < 2:
        return values
    if kinds == {int, float}:
        return [None if value is None else float(value) for value in values]
    return [value if value is None or isinstance(value, str) else _text(value) for value in values]


def _text(value: AttributeValue) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
