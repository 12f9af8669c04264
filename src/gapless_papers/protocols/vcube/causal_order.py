"""Causal order within one topic, by causal barriers (CHECK_CB and CHECK_RECS of Algorithm 3).

A message carries its *barrier*: the messages that it directly depends on. It is delivered when each of them is settled.
For each source, `settled` is the number up to which every message has been delivered here or never will be. It replaces
the paper's `delvs` and `first_rec`, which both only serve to decide whether a message need not be waited for.

**Why the barrier suffices.** Call a set of messages *closed* if it contains the causes of all its messages. The settled
set is always closed. Delivering a message whose barrier is settled keeps it closed, because the barrier generates the
message's past: a message leaves a broker's barrier only as the cause of one that enters it. A new member starts with
the union of what others have settled (see `broker`), and a union of closed sets is closed. So no omitted message is the
effect of one that is still to be delivered.

A message is one integer here, its stamp: number and source, so that stamps of one source compare like its numbers. A
barrier of hundreds of messages is compared as one set: most are the latest of their sources, and only the rest is
checked one by one.
"""

from collections.abc import Mapping

from gapless_papers.protocols.vcube.messages import Pub

__all__ = ["CausalOrder", "stamp_of"]

_SOURCE_BITS = 16
_SOURCE = (1 << _SOURCE_BITS) - 1


def stamp_of(source: int, number: int) -> int:
    """Return the integer that identifies a message of a topic."""
    return number << _SOURCE_BITS | source


class CausalOrder:
    """The delivered and the waiting messages of one topic at one broker."""

    def __init__(self, *, reduces: bool = True) -> None:
        self._reduces = reduces
        """Whether transitive causes are removed from the barrier; otherwise it grows until the next publication."""
        self.settled: dict[int, int] = {}
        """By source, the stamp of the last message that is settled."""
        self.waiting = 0
        """The number of received messages whose causes are not settled yet."""
        self._latest: set[int] = set()
        """The stamps in `settled`, as a set."""
        self._barrier: set[int] = set()
        self._blocked: dict[int, list[Pub]] = {}
        """The waiting messages, each under one source for which it waits."""

    @property
    def barrier_size(self) -> int:
        """Return how many messages the next publication directly depends on; one of each source at most."""
        return len(self._barrier)

    def publish(self, source: int, number: int) -> frozenset[int]:
        """Return the barrier of the broker's own next message, which then replaces it."""
        barrier = frozenset(self._barrier)
        stamp = stamp_of(source, number)
        self._settle(source, stamp)
        self._barrier = {stamp}
        return barrier

    def receive(self, message: Pub) -> list[Pub]:
        """Return the messages that can be delivered after this one, in order."""
        source = message.source
        known = self.settled.get(source)
        if known is not None and stamp_of(source, message.number) <= known:
            return []
        if not self._blocked and message.barrier <= self._latest:
            self._deliver(message)
            return [message]
        ready = [message]
        if known is None:
            self._settle(source, stamp_of(source, message.number - 1))
            ready += self._unblocked(source)
        delivered = []
        for candidate in ready:
            cause = self._missing_cause(candidate.barrier)
            if cause is None:
                self._deliver(candidate)
                delivered.append(candidate)
                ready += self._unblocked(candidate.source)
            else:
                self._blocked.setdefault(cause, []).append(candidate)
                self.waiting += 1
        return delivered

    def adopt(self, settled: Mapping[int, int]) -> None:
        """Omit the messages that others have delivered already."""
        for source, stamp in settled.items():
            if stamp > self.settled.get(source, 0):
                self._settle(source, stamp)

    def drop_waiting(self) -> None:
        """Drop the waiting messages, which are no longer wanted."""
        self._blocked.clear()
        self.waiting = 0

    def forget(self) -> None:
        """Clear the barrier on leaving, as the paper prints it. This is wrong, and only for experiments."""
        self.settled.clear()
        self._latest.clear()

    def _settle(self, source: int, stamp: int) -> None:
        before = self.settled.get(source, 0)
        self.settled[source] = stamp
        self._latest.discard(before)
        self._latest.add(stamp)
        if before in self._barrier:  # a message stands for all earlier ones of its source
            self._barrier.remove(before)
            self._barrier.add(stamp)

    def _deliver(self, message: Pub) -> None:
        stamp = stamp_of(message.source, message.number)
        self._settle(message.source, stamp)
        if self._reduces:
            self._barrier -= message.barrier
        self._barrier.add(stamp)

    def _missing_cause(self, barrier: frozenset[int]) -> int | None:
        """Return the source of an unsettled message of the barrier."""
        if barrier <= self._latest:
            return None
        for stamp in sorted(barrier - self._latest):
            source = stamp & _SOURCE
            if self.settled.get(source, 0) < stamp:
                return source
        return None

    def _unblocked(self, source: int) -> list[Pub]:
        messages = self._blocked.pop(source, [])
        self.waiting -= len(messages)
        return messages
