"""One end of a reliable link: packets arrive once and in order, although the connection loses and duplicates them.

Packets are numbered and kept until they are acknowledged. The receiver processes them in the order of their numbers: it
drops duplicates, keeps early ones, and requests at once those missing in between (Gryphon's curiosity). If no later
packet reveals a loss, the sender repeats packets that have been unacknowledged for too long. On a new connection it
repeats all of them, because the old one may have lost any.

Acknowledgements are piggybacked on packets. One is sent alone if it has waited too long, or for too many packets.

The broker bounds the kept packets by asking `is_full`; `EARLY_MAX` bounds the early ones, beyond which packets are
dropped as if the link had lost them.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice

from gapless_papers.protocols.gryphon.messages import Acknowledgement, Body, Missing, Packet
from gapless_papers.protocols.gryphon.options import GryphonOptions

__all__ = ["LinkStream"]

ACKNOWLEDGE_AFTER = 64
"""The number of packets after which an acknowledgement is sent without waiting for the timer."""
EARLY_MAX = 1_000
"""The number of packets that can wait for a missing one."""
REPEAT_MAX = 64
"""The number of packets repeated on a timeout: enough to reveal losses, and few in case the link is down."""


class LinkStream:
    """One node's state of the link to one peer."""

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
        """Packets that the peer has not acknowledged, by number."""
        self._sent = 0
        self._received = 0
        self._owed = 0
        """The number of received packets that no acknowledgement covers yet."""
        self._early: dict[int, Body] = {}
        self._asked = 0
        """Up to this number every packet arrived or was requested."""
        self._answers_soon = False
        """Whether the timer that acknowledges packets and repeats requests is running."""

    @property
    def kept(self) -> int:
        """Return how many packets the peer has not acknowledged."""
        return len(self._kept)

    @property
    def is_full(self) -> bool:
        """Return whether no more packets should be sent for now."""
        return len(self._kept) >= self._options.buffer

    # ---- sending ------------------------------------------------------------------------------------------

    def send(self, body: Body) -> None:
        """Send a packet after all earlier ones."""
        self._sent += 1
        if self._repeats:
            if not self._kept:
                self._watch()
            self._kept.append((self._sent, body))
        self._transmit(self._sent, body)

    def acknowledged(self, number: int) -> None:
        """Drop the packets up to this number, which the peer has."""
        if not self._kept or self._kept[0][0] > number:
            return
        while self._kept and self._kept[0][0] <= number:
            self._kept.popleft()
        if self._kept:
            self._watch()

    def missed(self, message: Missing) -> None:
        """Repeat the packets that the peer lacks."""
        self._repeat(entry for entry in self._kept if message.first <= entry[0] <= message.last)

    def reconnect(self) -> None:
        """Repeat the kept packets on a new connection, because they may be lost."""
        self._repeat(self._kept)

    def timer_fired(self, what: str) -> None:
        """Handle a timer that `set_timer` started."""
        if what == "repeat":
            self._repeat_late()
        else:
            self._answer_late()

    def _repeat_late(self) -> None:
        """Repeat packets because the oldest one has been unacknowledged for too long."""
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
        """Restart the timeout, because another packet is the oldest now."""
        self._set_timer("repeat", self._options.repeat_ms * 1000)

    # ---- receiving ----------------------------------------------------------------------------------------

    def receive(self, packet: Packet) -> Iterator[Body]:
        """Return the messages that can be processed after this packet, in order."""
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
        """Acknowledge all packets received in order."""
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
        """Send an acknowledgement unless a packet has carried it, and request missing packets again."""
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
