"""Checks that a client is used only in the event loop in which it was connected.

Its connections, timers and futures belong to that loop. In another one they would wait forever, or fail with an error
of asyncio that names neither the client nor the mistake.
"""

import asyncio

from gapless.errors import CallError

__all__ = ["OwnLoop"]


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


class OwnLoop:
    """Remembers the event loop that was running when the object was created."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._loop = asyncio.get_running_loop()

    def check(self) -> None:
        """Raise a `CallError` in any other event loop, and outside all event loops."""
        running = _running_loop()
        if running is not self._loop:
            state = (
                "has ended" if self._loop.is_closed() else "is another event loop" if running else "is not running here"
            )
            raise CallError(
                f"{self._what} belongs to the event loop in which it was connected, which {state}: connect "
                "in the current loop (each asyncio.run() has a loop of its own), or use gapless.sync, "
                "whose clients need none"
            )
