"""One end of a link: everything sent arrives at the other end, once and in order, though the link loses and repeats.

Packets are numbered and kept until they are acknowledged. The receiver takes them in the order of their numbers: what
it has it drops, what is early it keeps, and it asks at once for what is missing in between (Gryphon's curiosity).
Where nothing later comes to give a loss away, the sender repeats what has been unacknowledged for too long; and a
fresh connection repeats everything, because the old one may have taken any part of it along.

Acknowledgements ride on packets. One is sent alone when it has waited for a ride too long, or for too many packets.

What is kept is bounded by the broker, which asks `is_full`; what is early by `EARLY_MAX`, beyond which it is dropped
as if the link had lost it.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice

from gapless_papers.protocols.gryphon.messages import Acknowledgement, Body, Missing, Packet
from gapless_papers.protocols.gryphon.options import GryphonOptions

__all__ = ["LinkStream"]

ACKNOWLEDGE_AFTER = 64
"""Packets that are acknowledged at the latest, whatever the clock says."""
EARLY_MAX = 1_000
"""Packets that may wait for a missing one."""
REPEAT_MAX = 64
"""Packets repeated when the time is up: enough to give everything missing away, few enough for a link that is cut."""


class LinkStream:
    """What one node keeps of the link to one peer."""

    def __init__(
        self,
        options: GryphonOptions,
        send: Callable[[Packet | Acknowledgement | Missing], None],
        set_timer: Callable[[str, int], None],
    ) -> None:
        self._options = options
        self._repeats = "repeats" not in options.switched_off
        self._send = send
        self._set_timer = set_timer
        self._kept: deque[tuple[int, Body]] = deque()
        """With their numbers: what the peer has not acknowledged."""
        self._sent = 0
        self._received = 0
        self._owed = 0
        """Packets received that no acknowledgement covers yet."""
        self._early: dict[int, Body] = {}
        self._asked = 0
        """Up to this number everything came or was asked for."""
        self._answers_soon = False
        """Whether the timer runs that acknowledges, and asks again."""

    @property
    def kept(self) -> int:
        """Packets that the peer has not acknowledged."""
        return len(self._kept)

    @property
    def is_full(self) -> bool:
        """Whether no more should be sent for now."""
        return len(self._kept) >= self._options.buffer

    # ---- sending ------------------------------------------------------------------------------------------

    def send(self, body: Body) -> None:
        """Let the peer have this, after all that went before."""
        self._sent += 1
        if self._repeats:
            if not self._kept:
                self._watch()
            self._kept.append((self._sent, body))
        self._transmit(self._sent, body)

    def acknowledged(self, number: int) -> None:
        """The peer has everything up to this number."""
        if not self._kept or self._kept[0][0] > number:
            return
        while self._kept and self._kept[0][0] <= number:
            self._kept.popleft()
        if self._kept:
            self._watch()

    def missed(self, message: Missing) -> None:
        """The peer lacks these."""
        self._repeat(entry for entry in self._kept if message.first <= entry[0] <= message.last)

    def reconnect(self) -> None:
        """The connection is fresh: what is kept may be lost."""
        self._repeat(self._kept)

    def timer_fired(self, what: str) -> None:
        """A timer that `set_timer` was asked for ran out."""
        if what == "repeat":
            self._repeat_late()
        else:
            self._answer_late()

    def _repeat_late(self) -> None:
        """For too long the oldest packet has been the same."""
        if self._kept:
            self._repeat(islice(self._kept, REPEAT_MAX))
            self._watch()

    def _repeat(self, packets: Iterable[tuple[int, Body]]) -> None:
        for number, body in list(packets):
            self._transmit(number, body)

    def _transmit(self, number: int, body: Body) -> None:
        self._owed = 0
        self._send(Packet(number, self._received, body))

    def _watch(self) -> None:
        """Another packet is the oldest now: give it its time."""
        self._set_timer("repeat", self._options.repeat_ms * 1000)

    # ---- receiving ----------------------------------------------------------------------------------------

    def receive(self, packet: Packet) -> Iterator[Body]:
        """What can be processed now that this packet is here, in order."""
        number = packet.number
        if number <= self._received:
            self.acknowledge()
        elif number == self._received + 1:
            yield self._take(packet.body)
            while self._received + 1 in self._early:
                yield self._take(self._early.pop(self._received + 1))
        elif self._repeats:
            self._keep_early(number, packet.body)
        else:
            self._received = number - 1
            yield self._take(packet.body)

    def acknowledge(self) -> None:
        """Say how far everything is here."""
        self._owed = 0
        self._send(Acknowledgement(self._received))

    def _take(self, body: Body) -> Body:
        self._received += 1
        if self._repeats:
            self._owed += 1
            self._answer_soon()
            if self._owed >= ACKNOWLEDGE_AFTER:
                self.acknowledge()
        return body

    def _keep_early(self, number: int, body: Body) -> None:
        if len(self._early) < EARLY_MAX:
            self._early[number] = body
        first = max(self._received, self._asked) + 1
        if first < number:
            self._send(Missing(first, number - 1))
        self._asked = max(self._asked, number)
        self._answer_soon()

    def _answer_soon(self) -> None:
        if not self._answers_soon:
            self._answers_soon = True
            self._set_timer("answer", self._options.acknowledge_ms * 1000)

    def _answer_late(self) -> None:
        """Acknowledge unless a packet has, and ask again for what is still missing."""
        self._answers_soon = False
        if self._owed:
            self.acknowledge()
        expected = self._received + 1
        for number in sorted(self._early):
            if number > expected:
                self._send(Missing(expected, number - 1))
            expected = number + 1
        if self._early:
            self._answer_soon()
