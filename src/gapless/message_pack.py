"""Counts the objects in an encoded message without decoding it.

The time to decode depends on the number of objects, not on the bytes: a frame of large payloads is
copied at once, and one of the same size full of small numbers takes a second. MessagePack is a
sequence of objects in which an array or a map is a header followed by its elements, so the objects
can be counted without creating any.
"""

from collections.abc import Callable
from struct import Struct, error

__all__ = ["has_more_entries", "length_of"]

_U16, _U32 = Struct(">H"), Struct(">I")

_WIDTH = [1] * 256
"""For each first byte, the size of the object, or of an array's or map's header. 0 stands for a following
length field."""
_WIDTH[0xA0:0xC0] = range(1, 33)
_WIDTH[0xC4:0xCA] = [0] * 6
_WIDTH[0xCA:0xD4] = [5, 9, 2, 3, 5, 9, 2, 3, 5, 9]
_WIDTH[0xD4:0xD9] = [3, 4, 6, 10, 18]
_WIDTH[0xD9:0xDC] = [0] * 3
_WIDTH[0xDC:0xE0] = [3, 5, 3, 5]


def _byte(body: memoryview, place: int) -> int:
    return body[place]


def _short(body: memoryview, place: int) -> int:
    return int(_U16.unpack_from(body, place)[0])


def _long(body: memoryview, place: int) -> int:
    return int(_U32.unpack_from(body, place)[0])


_LONG: dict[int, tuple[int, Callable[[memoryview, int], int]]] = {
    0xC4: (2, _byte), 0xC5: (3, _short), 0xC6: (5, _long),
    0xC7: (3, _byte), 0xC8: (4, _short), 0xC9: (6, _long),
    0xD9: (2, _byte), 0xDA: (3, _short), 0xDB: (5, _long),
}  # fmt: skip
"""For binary data, extensions and strings: the size of the header, and a function that reads the length."""


def has_more_entries(body: memoryview, most: int) -> bool:
    """Return whether the body contains more than `most` objects. Arrays, maps and each of their elements count."""
    width, place, end = _WIDTH, 0, len(body)
    try:
        for _ in range(most):
            if place >= end:
                return False
            kind = body[place]
            step = width[kind]
            if step:
                place += step
            else:
                head, read = _LONG[kind]
                place += head + read(body, place + 1)
    except (IndexError, error):
        return False  # the body is truncated, which the decoder reports
    return place < end


def length_of(body: memoryview) -> int:
    """Return the length of the array with which the body begins, or 0 if it does not begin with one."""
    first = body[0] if body else 0
    if 0x90 <= first <= 0x9F:
        return first - 0x90
    if first == 0xDC and len(body) >= 3:
        return _short(body, 1)
    return _long(body, 1) if first == 0xDD and len(body) >= 5 else 0
