"""A reliable FIFO stream between one life of a broker and one life of another.

A connection keeps order but may break and take an unknown suffix of the messages in flight with it. Frames are
numbered and kept until acknowledged; after a fresh connection both ends say how far they got (`Resume`), and the
rest is sent again. A stream belongs to a pair of lives: when a peer that we have heard of starts a new life, what
was meant for the old one is dropped, because a hand-over follows that contains all that matters. A frame for
another life than ours is answered by saying which one it is. So is one before which others are missing: they came when
this broker stayed away between two lives, and heard nothing.

Both are done once for each connection and pair of lives. Once is enough, because a connection keeps order: whatever
follows is sent with the answer in mind. More would be a storm, for each of a thousand frames to a life that is over
would have everything repeated, and what is repeated may be all that a broker keeps.

Acknowledgements ride on frames; one is sent alone after `ACK_EVERY` frames without any the other way.
"""

from collections import deque
from collections.abc import Callable

from gapless.protocols.gapless.messages import Ack, Body, Frame, Resume
from gapless.protocols.parts.clock import Clock

__all__ = ["Channel"]

ACK_EVERY = 64
NOBODY = -1


class Channel:
    """One end of the stream. `send` puts a raw message on the connection to the peer."""

    def __init__(
        self, life: int, peer_life: int, send: Callable[[Frame | Ack | Resume], None], clock: Clock | None = None
    ) -> None:
        self.life = life
        self.peer_life = peer_life
        self._was_heard = False
        self._send = send
        self._clock = Clock() if clock is None else clock
        self._next_seq = 1
        self._unacknowledged: deque[tuple[int, Body]] = deque()
        self._received = 0
        self._acknowledged = 0
        self._introduced_to = NOBODY
        """The life of the peer that was told ours, on this connection."""
        self._repeated_to = NOBODY
        """The life of the peer to which all that it lacked was sent again, on this connection."""

    def send(self, body: Body) -> None:
        """Deliver `body` to the peer, after all earlier ones, once."""
        self._unacknowledged.append((self._next_seq, body))
        self._send(self._frame(self._next_seq, body))
        self._next_seq += 1

    def reconnect(self) -> None:
        """The connection is fresh: tell the peer where we stand, and ask where it does."""
        self._repeated_to = NOBODY
        self._introduce()

    def _introduce(self) -> None:
        self._introduced_to = self.peer_life
        self._send(Resume(self.life, self.peer_life, self._received, True))

    def resumed(self, message: Resume) -> None:
        """The peer told where it stands: repeat what it lacks."""
        if not self.meet(message.life):
            return
        if message.answer:
            self._send(Resume(self.life, self.peer_life, self._received, False))
        self._forget(message.ack if message.to_life == self.life else 0)
        if self._repeated_to != self.peer_life:
            self._repeated_to = self.peer_life
            for seq, body in self._unacknowledged:
                self._send(self._frame(seq, body))

    def received(self, frame: Frame) -> Body | None:
        """The body, if the frame is the next one from the peer's current life to ours."""
        if not self.meet(frame.life):
            return None
        is_for_another = frame.to_life != self.life
        if is_for_another or frame.seq > self._received + 1:
            if self._introduced_to != self.peer_life:
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
            self._send(Ack(self.life, self.peer_life, self._received))
        return frame.body

    def acknowledged(self, message: Ack) -> None:
        """The peer got everything up to a number."""
        if message.to_life == self.life and message.life == self.peer_life:
            self._forget(message.ack)

    def pending(self) -> int:
        """How many messages are kept for repetition."""
        return len(self._unacknowledged)

    def _frame(self, seq: int, body: Body) -> Frame:
        self._acknowledged = self._received
        return Frame(self.life, self.peer_life, seq, self._received, self._clock.last, body)

    def meet(self, life: int) -> bool:
        """Follow the peer into a new life; False for a message out of an old one."""
        if life < self.peer_life:
            return False
        if life > self.peer_life:
            if self._was_heard:
                self._unacknowledged.clear()
                self._next_seq = 1
            self.peer_life = life
            self._received = self._acknowledged = 0
        self._was_heard = True
        return True

    def _forget(self, ack: int) -> None:
        while self._unacknowledged and self._unacknowledged[0][0] <= ack:
            self._unacknowledged.popleft()
