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
    """Simultaneous connections. Further ones are refused. The default is half of `clients_max`."""
    connections_per_s: float = 1_000.0
    """A connection above this rate is refused, and can be retried."""
    attach_share: float = 0.5
    """The fraction of a broker's time that its clients may use by attaching, subscribing and
    advertising, which may involve thousands of filters. A second of work is free; after that, a
    client with more waits.
    """
    subscriptions: int = 0
    """Simultaneous subscriptions. A further call is refused."""
    advertisements: int = 0
    """Simultaneous advertisements. A further call is refused."""
    names: int = 1_000
    """Durable subscriptions of one user in the whole network. A further one is refused. Deleted
    ones do not count.
    """
    publications_per_s: float = 0.0
    """A client that publishes faster is slowed down: the broker does not read from it until its
    debt is paid.
    """
    bytes_per_s: float = 0.0
    """A client that sends faster is slowed down, too."""
    history_bytes_per_s: float = 0.0
    """A client that reads history faster is slowed down, too: it cannot acknowledge, so it receives
    no more.
    """

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if not 0 <= value < 1 << 53:
                raise ValueError(f"{name} is {value}, but a limit is a positive number, or 0 for none")


class BrokerLimits(Limits, frozen=True, forbid_unknown_fields=True):
    """The limits of all clients of a broker together: unlimited by default."""

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
        """Take this amount, and return how many seconds to wait until it is paid."""
        self._fill(now)
        self._held -= count
        return max(0.0, -self._held / self._rate)

    def try_take(self, now: float) -> bool:
        """Take one if it is available; return whether it was."""
        self._fill(now)
        if self._held < 1.0:
            return False
        self._held -= 1.0
        return True

    def _fill(self, now: float) -> None:
        self._held = min(self._most, self._held + max(0.0, now - self._at) * self._rate)
        self._at = now
