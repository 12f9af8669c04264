"""A reliable FIFO channel between one incarnation of a broker and one of another.

A connection keeps order, but can break and lose an unknown suffix of its messages in flight. Frames are numbered and
kept until acknowledged. On a new connection both ends report how far they got (`Resume`), and the rest is sent again.
When the peer starts a new incarnation, messages for the old one are dropped: the rules of the protocol repeat
everything that is still needed.
"""

from collections import deque
from collections.abc import Callable

from gapless.protocols.gapless.messages import Ack, Body, Frame, Resume
from gapless.protocols.parts.clock import Clock

__all__ = ["Channel"]

ACK_EVERY = 64
"""The number of received frames after which an acknowledgement is sent on its own; otherwise frames carry it."""


class Channel:
    """One end of the channel."""

    def __init__(
        self, number: int, peer_number: int, clock: Clock, emit: Callable[[Frame | Ack | Resume], None]
    ) -> None:
        self.number = number
        self.peer_number = peer_number
        self._clock = clock
        self._emit = emit
        self._next_seq = 1
        self._unacknowledged: deque[tuple[int, Body]] = deque()
        self._received = 0
        self._acknowledged = 0
        self._introduced_to = -1
        """The incarnation of the peer that has received ours on this connection. Once is enough, because a
        connection keeps order."""
        self._repeated_to = -1
        """The incarnation of the peer to which all missing frames were resent on this connection."""

    def __len__(self) -> int:
        return len(self._unacknowledged)

    def send(self, body: Body) -> None:
        """Send a message, to be delivered exactly once and after all earlier ones."""
        self._unacknowledged.append((self._next_seq, body))
        self._emit(self._frame(self._next_seq, body))
        self._next_seq += 1

    def meet(self, number: int) -> None:
        """Restart the channel with a new incarnation of the peer."""
        if number > self.peer_number:
            self.peer_number = number
            self._unacknowledged.clear()
            self._next_seq = 1
            self._received = self._acknowledged = 0

    def connected(self) -> None:
        """Tell the peer on a new connection how many of its frames have arrived."""
        self._repeated_to = -1
        self._introduce()

    def receive_resume(self, message: Resume) -> None:
        """Resend the frames that the peer has not received. The caller must have called `meet`."""
        if message.wants_answer:
            self._emit(Resume(self.number, self.peer_number, self._received, False))
        self._forget(message.ack if message.receiver == self.number else 0)
        if self._repeated_to != self.peer_number:
            self._repeated_to = self.peer_number
            for seq, body in self._unacknowledged:
                self._emit(self._frame(seq, body))

    def receive_frame(self, frame: Frame) -> Body | None:
        """Return the frame's message if it is the next one between these incarnations; otherwise None. The caller must
        have called `meet`."""
        is_for_another = frame.receiver != self.number
        if is_for_another or frame.seq > self._received + 1:
            if self._introduced_to != self.peer_number:
                self._introduce()
            if is_for_another:
                return None
        self._forget(frame.ack)
        if frame.seq != self._received + 1:
            return None
        self._received = frame.seq
        self._clock.see(frame.clock)
        if self._received - self._acknowledged >= ACK_EVERY:
            self._acknowledged = self._received
            self._emit(Ack(self.number, self.peer_number, self._received))
        return frame.body

    def receive_ack(self, message: Ack) -> None:
        """Drop the frames that the peer has received."""
        if message.receiver == self.number:
            self._forget(message.ack)

    def _introduce(self) -> None:
        self._introduced_to = self.peer_number
        self._emit(Resume(self.number, self.peer_number, self._received, True))

    def _frame(self, seq: int, body: Body) -> Frame:
        self._acknowledged = self._received
        return Frame(self.number, self.peer_number, seq, self._received, self._clock.last, body)

    def _forget(self, ack: int) -> None:
        while self._unacknowledged and self._unacknowledged[0][0] <= ack:
            self._unacknowledged.popleft()
