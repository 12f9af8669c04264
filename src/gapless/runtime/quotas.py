"""Tracks how much of a broker its clients use, by owner: the user of the clients, or their address.

An owner keeps its share while it has connections and for some time after, so that reconnecting does
not cancel a debt.
"""

import time
from collections.abc import Callable, Collection

from gapless.security.limits import Bucket, Limits

__all__ = ["Quotas", "Room", "Share"]

IDLE_MAX = 10_000
"""Maximum number of owners without connections that are remembered; those that left first are
forgotten first.
"""


class Room:
    """How many more subscriptions or advertisements are allowed."""

    def __init__(self, what: str, taken: list[tuple[int, int, str]], known: Collection[str]) -> None:
        """Create the room. `taken` lists, for the user and for the broker, the current number, the maximum, and a name.
        Subscriptions in `known` are counted already.
        """
        self._what = what
        self._taken = taken
        self._known = known
        self._more = 0

    def why_not(self, name: str) -> str:
        """Count one more registration, and return an empty string; or return why it is not allowed."""
        if name in self._known:
            return ""
        for count, most, whose in self._taken:
            if count + self._more >= most:
                return f"{whose} has {most} {self._what} here, which is the maximum; end one first"
        self._more += 1
        return ""


class Share:
    """The usage of one owner, or of all owners together."""

    def __init__(self, limits: Limits, now: float) -> None:
        self.limits = limits
        self.connections = 0
        self.coming = _bucket(limits.connections_per_s, now)
        self.attaching = _bucket(limits.attach_share, now)
        """The time that clients may take to attach, in seconds of the broker's time."""
        self.publishing = _bucket(limits.publications_per_s, now)
        self.sending = _bucket(limits.bytes_per_s, now)
        self.reading = _bucket(limits.history_bytes_per_s, now)
        self.has_rates = bool(limits.publications_per_s or limits.bytes_per_s or limits.history_bytes_per_s)
        """Whether events or bytes are limited."""

    def limited(self, limits: Limits, now: float) -> "Share":
        """Return this share with other limits."""
        if limits == self.limits:
            return self
        found = Share(limits, now)
        found.connections = self.connections
        return found

    def wait_s(self, events: int, size: int, read: int, now: float) -> float:
        """Return how long to wait after this number of events, bytes, and bytes of history."""
        taken = ((self.publishing, events), (self.sending, size), (self.reading, read))
        return max((bucket.take(count, now) for bucket, count in taken if bucket is not None and count), default=0.0)


def _bucket(rate: float, now: float) -> Bucket | None:
    return Bucket(rate, now) if rate else None


class Quotas:
    """The quotas of one broker. `limits_of` returns the limits of an owner, `together` those of all
    owners.
    """

    def __init__(
        self,
        limits_of: Callable[[str], Limits],
        together: Callable[[], Limits],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._limits_of = limits_of
        self._together = together
        self._clock = clock
        self._shares: dict[str, Share] = {}
        self._idle: dict[str, None] = {}
        self.all = Share(together(), clock())

    def share(self, owner: str) -> Share:
        """Return the share of an owner."""
        share = self._shares.get(owner)
        if share is None:
            share = self._shares[owner] = Share(self._limits_of(owner), self._clock())
            self._rest(owner)
        return share

    def renew(self) -> None:
        """Apply the current limits."""
        now = self._clock()
        self.all = self.all.limited(self._together(), now)
        self._shares = {owner: share.limited(self._limits_of(owner), now) for owner, share in self._shares.items()}

    def may_connect(self) -> bool:
        """Return whether the broker accepts another connection now, from any peer."""
        return self.all.coming is None or self.all.coming.try_take(self._clock())

    def why_not(self, owner: str, whose: str, *, is_client: bool) -> str:
        """Return why one more connection of this owner, called `whose`, is refused; empty if it is not."""
        share = self.share(owner)
        if share.coming is not None and not share.coming.try_take(self._clock()):
            return f"{whose} connects more than {share.limits.connections_per_s:g} times per second; wait a moment"
        if is_client:
            for which, who in ((share, whose), (self.all, "this broker")):
                if which.limits.connections and which.connections >= which.limits.connections:
                    return f"{who} has {which.connections} connections here, which is the maximum"
        return ""

    def add_connection(self, owner: str) -> None:
        """Count a connection of the owner."""
        for share in (self.share(owner), self.all):
            share.connections += 1
        self._idle.pop(owner, None)

    def remove_connection(self, owner: str) -> None:
        """Stop counting a connection of the owner."""
        for share in (self.share(owner), self.all):
            share.connections -= 1
        if not self.share(owner).connections:
            self._rest(owner)

    def _rest(self, owner: str) -> None:
        self._idle[owner] = None
        while len(self._idle) > IDLE_MAX:
            oldest = next(iter(self._idle))
            del self._idle[oldest], self._shares[oldest]

    def wait_s(self, owner: str, *, events: int, size: int, read: int) -> float:
        """Return how long the owner's client has to wait after this number of events, bytes, and bytes of history."""
        limited = [share for share in (self.all, self.share(owner)) if share.has_rates]
        return max(share.wait_s(events, size, read, self._clock()) for share in limited) if limited else 0.0

    def charge_attaching(self, owner: str, seconds: float) -> float:
        """Charge the owner for this amount of the broker's time. Return how long the owner's next client has to wait
        before it attaches."""
        now = self._clock()
        buckets = (self.all.attaching, self.share(owner).attaching)
        return max((bucket.take(seconds, now) for bucket in buckets if bucket is not None), default=0.0)
