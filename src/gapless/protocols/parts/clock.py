"""The clock that timestamps events: a hybrid logical clock.

A timestamp is a time in microseconds, advanced if needed: it is larger than every timestamp that the broker had seen
when it gave it. Each frame between brokers contains the sender's clock, and a client that moves reports the largest
timestamp that it has seen. So an effect has a larger timestamp than its cause, and sorting events by timestamp gives a
causal order.

A **position** is a timestamp: all events with timestamps up to it. It contains the causes of all its events. It is
*final* when no further event can get such a timestamp; `positions` finds out when.
"""

__all__ = ["Clock"]


class Clock:
    """The clock of one incarnation."""

    def __init__(self) -> None:
        self.now = 0
        """The time in microseconds, as set by the host."""
        self.last = 0
        """An upper bound of all timestamps seen or given here."""

    def see(self, stamp: int) -> None:
        """Note a timestamp: later ones given here are larger."""
        if stamp > self.last:
            self.last = stamp

    def is_behind(self, stamp: int) -> bool:
        """Return whether a client reports a timestamp that no broker has given, as far as is known here. A client never
        advances the clock that far: it waits until the clocks of brokers have."""
        return stamp > max(self.now, self.last)

    def next(self) -> int:
        """Return a timestamp larger than all before it."""
        self.last = max(self.now, self.last + 1)
        return self.last
