"""How much there is to decode in a body, without decoding it.

Decoding takes its time by the number of objects and not by the bytes: a frame of large payloads is copied in a moment,
and one of the same size full of small numbers takes a second. MessagePack is a sequence of objects in which an array or
a map is a header that its elements follow; so they can be counted one after the other, and nothing is made of them.
"""

from collections.abc import Callable
from struct import Struct, error

__all__ = ["has_more_entries", "length_of"]

_U16, _U32 = Struct(">H"), Struct(">I")

_WIDTH = [1] * 256
"""By first byte: the bytes of an object, or of the header of an array or map. 0: it says itself how long it is."""
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
"""Binary, extensions and strings: the bytes before what they hold, and how to read the length of that."""


def has_more_entries(body: memoryview, most: int) -> bool:
    """Whether there are more objects in it than that; arrays and maps count, and so does each element of them."""
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
        return False  # it ends in the middle of something, which the decoder will say
    return place < end


def length_of(body: memoryview) -> int:
    """How many elements the array has with which it begins; 0 if it does not begin with one."""
    first = body[0] if body else 0
    if 0x90 <= first <= 0x9F:
        return first - 0x90
    if first == 0xDC and len(body) >= 3:
        return _short(body, 1)
    return _long(body, 1) if first == 0xDD and len(body) >= 5 else 0
