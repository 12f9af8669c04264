"""How much one user may take of a broker, or one address where a network has no users.

A count ends at a number. A rate is a bucket that fills with time and holds what fits into a second: who takes more than
it holds goes into debt, and waits until the debt is paid. Nothing is dropped, and nobody else pays.

The defaults are on in every network. They are far above what honest clients need, and keep the rest of a broker
available: half of its places for clients, and half of its time.
"""

import msgspec

__all__ = ["BrokerLimits", "Bucket", "Limits"]


class Limits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Of a user, or of an address, at each broker; 0 means that there is no limit."""

    connections: int = 5_000
    """At a time. Further ones are refused. Half of the clients that a broker takes (`clients_max`)."""
    connections_per_s: float = 1_000.0
    """A connection that comes sooner is refused, and may come again."""
    attach_share: float = 0.5
    """How much of a broker's time its clients may take by attaching, subscribing and advertising, which may bring
    thousands of filters; 1 is all of it. A second of work is free, and then a client that brings more waits."""
    subscriptions: int = 0
    """At a time. A further call is refused."""
    advertisements: int = 0
    """At a time. A further call is refused."""
    names: int = 1_000
    """Under which it holds subscriptions, in the whole network and not at each broker; of one user, not of a broker. A
    further one is refused. Those that were ended do not count."""
    publications_per_s: float = 0.0
    """A client that publishes faster waits: the broker does not read from it until its debt is paid."""
    bytes_per_s: float = 0.0
    """A client that sends faster waits, too."""
    history_bytes_per_s: float = 0.0
    """A client that reads history faster waits, too: it cannot confirm what it got, so it gets no more."""

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if not 0 <= value < 1 << 53:
                raise ValueError(f"{name} is {value}, but a limit is a positive number, or 0 for none")


class BrokerLimits(Limits, frozen=True, forbid_unknown_fields=True):
    """Of all clients of a broker together: without limits, unless somebody sets them."""

    connections: int = 0
    connections_per_s: float = 0.0
    attach_share: float = 0.0


class Bucket:
    """A rate. The clock is the caller's."""

    __slots__ = ("_at", "_held", "_most", "_rate")

    def __init__(self, rate: float, now: float) -> None:
        self._rate = rate
        self._most = max(1.0, rate)
        self._held = self._most
        self._at = now

    def take(self, count: float, now: float) -> float:
        """Take so much, and return for how many seconds to wait until that is paid."""
        self._fill(now)
        self._held -= count
        return max(0.0, -self._held / self._rate)

    def try_take(self, now: float) -> bool:
        """Take one if there is one."""
        self._fill(now)
        if self._held < 1.0:
            return False
        self._held -= 1.0
        return True

    def _fill(self, now: float) -> None:
        self._held = min(self._most, self._held + max(0.0, now - self._at) * self._rate)
        self._at = now
