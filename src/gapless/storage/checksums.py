"""Computes checksums of rows, which detect damage inside SQLite's pages and rows in the wrong place.

SQLite detects damage in the structure of its pages, but not in their content. Therefore each row
carries a CRC of its blob and of its identifying columns. It detects a flipped bit anywhere in the
row, and a row that replaced another one.
"""

import zlib

__all__ = ["checksum", "link", "piece", "span"]


def checksum(blob: bytes, *columns: str | int) -> int:
    """Return the checksum of a row's blob and of the columns that identify it."""
    return zlib.crc32(blob, zlib.crc32("\0".join(map(str, columns)).encode()))


def span(origin: str, first: int, last: int) -> int:
    """Return the checksum of a history row's range, with which `link` and `piece` begin."""
    return zlib.crc32(b"\0%d\0%d" % (first, last), zlib.crc32(origin.encode()))


def link(ranged: int, previous: int) -> int:
    """Return the checksum of a history row without the blob: its range, and the last timestamp of the previous row."""
    return zlib.crc32(b"\0%d" % previous, ranged)


def piece(ranged: int, count: int, blob: bytes) -> int:
    """Return the checksum of a history row: its range, count and blob."""
    return zlib.crc32(blob, zlib.crc32(b"\0%d" % count, ranged))
