"""How much of a broker its clients have taken, by owner: the user whose clients they are, or their address.

An owner keeps its share while it has connections, and for some time after, so that nobody gets rid of a debt by
connecting again.
"""

import time
from collections.abc import Callable, Collection

from gapless.security.limits import Bucket, Limits

__all__ = ["Quotas", "Room", "Share"]

IDLE_MAX = 10_000
"""Owners without connections that are remembered; those that left first are forgotten first."""


class Room:
    """For how many more subscriptions, or advertisements, there is room."""

    def __init__(self, what: str, taken: list[tuple[int, int, str]], known: Collection[str]) -> None:
        """`taken` says for the user and the broker how many there are, how many there may be, and whose they are. Those
        that are `known` are counted already."""
        self._what = what
        self._taken = taken
        self._known = known
        self._more = 0

    def why_not(self, name: str) -> str:
        """Why there may not be one more; if there may, it counts from now on."""
        if name in self._known:
            return ""
        for count, most, whose in self._taken:
            if count + self._more >= most:
                return f"{whose} has {most} {self._what} here, the most that it may have; end one first"
        self._more += 1
        return ""


class Share:
    """What one owner, or all owners together, take of a broker."""

    def __init__(self, limits: Limits, now: float) -> None:
        self.limits = limits
        self.connections = 0
        self.coming = _bucket(limits.connections_per_s, now)
        self.attaching = _bucket(limits.attach_share, now)
        """In seconds of the broker's time."""
        self.publishing = _bucket(limits.publications_per_s, now)
        self.sending = _bucket(limits.bytes_per_s, now)
        self.reading = _bucket(limits.history_bytes_per_s, now)

    def limited(self, limits: Limits, now: float) -> "Share":
        """The same share with other limits."""
        if limits == self.limits:
            return self
        found = Share(limits, now)
        found.connections = self.connections
        return found

    def wait_s(self, events: int, size: int, read: int, now: float) -> float:
        """How long to wait after so many events, bytes, and bytes out of history."""
        taken = ((self.publishing, events), (self.sending, size), (self.reading, read))
        return max((bucket.take(count, now) for bucket, count in taken if bucket is not None and count), default=0.0)


def _bucket(rate: float, now: float) -> Bucket | None:
    return Bucket(rate, now) if rate else None


class Quotas:
    """Of one broker. `limits_of` says how much an owner may take, `together` how much all of them may."""

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
        """What an owner takes."""
        share = self._shares.get(owner)
        if share is None:
            share = self._shares[owner] = Share(self._limits_of(owner), self._clock())
            self._rest(owner)
        return share

    def renew(self) -> None:
        """Apply the limits as they are now."""
        now = self._clock()
        self.all = self.all.limited(self._together(), now)
        self._shares = {owner: share.limited(self._limits_of(owner), now) for owner, share in self._shares.items()}

    def may_come(self) -> bool:
        """Whether the broker takes one more connection at this moment, whoever dialled."""
        return self.all.coming is None or self.all.coming.try_take(self._clock())

    def why_not(self, owner: str, whose: str, *, is_client: bool) -> str:
        """Why one more connection of this owner, called `whose`, is refused; empty if it is not."""
        share = self.share(owner)
        if share.coming is not None and not share.coming.try_take(self._clock()):
            return f"{whose} connects more than {share.limits.connections_per_s:g} times a second; wait a moment"
        if is_client:
            for which, who in ((share, whose), (self.all, "this broker")):
                if which.limits.connections and which.connections >= which.limits.connections:
                    return f"{who} has {which.connections} connections here, the most that it may have"
        return ""

    def came(self, owner: str) -> None:
        """A client of the owner is connected."""
        for share in (self.share(owner), self.all):
            share.connections += 1
        self._idle.pop(owner, None)

    def left(self, owner: str) -> None:
        """A client of the owner is not connected any more."""
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
        """How long the owner's client has to wait after so many events, bytes, and bytes out of history."""
        now = self._clock()
        return max(share.wait_s(events, size, read, now) for share in (self.all, self.share(owner)))

    def charge_attaching(self, owner: str, seconds: float) -> float:
        """Charge the owner for so much of the broker's time; return how long its next client that attaches waits."""
        now = self._clock()
        buckets = (self.all.attaching, self.share(owner).attaching)
        return max((bucket.take(seconds, now) for bucket in buckets if bucket is not None), default=0.0)
