"""The state of a broker's disk, as plain data; the next incarnation takes it over."""

from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple

from gapless.protocols.gapless.identities import Incarnation
from gapless.protocols.gapless.messages import Body

__all__ = ["NEVER", "Disk", "Waiting"]

NEVER = 1 << 62


class Waiting(NamedTuple):
    """A message that is sent when a batch is on the disk. A broker's own vote is addressed to itself."""

    batch: int
    peer: str
    body: Body


@dataclass(eq=False)
class Disk:
    """The state of one broker's disk. Without a disk, no message waits."""

    is_there: bool = False
    number: int = 0
    """The number of the last batch."""
    waits: bool = False
    """Whether messages wait for the last batch."""
    persisted: int = NEVER
    """All batches up to this one are on the disk."""
    written: dict[Incarnation, tuple[int, int]] = field(default_factory=dict)
    """By journal: the range of places whose entries were written to the disk."""
    row_ends: dict[Incarnation, list[int]] = field(default_factory=dict)
    """By journal: the last timestamps of its rows on the disk, ascending."""
    own_written: deque[tuple[int, int]] = field(default_factory=deque)
    """For each batch in flight: its number, and the length of the broker's own journal after the batch."""
    own_length: int = 0
    """The number of entries of the broker's own journal that are on the disk."""
    changed_acceptors: set[str] = field(default_factory=set)
    """The brokers about whose journals this broker has promised or accepted something in this step."""
    changed_records: set[str] = field(default_factory=set)
    """The durable subscriptions whose records were changed or dropped in this step."""
    are_statuses_changed: bool = False
    is_clock_due: bool = False
    """Whether an echo waits for the clock to be written to the disk."""
    sealed_written: int = 0
    """The number of final seals written to the disk."""

    @property
    def next(self) -> int:
        """Return the number of the next batch."""
        return self.number + 1
