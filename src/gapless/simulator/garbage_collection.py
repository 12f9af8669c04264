"""Keeps Python's cycle collector out of the hot path.

Entries, messages and rows contain no cycles, so frequent collections are wasted. Objects that exist
before the run are exempt, and collections are rare, but frequent enough to bound a protocol that
creates cycles. If the application has frozen objects itself, they stay frozen after the run.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["without_cycle_collection"]

_RARELY = (100_000, 50, 50)


@contextmanager
def without_cycle_collection() -> Iterator[None]:
    """Return a context in which garbage collection is rare."""
    before = gc.get_threshold()
    freezes = gc.get_freeze_count() == 0  # `unfreeze` releases all objects, also those of an outer block
    if freezes:
        gc.freeze()
    gc.set_threshold(*_RARELY)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        if freezes:
            gc.unfreeze()
