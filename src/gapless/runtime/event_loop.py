"""Runs the event loop: uvloop if it is installed, otherwise asyncio's own."""

import asyncio
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

__all__ = ["new_event_loop", "run"]

T = TypeVar("T")

if TYPE_CHECKING:
    from asyncio import new_event_loop
else:
    try:
        from uvloop import new_event_loop
    except ImportError:  # not available on Windows
        from asyncio import new_event_loop


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run the coroutine to completion, like `asyncio.run`."""
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        return runner.run(work)
