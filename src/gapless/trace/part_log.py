"""Writes and reads the log that contains a client's part of a trace: it is written continuously, and valid up to its
first defect.

A file begins with `MAGIC`. Frames follow: the length of a record and its checksum (CRC-32), four
bytes each, little- endian, and the record in MessagePack. A killed client leaves at most an
incomplete frame at the end. A reader accepts every frame up to the first invalid one, so what it
reads was written in this order, without a hole.

Appended records wait in memory until `flush`, or until `BUFFER_MAX`.
"""

import zlib
from pathlib import Path
from struct import Struct

__all__ = ["BUFFER_MAX", "MAGIC", "LogWriter", "read_frames"]

MAGIC = b"gapless part 1\n"
BUFFER_MAX = 64 * 1024
"""Maximum number of waiting bytes, small enough to be written without a noticeable pause."""

_HEAD = Struct("<II")


class LogWriter:
    """Appends records to a new log."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("xb", buffering=0)
        self._waiting = bytearray(MAGIC)
        self.flush()

    def append(self, record: bytes) -> None:
        """Append a record."""
        self._waiting += _HEAD.pack(len(record), zlib.crc32(record))
        self._waiting += record
        if len(self._waiting) >= BUFFER_MAX:
            self.flush()

    def flush(self) -> None:
        """Pass waiting bytes to the operating system, so that they survive a crash of this process."""
        while self._waiting:
            del self._waiting[: self._file.write(self._waiting)]

    def close(self) -> None:
        """Flush and close the file."""
        try:
            self.flush()
        finally:
            self._file.close()


def read_frames(path: Path) -> list[bytes] | None:
    """Return the records of a log, up to the first invalid one. Return None if it is not a log or has no
    valid record.
    """
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
