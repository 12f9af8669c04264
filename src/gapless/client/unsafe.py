"""Unconfirmed publications: their number and size, and the calls that wait for room.

At most a window of publications can be unconfirmed, with as many bytes and values as fit into one frame, because the
client sends all of them in one message to the next broker if this one is lost.
"""

import asyncio
from collections import deque
from typing import Any

from gapless.errors import GaplessError

__all__ = ["Unsafe", "fulfil", "refuse"]


def fulfil(future: "asyncio.Future[None]") -> None:
    """Let the call continue."""
    if not future.done():
        future.set_result(None)


def refuse(future: "asyncio.Future[Any]", error: GaplessError) -> None:
    """Fail the call."""
    if not future.done():
        future.set_exception(error)
        future.exception()  # retrieved, so that asyncio does not log it if the caller has given up


class Unsafe:
    """Publications between `publish` and their confirmation."""

    def __init__(self, window: int, bytes_max: int, values_max: int) -> None:
        self.published = 0
        """The number of the last event."""
        self.confirmed = 0
        """The number up to which everything is confirmed."""
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
        """Return how many more events can be published now."""
        if self._bytes >= self._bytes_max or self._values >= self._values_max:
            return 0
        return self._window - (self.published - self.confirmed)

    def note(self, size: int, values: int) -> None:
        """Count published bytes and values, up to the last event."""
        self._sizes.append((self.published, size, values))
        self._bytes += size
        self._values += values

    async def wait_for_room(self) -> None:
        """Wait until one more event can be published."""
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
        """Fail all waiting calls."""
        for future in [*self._room, *(future for _, future in self._confirmations)]:
            refuse(future, error)
