"""Checksums: what was written is what is read, and it is read from where it was written.

SQLite finds damage in the frame of its pages, and knows none in what they hold. So each row carries a CRC of its blob
and of the columns that say what it is: a bit that turned over anywhere in it is found, and a row that stands in the
place of another one, too.
"""

import zlib

__all__ = ["checksum", "link"]


def checksum(blob: bytes, *columns: str | int) -> int:
    """Of a row: its blob, and the columns that name it."""
    return zlib.crc32(blob, zlib.crc32("\0".join(map(str, columns)).encode()))


def link(origin: str, last: int, previous: int) -> int:
    """Of the link between a row of history and the one before it."""
    return checksum(b"", origin, last, previous)
