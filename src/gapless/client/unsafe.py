"""Counts unconfirmed publications and their size, and makes calls wait until there is room for more.

The number of unconfirmed publications is at most a window, and their bytes and values fit into one frame. If the broker
is lost, the client sends all of them to the next one in one message.
"""

import asyncio
from collections import deque
from typing import Any

from gapless.errors import GaplessError

__all__ = ["Unsafe", "complete", "refuse"]


def complete(future: "asyncio.Future[None]") -> None:
    """Complete the future, unless its caller has stopped waiting."""
    if not future.done():
        future.set_result(None)


def refuse(future: "asyncio.Future[Any]", error: GaplessError) -> None:
    """Fail the future with the error, unless its caller has stopped waiting."""
    if not future.done():
        future.set_exception(error)
        future.exception()  # marks it as retrieved, so that asyncio does not log it


class Unsafe:
    """The publications of one client that are not confirmed yet."""

    def __init__(self, window: int, bytes_max: int, values_max: int) -> None:
        self.published = 0
        """The number of the last published event."""
        self.confirmed = 0
        """The number up to which all events are confirmed."""
        self._window = window
        self._bytes_max = bytes_max
        self._bytes = 0
        self._values_max = values_max
        self._values = 0
        self._sizes: deque[tuple[int, int, int]] = deque()
        """For each batch: the number of its last event, the total size in bytes, and the number of values."""
        self._confirmations: deque[tuple[int, asyncio.Future[None]]] = deque()
        self._room: dict[asyncio.Future[None], None] = {}

    @property
    def room(self) -> int:
        """Return how many more events can be published now."""
        if self._bytes >= self._bytes_max or self._values >= self._values_max:
            return 0
        return self._window - (self.published - self.confirmed)

    def note(self, size: int, values: int) -> None:
        """Add the bytes and values of a batch that ends with the last published event."""
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
        """Record that everything up to this number is confirmed, and wake the calls that wait for it."""
        self.confirmed = seq
        while self._sizes and self._sizes[0][0] <= seq:
            _, size, values = self._sizes.popleft()
            self._bytes -= size
            self._values -= values
        waiting = self._confirmations
        while waiting and waiting[0][0] <= seq:
            complete(waiting.popleft()[1])
        for room in self._room:
            complete(room)

    def fail(self, error: GaplessError) -> None:
        """Fail all waiting calls."""
        for future in [*self._room, *(future for _, future in self._confirmations)]:
            refuse(future, error)
