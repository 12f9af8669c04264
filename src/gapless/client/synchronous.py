"""The base class of `gapless.sync`. Each object wraps an object of the asynchronous client and the thread that runs its
event loop.

Their methods are generated from the asynchronous ones (`scripts/generate_sync_client.py`): each runs the asynchronous
method in that thread and waits for its result.
"""

from typing import Any

from gapless.client.loop_thread import LoopThread

__all__ = ["Synchronous"]


class Synchronous:
    """Base class of synchronous objects, whose calls wait for their results."""

    def __init__(self, loop: LoopThread, inner: Any) -> None:
        self._loop = loop
        self._inner = inner

    def __repr__(self) -> str:
        return repr(self._inner)

    def _next(self) -> Any:
        try:
            return self._loop.run(self._inner.__anext__())
        except StopAsyncIteration:
            raise StopIteration from None
