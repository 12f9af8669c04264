"""A client's part of a trace on disk: a log that is written as things happen, and counts up to where it breaks off.

A file begins with `MAGIC`. Then come frames: the length of a record and its checksum (CRC-32), four bytes each, the
lower byte first, and the record, as MessagePack. A client that is killed leaves at most half a frame at the end. A
reader takes every frame up to the first that is not whole, and nothing after it: what it takes was written in this
order, without a hole.

What is appended waits in memory until somebody says `flush`, or until there is much of it.
"""

import zlib
from pathlib import Path
from struct import Struct

__all__ = ["BUFFER_MAX", "MAGIC", "LogWriter", "read_frames"]

MAGIC = b"gapless part 1\n"
BUFFER_MAX = 64 * 1024
"""Bytes that wait at most: so few that to write them takes no noticeable time."""

_HEAD = Struct("<II")


class LogWriter:
    """Appends frames to a new file."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("xb", buffering=0)
        self._waiting = bytearray(MAGIC)
        self.flush()

    def append(self, record: bytes) -> None:
        """Add a record."""
        self._waiting += _HEAD.pack(len(record), zlib.crc32(record))
        self._waiting += record
        if len(self._waiting) >= BUFFER_MAX:
            self.flush()

    def flush(self) -> None:
        """Give what waits to the operating system: from here on it outlives this process."""
        while self._waiting:
            del self._waiting[: self._file.write(self._waiting)]

    def close(self) -> None:
        """Flush, and close the file."""
        try:
            self.flush()
        finally:
            self._file.close()


def read_frames(path: Path) -> list[bytes] | None:
    """The records of a log, up to the first that is not whole; `None` if it is no such log, or breaks off at once."""
    content = path.read_bytes()
    if not content.startswith(MAGIC):
        return None
    frames = []
    place = len(MAGIC)
    while place + _HEAD.size <= len(content):
        length, checksum = _HEAD.unpack_from(content, place)
        start, place = place + _HEAD.size, place + _HEAD.size + length
        record = content[start:place]
        if len(record) < length or zlib.crc32(record) != checksum:
            break
        frames.append(record)
    return frames
