"""Arrow arrays of Python values, made without pandas.

`pyarrow.array` checks whether its argument comes from pandas, and imports pandas for that, which takes longer than a
task's work. These functions build arrays from joined strings and numpy numbers instead.
"""

from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Any

import numpy as np
import pyarrow as pa

__all__ = ["binaries", "maps", "numbers", "strings", "structs"]

_BEYOND = 2**31 - 1
"""The maximum number of bytes in one array of strings."""


def strings(values: Sequence[str | None], kind: pa.DataType) -> pa.Array:
    """Return an array of strings; None is null."""
    if None not in values:
        joined = "".join(values)  # type: ignore[arg-type]
        if joined.isascii():
            return _bytes(joined.encode(), map(len, values), len(values), kind)  # type: ignore[arg-type]
    return binaries([None if value is None else value.encode() for value in values], kind)


def binaries(values: Sequence[bytes | None], kind: pa.DataType) -> pa.Array:
    """Return an array of bytes, or of text that is encoded already; None is null."""
    valid, nulls = _validity(values)
    filled: Any = [b"" if value is None else value for value in values] if nulls else values
    return _bytes(b"".join(filled), map(len, filled), len(values), kind, valid, nulls)


def _bytes(
    joined: bytes, sizes: Iterable[int], count: int, kind: pa.DataType, valid: pa.Buffer | None = None, nulls: int = 0
) -> pa.Array:
    assert len(joined) <= _BEYOND, "callers create small batches"
    return pa.Array.from_buffers(kind, count, [valid, _offsets(sizes, count), pa.py_buffer(joined)], nulls)


def numbers(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Return an array of integers, floats or booleans; None is null."""
    valid, nulls = _validity(values)
    filled = [0 if value is None else value for value in values] if nulls else values
    if pa.types.is_boolean(kind):
        data = np.packbits(np.array(filled, np.bool_), bitorder="little")
    else:
        with np.errstate(over="ignore"):  # a value beyond the range of FLOAT becomes infinite
            data = np.array(filled, kind.to_pandas_dtype())
    return pa.Array.from_buffers(kind, len(values), [valid, pa.py_buffer(data)], nulls)


def structs(children: Sequence[pa.Array], kind: pa.StructType) -> pa.Array:
    """Return structs of the children, of which none is null."""
    return pa.Array.from_buffers(kind, len(children[0]), [None], 0, children=list(children))


def maps(sizes: Sequence[int], keys: pa.Array, items: pa.Array, kind: pa.MapType) -> pa.Array:
    """Return maps with the given numbers of keys."""
    entries = structs([keys, items], pa.struct([kind.key_field, kind.item_field]))
    return pa.Array.from_buffers(kind, len(sizes), [None, _offsets(sizes, len(sizes))], 0, children=[entries])


def _offsets(sizes: Iterable[int], count: int) -> pa.Buffer:
    return pa.py_buffer(np.fromiter(accumulate(sizes, initial=0), np.int32, count + 1))


def _validity(values: Sequence[Any]) -> tuple[pa.Buffer | None, int]:
    """Return the validity bitmap, and the number of nulls."""
    if None not in values:
        return None, 0
    there = np.array([value is not None for value in values])
    return pa.py_buffer(np.packbits(there, bitorder="little")), len(values) - int(there.sum())
