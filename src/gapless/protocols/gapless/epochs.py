"""Which of two sessions of one client is newer: the larger epoch. The one place that counts it and takes it apart.

An epoch is the client's attempt times `STEP`, plus how often the session was inherited since, or kept after it had been
told to others as one that leaves (`going_home`). So a session that its client has claimed is newer than all that heirs
made of earlier ones.
"""

from typing import NewType

__all__ = ["Epoch", "attempt_of", "epoch_of", "inherited", "kept", "times_inherited"]

Epoch = NewType("Epoch", int)

STEP = 1_000
"""An attempt outranks any number of inheritances before it."""
KEPT = 3
"""One more than an heir adds to what it is told, which is one more than what was held."""


def epoch_of(attempt: int) -> Epoch:
    """The epoch of a session that its client has claimed in this attempt."""
    return Epoch(attempt * STEP)


def attempt_of(epoch: Epoch) -> int:
    """The attempt in which its client claimed the session last."""
    return epoch // STEP


def times_inherited(epoch: Epoch) -> int:
    """How often the session was inherited since then."""
    return epoch % STEP


def inherited(epoch: Epoch) -> Epoch:
    """The epoch of what an heir makes of the session."""
    return Epoch(epoch + 1)


def kept(epoch: Epoch) -> Epoch:
    """The epoch of a session that was about to leave, and stays."""
    return Epoch(epoch + KEPT)
