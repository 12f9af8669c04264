"""Unconfirmed publications: their number and size, and the calls that wait for it to become less.

No more than a window of publications may be unconfirmed, and no more bytes and values than fit into one frame, because
the client sends all of them to the next broker in one message if this one is lost.
"""

import asyncio
from collections import deque
from typing import Any

from gapless.errors import GaplessError

__all__ = ["Unsafe", "fulfil", "refuse"]


def fulfil(future: "asyncio.Future[None]") -> None:
    """The call may continue."""
    if not future.done():
        future.set_result(None)


def refuse(future: "asyncio.Future[Any]", error: GaplessError) -> None:
    """The call fails."""
    if not future.done():
        future.set_exception(error)
        future.exception()  # looked at, so that nobody complains if its caller has given up


class Unsafe:
    """Publications between `publish` and the broker's word that they are safe."""

    def __init__(self, window: int, bytes_max: int, values_max: int) -> None:
        self.published = 0
        """The number of the last event."""
        self.confirmed = 0
        """Everything up to this number is safe."""
        self._window = window
        self._bytes_max = bytes_max
        self._bytes = 0
        self._values_max = values_max
        self._values = 0
        self._sizes: deque[tuple[int, int, int]] = deque()
        """The last number of each batch, its bytes, and its values."""
        self._confirmations: deque[tuple[int, asyncio.Future[None]]] = deque()
        self._room: dict[asyncio.Future[None], None] = {}

    @property
    def room(self) -> int:
        """How many more events may be published now."""
        if self._bytes >= self._bytes_max or self._values >= self._values_max:
            return 0
        return self._window - (self.published - self.confirmed)

    def note(self, size: int, values: int) -> None:
        """So many bytes and values were published, up to the last event."""
        self._sizes.append((self.published, size, values))
        self._bytes += size
        self._values += values

    async def wait_for_room(self) -> None:
        """Until one more may be published."""
        while self.room <= 0:
            room = asyncio.get_running_loop().create_future()
            self._room[room] = None
            try:
                await room
            finally:
                self._room.pop(room, None)

    async def wait_for(self, seq: int) -> None:
        """Wait until everything up to this number is confirmed."""
        if seq > self.confirmed:
            confirmed = asyncio.get_running_loop().create_future()
            self._confirmations.append((seq, confirmed))
            await confirmed

    def confirm(self, seq: int) -> None:
        """Note that everything up to this number is confirmed."""
        self.confirmed = seq
        while self._sizes and self._sizes[0][0] <= seq:
            _, size, values = self._sizes.popleft()
            self._bytes -= size
            self._values -= values
        waiting = self._confirmations
        while waiting and waiting[0][0] <= seq:
            fulfil(waiting.popleft()[1])
        for room in self._room:
            fulfil(room)

    def fail(self, error: GaplessError) -> None:
        """Nothing becomes safe any more."""
        for future in [*self._room, *(future for _, future in self._confirmations)]:
            refuse(future, error)
