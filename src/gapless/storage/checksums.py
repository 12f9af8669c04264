"""Checksums: what was written is what is read, and it is read from where it was written.

SQLite finds damage in the frame of its pages, and knows none in what they hold. So each row carries a CRC of its blob
and of the columns that say what it is: a bit that turned over anywhere in it is found, and a row that stands in the
place of another one, too.
"""

import zlib

__all__ = ["checksum", "link", "piece", "span"]


def checksum(blob: bytes, *columns: str | int) -> int:
    """Of a row: its blob, and the columns that name it."""
    return zlib.crc32(blob, zlib.crc32("\0".join(map(str, columns)).encode()))


def span(origin: str, first: int, last: int) -> int:
    """Of the range of a row of history, with which `link` and `piece` begin. There are many rows: these are quick."""
    return zlib.crc32(b"\0%d\0%d" % (first, last), zlib.crc32(origin.encode()))


def link(ranged: int, previous: int) -> int:
    """Of a row of history without its blob: its range, and the last stamp of the row before it."""
    return zlib.crc32(b"\0%d" % previous, ranged)


def piece(ranged: int, count: int, blob: bytes) -> int:
    """Of a row of history: its range, its count and its blob."""
    return zlib.crc32(blob, zlib.crc32(b"\0%d" % count, ranged))
