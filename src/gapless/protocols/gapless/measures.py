"""Counters and latencies for operators. One publication and one delivery of each client are measured at a time."""

from dataclasses import dataclass, field

from gapless.protocols.gapless.client_state import Session
from gapless.protocols.parts.latencies import Latencies

__all__ = ["Measures"]


@dataclass(eq=False)
class Measures:
    """The measurements of one broker since its start, through all its incarnations."""

    published: int = 0
    delivered: int = 0
    deleted: int = 0
    """The number of deleted events in its journal and its copies."""
    confirming: Latencies = field(default_factory=Latencies)
    """The time from the admission of a publication until it is confirmed."""
    taking: Latencies = field(default_factory=Latencies)
    """The time from when a delivery is due until the application has taken it."""

    def admitted(self, session: Session, count: int, length: int, now: int) -> None:
        """Count publications, after which the journal has this length."""
        self.published += count
        if session.timed_entry is None:
            session.timed_entry = length, now

    def confirmed(self, session: Session, released: int, now: int) -> None:
        """Note that this many entries of the journal are confirmed."""
        if session.timed_entry is not None and session.timed_entry[0] <= released:
            self.confirming.note(now - session.timed_entry[1])
            session.timed_entry = None

    def due(self, session: Session, count: int, now: int) -> None:
        """Count events that are put into the session's queue next."""
        self.delivered += count
        if session.timed_delivery is None:
            session.timed_delivery = session.next_place, 0, now

    def sent(self, session: Session, place: int, number: int) -> None:
        """Note that the delivery at this place in the queue is sent with this number."""
        timed = session.timed_delivery
        if timed is not None and not timed[1] and place >= timed[0]:
            session.timed_delivery = timed[0], number, timed[2]

    def taken(self, session: Session, number: int, now: int) -> None:
        """Note that the application has taken everything up to this number."""
        timed = session.timed_delivery
        if timed is not None and 0 < timed[1] <= number:
            self.taking.note(now - timed[2])
            session.timed_delivery = None
