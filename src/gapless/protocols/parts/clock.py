"""A hybrid logical clock, which timestamps events.

A timestamp is a time in microseconds, advanced if necessary so that it is larger than every timestamp the broker has
seen. Each frame between brokers contains the sender's clock, and a client that moves reports the largest timestamp that
it has seen. So an effect has a larger timestamp than its cause, and sorting events by timestamp gives a causal order.

A **position** is a timestamp that stands for all events with timestamps up to it. It includes the causes of all its
events. It is *final* when no further event can get such a timestamp; the module `positions` determines when.
"""

__all__ = ["Clock"]


class Clock:
    """The clock of one incarnation of a broker."""

    def __init__(self) -> None:
        self.now = 0
        """The host's time in microseconds."""
        self.last = 0
        """An upper bound of all timestamps that the broker has seen or issued."""

    def see(self, stamp: int) -> None:
        """Record a timestamp from elsewhere: timestamps issued later are larger."""
        if stamp > self.last:
            self.last = stamp

    def is_behind(self, stamp: int) -> bool:
        """Return whether the timestamp is larger than any that a broker can have issued, as far as this broker knows. A
        client that reports such a timestamp has to wait; it does not advance the clock."""
        return stamp > max(self.now, self.last)

    def next(self) -> int:
        """Return a new timestamp, larger than all earlier ones."""
        self.last = max(self.now, self.last + 1)
        return self.last
