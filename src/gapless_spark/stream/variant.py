"""Attributes as a VARIANT, in the binary form that Spark and Parquet share.

A variant is a value and its metadata, a dictionary of the names in it. An event's attributes are one flat object, so
only that form is written; events with the same names share their metadata.
"""

import struct
from functools import lru_cache

from gapless.events import Attributes, AttributeValue

__all__ = ["variant_of"]

_OBJECT = 2
_SHORT_STRING = 1
_SHORT_MAX = 63
_TRUE, _FALSE, _INT8, _DOUBLE, _STRING = (kind << 2 for kind in (1, 2, 6, 7, 16))
"""Headers of primitive values; all integers are written with 8 bytes."""
_pack_int = struct.Struct("<Bq").pack
_pack_float = struct.Struct("<Bd").pack
_pack_string = struct.Struct("<BI").pack
_VERSION = 1
_SORTED = 0x10


def variant_of(attributes: Attributes) -> tuple[bytes, bytes]:
    """Return the value and its metadata."""
    names = tuple(sorted(attributes, key=str.encode))
    values = [_value(attributes[name]) for name in names]
    size = _width(sum(map(len, values)))
    offsets, place = [], 0
    for value in values:
        offsets.append(place)
        place += len(value)
    listed = b"".join(offset.to_bytes(size, "little") for offset in (*offsets, place))
    return b"".join((_beginning(len(names), size), listed, *values)), _metadata(names)


def _value(value: AttributeValue) -> bytes:
    if isinstance(value, str):
        text = value.encode()
        if len(text) <= _SHORT_MAX:
            return bytes((len(text) << 2 | _SHORT_STRING,)) + text
        return _pack_string(_STRING, len(text)) + text
    if isinstance(value, bool):
        return bytes((_TRUE if value else _FALSE,))
    if isinstance(value, float):
        return _pack_float(_DOUBLE, value)
    return _pack_int(_INT8, value)


@lru_cache(maxsize=1_024)
def _beginning(count: int, offset_size: int) -> bytes:
    """Return the header of an object, its number of fields, and their dictionary indices, which are
    consecutive here."""
    id_size = _width(max(count - 1, 0))
    is_large = count > 255
    header = is_large << 6 | (id_size - 1) << 4 | (offset_size - 1) << 2 | _OBJECT
    ids = b"".join(place.to_bytes(id_size, "little") for place in range(count))
    return bytes((header,)) + count.to_bytes(4 if is_large else 1, "little") + ids


@lru_cache(maxsize=1_024)
def _metadata(names: tuple[str, ...]) -> bytes:
    """Return the metadata: the names, sorted."""
    texts = [name.encode() for name in names]
    size = _width(max(len(names), sum(map(len, texts))))
    offsets = [0]
    for text in texts:
        offsets.append(offsets[-1] + len(text))
    numbers = b"".join(number.to_bytes(size, "little") for number in (len(names), *offsets))
    return bytes(((size - 1) << 6 | _SORTED | _VERSION,)) + numbers + b"".join(texts)


def _width(number: int) -> int:
    """Return how many bytes the number needs."""
    return max(1, (number.bit_length() + 7) // 8)
