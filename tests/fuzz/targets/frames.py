"""Bytes to frames, in pieces of any size: frames are decoded exactly, and none after an invalid one."""

from __future__ import annotations

from random import Random

from gapless.runtime.frames import FrameStream
from tests.fuzz.changes import changed_bytes
from tests.fuzz.target import Target, Unexpected
from tests.fuzz.transport import Transport

FRAME_MAX = 2_000


class _Stream(FrameStream):
    def __init__(self) -> None:
        super().__init__(FRAME_MAX, 1 << 16)
        self.frames: list[tuple[int, bytes]] = []
        self.refused: int | None = None

    def frame_received(self, kind: int, body: memoryview) -> None:
        self.frames.append((kind, bytes(body)))

    def frame_refused(self, length: int) -> None:
        self.refused = length
        self.close()


class Frames(Target):
    """The first byte of an input determines the size of the pieces in which the other bytes arrive."""

    name = "frames"
    about = "bytes to frames"

    def draw(self, dice: Random) -> bytes:
        frames = []
        for _ in range(dice.choice((0, 1, 2, 5))):
            body = bytes(dice.choice((0, 1, 5, 300, FRAME_MAX - 1, FRAME_MAX)))
            length = dice.choice((len(body) + 1, len(body) + 1, len(body) + 1, 0, len(body), 2**32 - 1))
            frames.append(length.to_bytes(4, "big") + bytes((dice.randrange(256),)) + body)
        return bytes((dice.randrange(256),)) + b"".join(frames)

    def change(self, data: bytes, dice: Random) -> bytes:
        return changed_bytes(data, dice)

    def run(self, data: bytes) -> str:
        size, data = (data[0] % 64) ** 2 + 1 if data else 1, data[1:]
        stream = _Stream()
        stream.connection_made(Transport())
        for start in range(0, len(data), size):
            rest = data[start : start + size]
            while rest and stream.is_open:
                room = stream.get_buffer(-1)
                count = min(len(room), len(rest))
                room[:count] = rest[:count]
                rest = rest[count:]
                stream.buffer_updated(count)
        frames, refused = _frames_of(data)
        if (stream.frames, stream.refused) != (frames, refused):
            raise Unexpected(f"{len(stream.frames)} frames and {stream.refused}, not {len(frames)} and {refused}")
        return "whole" if refused is None else "refused"


def _frames_of(data: bytes) -> tuple[list[tuple[int, bytes]], int | None]:
    frames: list[tuple[int, bytes]] = []
    while len(data) >= 4:
        length = int.from_bytes(data[:4], "big")
        if not 1 <= length <= FRAME_MAX:
            return frames, length
        if len(data) < 4 + length:
            break
        frames.append((data[4], data[5 : 4 + length]))
        data = data[4 + length :]
    return frames, None
