"""What travels: an event, its attributes, and how it is named."""

from typing import TypeAlias

import msgspec

__all__ = ["AttributeValue", "Attributes", "Event", "EventRun"]

AttributeValue: TypeAlias = str | int | float | bool
Attributes: TypeAlias = dict[str, AttributeValue]


class Event(msgspec.Struct, frozen=True, array_like=True, gc=False, eq=False):
    """One publication. `(publisher, seq)` names it; a publisher numbers its events 1, 2, 3…

    Like everything that refers only to what is older, it cannot be part of a circle: no garbage collector need look.
    """

    publisher: str
    seq: int
    attributes: Attributes
    payload: bytes = b""
    stamp: int = 0
    """Given by the broker that admitted it: a time in microseconds, larger than the stamps of all its causes. 0 before
    that, and in protocols that know no positions."""

    def __eq__(self, other: object) -> bool:
        """What was published equals what is delivered: the stamp says when it was admitted, not what it is."""
        if not isinstance(other, Event):
            return NotImplemented
        return (self.publisher, self.seq, self.attributes, self.payload) == (
            other.publisher, other.seq, other.attributes, other.payload
        )  # fmt: skip

    def __hash__(self) -> int:
        return hash((self.publisher, self.seq))

    @property
    def position(self) -> int:
        """The position of the event in the history of the whole network. Whoever subscribes `since` then gets what came
        after it."""
        return self.stamp

    @property
    def id(self) -> str:
        """The name of the event in traces: `publisher:seq`."""
        return f"{self.publisher}:{self.seq}"


class EventRun(list[Event]):
    """Events that travel together, not changed any more; and the bytes that they are on the wire, once somebody has
    needed them. So what goes to many, and to a disk, is encoded once."""

    encoded: bytes | None = None
