"""The state of a broker's disk, as plain data; it goes over from one incarnation to the next."""

from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple

from gapless.protocols.gapless.identities import Incarnation
from gapless.protocols.gapless.messages import Body

__all__ = ["NEVER", "Disk", "Waiting"]

NEVER = 1 << 62


class Waiting(NamedTuple):
    """A message that leaves when a batch is on the disk; to this broker itself, if it is its own vote."""

    batch: int
    peer: str
    body: Body


@dataclass(eq=False)
class Disk:
    """The disk of one broker; nothing waits if there is none."""

    is_there: bool = False
    number: int = 0
    """Of the last batch."""
    waits: bool = False
    """Whether messages wait for it."""
    persisted: int = NEVER
    """All batches up to this one are on the disk."""
    written: dict[Incarnation, tuple[int, int]] = field(default_factory=dict)
    """Of each journal: the places from which on, and up to which, entries were handed to the disk."""
    row_ends: dict[Incarnation, list[int]] = field(default_factory=dict)
    """Of each journal: the last timestamps of its rows on the disk, ascending."""
    own_written: deque[tuple[int, int]] = field(default_factory=deque)
    """Batches, and the length of the own journal after each."""
    own_length: int = 0
    """How many entries of the own journal are on the disk."""
    changed_acceptors: set[str] = field(default_factory=set)
    """The brokers about whose journals something was promised or accepted in this step."""
    changed_records: set[str] = field(default_factory=set)
    """The durable subscriptions whose records were changed or dropped in this step."""
    are_statuses_changed: bool = False
    is_clock_due: bool = False
    """A wave has passed: its echo waits for the clock to be on the disk."""
    sealed_written: int = 0
    """How many final seals were handed to the disk."""

    @property
    def next(self) -> int:
        """The number of the next batch."""
        return self.number + 1
