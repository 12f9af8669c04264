"""Causal order within one topic, by causal barriers (CHECK_CB and CHECK_RECS of Algorithm 3).

A message carries its *barrier*: those messages that it directly depends on. It is delivered when each of them is
settled. `settled` says for each source up to which number everything has been delivered here or never will be: it is
the paper's `delvs` and `first_rec` in one, for both are only ever asked whether a message need not be waited for.

**Why the barrier suffices.** Call a set of messages *closed* if it holds the causes of all that it holds. What is
settled is closed at all times. Delivering a message whose barrier is settled keeps it closed, because the barrier
generates the message's past: whatever leaves the barrier of a broker is a cause of something that enters it. A new
member starts with the union of what others have settled (see `broker`), and a union of closed sets is closed. So
nothing that was left out is the effect of something that is still to be delivered.

A message is one integer here, its stamp: number and source, so that stamps of one source compare like its numbers. A
barrier of hundreds of messages is compared as one set: mostly they all are the latest of their sources, and only what
is not is looked at one by one.
"""

from collections.abc import Mapping

from gapless_papers.protocols.vcube.messages import Pub

__all__ = ["CausalOrder", "stamp_of"]

_SOURCE_BITS = 16
_SOURCE = (1 << _SOURCE_BITS) - 1


def stamp_of(source: int, number: int) -> int:
    """The one integer that stands for a message of a topic."""
    return number << _SOURCE_BITS | source


class CausalOrder:
    """What one broker has delivered of a topic, and what waits."""

    def __init__(self, *, reduces: bool = True) -> None:
        self._reduces = reduces
        """Whether the causes of a cause leave the barrier; else it only grows until the next publication."""
        self.settled: dict[int, int] = {}
        """By source, the stamp of the last message that is settled."""
        self.waiting = 0
        """Messages received whose causes are not settled yet."""
        self._latest: set[int] = set()
        """What is in `settled`."""
        self._barrier: set[int] = set()
        self._blocked: dict[int, list[Pub]] = {}
        """What waits, by a source that it waits for."""

    @property
    def barrier_size(self) -> int:
        """On how many messages the next publication depends directly; one of each source at most."""
        return len(self._barrier)

    def publish(self, source: int, number: int) -> frozenset[int]:
        """The barrier of the broker's own next message, which then stands for all of it."""
        barrier = frozenset(self._barrier)
        stamp = stamp_of(source, number)
        self._settle(source, stamp)
        self._barrier = {stamp}
        return barrier

    def receive(self, message: Pub) -> list[Pub]:
        """What can be delivered now, in order."""
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
        """Leave out what others have delivered already."""
        for source, stamp in settled.items():
            if stamp > self.settled.get(source, 0):
                self._settle(source, stamp)

    def drop_waiting(self) -> None:
        """What waits is no longer wanted."""
        self._blocked.clear()
        self.waiting = 0

    def forget(self) -> None:
        """What was delivered no longer matters: as the paper prints it, and wrongly."""
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
        """The source of a message that is not settled yet."""
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
