"""What travels: an event, its attributes, and how it is named."""

from typing import TypeAlias

import msgspec

__all__ = ["AttributeValue", "Attributes", "Event"]

AttributeValue: TypeAlias = str | int | float | bool
Attributes: TypeAlias = dict[str, AttributeValue]


class Event(msgspec.Struct, frozen=True, array_like=True):
    """One publication. `(publisher, seq)` names it; a publisher numbers its events 1, 2, 3…"""

    publisher: str
    seq: int
    attributes: Attributes
    payload: bytes = b""

    @property
    def id(self) -> str:
        """The name of the event in traces: `publisher:seq`."""
        return f"{self.publisher}:{self.seq}"
