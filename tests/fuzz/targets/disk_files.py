"""Files of a broker's disk, damaged anywhere: a reader gets data as it was written, or an error."""

from __future__ import annotations

import shutil
from random import Random

import msgspec

from gapless.errors import StorageError
from gapless.storage.inspection import check_directory
from gapless.storage.reader import FileReader
from tests.fuzz.changes import change_packed
from tests.fuzz.shapes import pack
from tests.fuzz.target import Target, Unexpected, scratch_folder
from tests.storage import torture

SEED, BATCHES = 2, 24
CUT = -1
"""Instead of the bytes of a change: truncate the file at this place."""

_Changes = list[tuple[int, int | bytes]]


class DiskFiles(Target):
    """Inputs are arrays of changes, each a place in the file and the bytes to write there. A number instead of bytes
    flips that bit; -1 truncates the file."""

    name = "disk-files"
    about = "the file in which a broker keeps its data"

    def __init__(self) -> None:
        self._folder = scratch_folder()
        self._hurt = self._folder / "hurt"
        torture.write(self._hurt, SEED, BATCHES)
        self._file = self._hurt / torture.DATABASE
        self._whole = self._file.read_bytes()

    def draw(self, dice: Random) -> bytes:
        return pack([self._change(dice) for _ in range(dice.choice((0, 1, 1, 1, 2, 5)))])

    def _change(self, dice: Random) -> list[int | bytes]:
        size = len(self._whole)
        place = dice.choice((dice.randrange(100), dice.randrange(4096), dice.randrange(size)))
        match dice.randrange(8):
            case 0:
                return [place, CUT]
            case 1:
                return [place - place % 4096, bytes(4096)]
            case 2:
                other = dice.randrange(size) // 4096 * 4096  # copy one page over another
                return [place - place % 4096, self._whole[other : other + 4096]]
            case 3:
                return [place, dice.randbytes(dice.choice((1, 2, 4, 20)))]
        return [place, dice.randrange(8)]

    def change(self, data: bytes, dice: Random) -> bytes:
        try:
            changes = msgspec.msgpack.decode(data, type=_Changes)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return self.draw(dice)
        if len(changes) < 10 and dice.random() < 0.7:
            place = dice.randrange(len(changes) + 1)
            return pack([*changes[:place], self._change(dice), *changes[place:]])
        return change_packed(data, dice)

    def run(self, data: bytes) -> str:
        try:
            changes = msgspec.msgpack.decode(data, type=_Changes)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return "no change"
        damaged = self._damaged(changes)
        for left in self._hurt.glob(f"{torture.DATABASE}-*"):
            left.unlink()
        self._file.write_bytes(damaged)
        found = self._read()
        if found and not self._is_known():
            raise Unexpected("a reader reports damage that a check does not find")
        return "damage is reported" if found else "whole"

    def _damaged(self, changes: _Changes) -> bytes:
        file = bytearray(self._whole)
        for place, new in changes:
            place %= len(self._whole)
            if isinstance(new, bytes):
                file[place : place + len(new)] = new[: max(0, len(file) - place)]
            elif new == CUT:
                del file[place:]
            elif place < len(file):
                file[place] ^= 1 << new % 8
        return bytes(file)

    def _read(self) -> int:
        try:
            reader = FileReader(self._file)
        except StorageError:
            return 1
        try:
            return torture.judge(reader, SEED, BATCHES)
        finally:
            reader.close()

    def _is_known(self) -> bool:
        try:
            return bool(check_directory(self._hurt).problems)
        except StorageError:
            return True

    def close(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)
