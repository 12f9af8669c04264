"""Checksums: what was written is what is read, and it is read from where it was written.

SQLite finds damage in the frame of its pages, and knows none in what they hold. So each row carries a CRC of its blob
and of the columns that say what it is: a bit that turned over anywhere in it is found, and a row that stands in the
place of another one, too.
"""

import zlib

__all__ = ["checksum", "link", "piece"]


def checksum(blob: bytes, *columns: str | int) -> int:
    """Of a row: its blob, and the columns that name it."""
    return zlib.crc32(blob, zlib.crc32("\0".join(map(str, columns)).encode()))


def piece(origin: str, first: int, last: int, count: int, blob: bytes) -> int:
    """Of a row of history. There are many of these, so it is written for speed."""
    return zlib.crc32(blob, zlib.crc32(f"{origin}\0{first}\0{last}\0{count}".encode()))


def link(origin: str, first: int, last: int, previous: int) -> int:
    """Of the link between a row of history and the one before it, and of its range: known without its blob."""
    return zlib.crc32(f"{origin}\0{first}\0{last}\0{previous}".encode())
