"""The clock that stamps events: a hybrid logical clock.

A stamp is a time in microseconds, pushed ahead where that is needed: it is larger than every stamp that the broker had
heard of when it gave it. Each frame between brokers carries the sender's clock, and a client that moves brings the
largest stamp that it has seen. So an effect has a larger stamp than its cause, and whoever sorts events by stamp has
them in an order that keeps effects behind their causes.

A **position** is a stamp: all events with stamps up to it. It contains the causes of all that it contains. It is
*final* when no event can get such a stamp any more; `waves` finds out when.
"""

__all__ = ["Clock"]


class Clock:
    """One life's clock."""

    def __init__(self) -> None:
        self.now = 0
        """The time, in microseconds, as the host tells it."""
        self.last = 0
        """No stamp that was heard of, or given here, is larger."""

    def see(self, stamp: int) -> None:
        """Somebody has come so far: what is stamped here from now on is larger."""
        if stamp > self.last:
            self.last = stamp

    def is_behind(self, stamp: int) -> bool:
        """Whether a client tells of a stamp that no broker has given, as far as is known here. A client never
        moves the clock that far: it waits until the clocks of brokers have."""
        return stamp > max(self.now, self.last)

    def next(self) -> int:
        """A stamp, larger than all before it."""
        self.last = max(self.now, self.last + 1)
        return self.last
