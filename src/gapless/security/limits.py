"""Limits on the use of a broker by one user, or by one address in a network without users.

A count has a maximum. A rate is a token bucket that holds the amount of one second: a user who
takes more than it holds goes into debt and waits until the debt is paid. Nothing is dropped, and
nobody else is affected.

The defaults apply in every network. They are far above the needs of regular clients, and keep half
of a broker's places for clients, and half of its time, available to others.
"""

import msgspec

__all__ = ["BrokerLimits", "Bucket", "Limits"]


class Limits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The limits of a user, or of an address, at each broker; 0 means no limit."""

    connections: int = 5_000
    """The maximum number of simultaneous connections; further ones are refused. The default is half of
    `clients_max`."""
    connections_per_s: float = 1_000.0
    """The maximum rate of new connections. A connection above the rate is refused, and can be retried."""
    attach_share: float = 0.5
    """The fraction of a broker's time that its clients may use by attaching, subscribing and
    advertising, which may involve thousands of filters. A second of work is free; after that, a
    client with more waits.
    """
    subscriptions: int = 0
    """The maximum number of simultaneous subscriptions; a further call is refused."""
    advertisements: int = 0
    """The maximum number of simultaneous advertisements; a further call is refused."""
    names: int = 1_000
    """The maximum number of durable subscriptions of one user in the whole network; a further one is refused. Deleted
    ones do not count."""
    publications_per_s: float = 0.0
    """The maximum rate of publications. The broker stops reading from a client that publishes faster until its debt is
    paid."""
    bytes_per_s: float = 0.0
    """The maximum rate of bytes from clients. The broker stops reading from a client that sends faster."""
    history_bytes_per_s: float = 0.0
    """The maximum rate of bytes from history. The broker stops reading from a client that reads history faster, so the
    client cannot acknowledge events and receives no more."""

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if not 0 <= value < 1 << 53:
                raise ValueError(f"{name} is {value}, but a limit must be a positive number, or 0 for no limit")


class BrokerLimits(Limits, frozen=True, forbid_unknown_fields=True):
    """The limits of all clients of a broker together; by default there are none."""

    connections: int = 0
    connections_per_s: float = 0.0
    attach_share: float = 0.0


class Bucket:
    """A token bucket. The caller supplies the clock."""

    __slots__ = ("_at", "_held", "_most", "_rate")

    def __init__(self, rate: float, now: float) -> None:
        self._rate = rate
        self._most = max(1.0, rate)
        self._held = self._most
        self._at = now

    def take(self, count: float, now: float) -> float:
        """Take this amount. Return how many seconds to wait until the debt is paid."""
        self._fill(now)
        self._held -= count
        return max(0.0, -self._held / self._rate)

    def try_take(self, now: float) -> bool:
        """Take one unit if there is one. Return whether one was taken."""
        self._fill(now)
        if self._held < 1.0:
            return False
        self._held -= 1.0
        return True

    def _fill(self, now: float) -> None:
        self._held = min(self._most, self._held + max(0.0, now - self._at) * self._rate)
        self._at = now
