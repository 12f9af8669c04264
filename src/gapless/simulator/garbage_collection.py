"""Keep Python's cycle collector out of the hot path.

Entries, messages and rows hold no cycles, so looking for some every few hundred allocations is wasted. What exists
before the run is set aside, and the collector looks rarely: often enough that a protocol which does make cycles
stays bounded.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["without_cycle_collection"]

_RARELY = (100_000, 50, 50)


@contextmanager
def without_cycle_collection() -> Iterator[None]:
    """Let the collector rest within the block."""
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(*_RARELY)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()
