"""Runs an event loop in a thread of its own, for callers without one.

Callers wait for the results of their coroutines. If the loop ends, no result will arrive: all waiting and later calls
raise an error.
"""

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, TypeVar

from gapless.errors import CallError, ClosedError
from gapless.runtime.event_loop import new_event_loop

__all__ = ["LoopThread"]

T = TypeVar("T")

# A signal that arrives just as a wait begins does not interrupt it: the caller would notice it only with the result. So
# waits are at most this long.
LONGEST_WAIT_S = 0.5


class LoopThread:
    """An event loop in its own thread, which runs coroutines for other threads."""

    def __init__(self) -> None:
        self.loop = new_event_loop()
        self._lock = threading.Lock()
        self._waiting: set[Future[Any]] = set()
        self._end: ClosedError | None = None
        self._process = os.getpid()
        self._thread = threading.Thread(target=self._turn, name="gapless", daemon=True)
        self._thread.start()

    def start(self, work: Coroutine[Any, Any, T]) -> "Future[T]":
        """Schedule the coroutine in the loop, and return a future of its result."""
        try:
            self._check_caller()
            with self._lock:
                if self._end is not None:
                    raise self._end
                future = asyncio.run_coroutine_threadsafe(work, self.loop)
                self._waiting.add(future)
        except BaseException:
            work.close()
            raise
        future.add_done_callback(self._waiting.discard)
        return future

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run the coroutine in the loop, and wait for its result."""
        future = self.start(work)
        try:
            while True:
                try:
                    return future.result(LONGEST_WAIT_S)
                except TimeoutError:
                    if future.done():  # the coroutine raised this error itself, or has just finished
                        return future.result()
        except BaseException:
            future.cancel()
            raise

    def call(self, function: Callable[[], T]) -> T:
        """Call an ordinary function in the loop, and wait for its result."""

        async def calling() -> T:
            return function()

        return self.run(calling())

    def _check_caller(self) -> None:
        if threading.current_thread() is self._thread:
            raise CallError("this call would wait for the thread that it runs in; make it from another thread")
        if os.getpid() != self._process:
            raise ClosedError("this client belongs to the process that this one was forked from; connect again here")

    def stop(self) -> None:
        """Stop the loop, and end its thread."""
        with suppress(RuntimeError):  # it may have ended by itself
            self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()

    def _turn(self) -> None:
        end = ClosedError("the client is closed")
        try:
            self.loop.run_forever()
        except BaseException as error:
            end = ClosedError(f"the client's event loop ended: {error!r}")
        finally:
            with self._lock:
                self._end = end
            for future in list(self._waiting):
                with suppress(Exception):  # the result may have arrived at the same time
                    future.set_exception(end)
            self._close_loop()

    def _close_loop(self) -> None:
        tasks = asyncio.all_tasks(self.loop)
        for task in tasks:
            task.cancel()
        if tasks:
            with suppress(BaseException):
                self.loop.run_until_complete(asyncio.wait(tasks, timeout=1.0))
        self.loop.close()
