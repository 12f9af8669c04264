"""Counters and latencies for operators. The latency is measured for one publication and one delivery of each client at
a time."""

from dataclasses import dataclass, field

from gapless.protocols.gapless.client_state import Session
from gapless.protocols.parts.latencies import Latencies

__all__ = ["Measures"]


@dataclass(eq=False)
class Measures:
    """The measurements of one broker since its process started, across all its incarnations."""

    published: int = 0
    delivered: int = 0
    deleted: int = 0
    """The number of deleted events in the broker's journal and its copies."""
    confirming: Latencies = field(default_factory=Latencies)
    """The time from the admission of a publication until it is confirmed."""
    taking: Latencies = field(default_factory=Latencies)
    """The time from when a delivery is due until the application has taken it."""

    def admitted(self, session: Session, count: int, length: int, now: int) -> None:
        """Count admitted publications. `length` is the length of the journal including them."""
        self.published += count
        if session.timed_entry is None:
            session.timed_entry = length, now

    def confirmed(self, session: Session, released: int, now: int) -> None:
        """Record the number of the session's confirmed journal entries."""
        if session.timed_entry is not None and session.timed_entry[0] <= released:
            self.confirming.note(now - session.timed_entry[1])
            session.timed_entry = None

    def due(self, session: Session, count: int, now: int) -> None:
        """Count the events that are put into the session's queue next."""
        self.delivered += count
        if session.timed_delivery is None:
            session.timed_delivery = session.next_place, 0, now

    def sent(self, session: Session, place: int, number: int) -> None:
        """Record that the delivery at a place in the queue is sent with this number."""
        timed = session.timed_delivery
        if timed is not None and not timed[1] and place >= timed[0]:
            session.timed_delivery = timed[0], number, timed[2]

    def taken(self, session: Session, number: int, now: int) -> None:
        """Record that the application has taken all deliveries up to this number."""
        timed = session.timed_delivery
        if timed is not None and 0 < timed[1] <= number:
            self.taking.note(now - timed[2])
            session.timed_delivery = None
