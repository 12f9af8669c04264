"""Finding who holds the session.

The client asks its broker, and when that is lost, or does not answer in time, its contacts in turn. It tells whoever
it asks all that is needed to go on (`Luggage`), and by which life its session was held last. The answer is that the
session is granted, or who else is to be asked, or that it is too early.
"""

from collections.abc import Callable
from zlib import crc32

import msgspec

from gapless.events import Event
from gapless.protocol import SetTimer
from gapless.protocols.gapless.client.line import Line
from gapless.protocols.gapless.client_messages import Answer, Attach, Attached, Redirect, SubscriptionProgress
from gapless.protocols.gapless.messages import Cuts

__all__ = ["Luggage", "SessionSearch"]

RETRY = "retry"
"""The key of the timer."""
REDIRECTS_MAX = 3
PATIENCE_MAX = 64
PROMPT = 5
"""So often a client that is asked to retry does so after `retry_ms`: most handovers are over by then."""
PAUSE_MAX = 16
"""Later it waits twice as long each time, up to so many times `retry_ms`, minus up to half of that, so that clients
which lost the same broker spread out. Each attempt brings all that a client holds, and costs its broker work."""


class Luggage(msgspec.Struct, frozen=True):
    """What whoever holds the session has to know."""

    subscriptions: list[SubscriptionProgress]
    advertisements: dict[str, tuple[str, int]]
    publications: list[Event]
    """Those that are not safe yet, from number `first` on."""
    first: int
    received: int
    """How many deliveries count as received: the next has the number after."""
    clock: int
    seen: Cuts
    """By publisher: the last number that was delivered for subscriptions that are over."""


class SessionSearch:
    """One client's way to its session."""

    def __init__(
        self, line: Line, client: str, contacts: tuple[str, ...], retry_us: float, pack: Callable[[], Luggage]
    ) -> None:
        self.is_attached = False
        """Whether a broker holds the session, and knows what the client wants."""
        self.home = ""
        """The life that held the session last."""
        self._line = line
        self._client = client
        self._contacts = contacts
        self._retry_us = retry_us
        self._pack = pack
        self._heard = 0
        """The last attempt that was answered by `Attached`."""
        self._late = 0
        """The last that was, when another was under way already."""
        self._served_at = 0
        """When the broker that holds the session said something last."""
        self._asked = 0
        self._silent: dict[str, None] = {}
        """The brokers that seem to be lost."""
        self._redirects = 0
        self._patience = 1
        """How many times longer than usual it waits for an answer: longer each time that none came in time, because the
        way may be long, or what it has to tell large; and then as long as the last answer took.

        The smallest story: b1, who held the session, is dead. c is far away, and only b5 knows who holds it now. b7
        answers that it is too early. If c had no patience again, it would not wait for b5's answer, nor for b6's, and
        come back to b7.
        """
        self._asked_at = 0
        self._is_put_off = False
        """Whether the last answer was to wait."""
        self._deferrals = 0
        """How often in a row it was asked to retry."""
        self._lost: dict[str, None] = {}
        """The brokers that were not heard again since they seemed to be lost."""

    # ---- asking -------------------------------------------------------------------------------------------

    def attach(self) -> None:
        """Ask the broker that should hold the session."""
        self.is_attached = self._line.is_attached = self._is_put_off = False
        self._line.attempt += 1
        self._asked_at = self._line.now
        brought = self._pack()
        self._line.send(
            Attach(
                self._line.attempt, self.home, brought.subscriptions, brought.advertisements, brought.publications,
                brought.first, brought.received, brought.clock, self._heard, max(0, self._line.now - self._served_at),
                brought.seen,
            )
        )  # fmt: skip
        self._set_timer()

    def _set_timer(self) -> None:
        self._line.emit(SetTimer(RETRY, int(self._retry_us * self._patience)))

    def _be_patient(self) -> None:
        self._patience = min(2 * self._patience, PATIENCE_MAX)

    def _be_as_patient_as_needed(self) -> None:
        """A broker says something: an answer, unless the session was granted before."""
        took = 0 if self.is_attached else self._line.now - self._asked_at
        self._patience = 1
        while self._patience < PATIENCE_MAX and self._retry_us * self._patience < took:
            self._patience *= 2

    def _try_next(self) -> None:
        """Ask the next contact that does not seem to be lost. When all others were asked, the lost are, too: who parts
        with brokers that it does not need may not hear that one of them is back."""
        following = [place for place in range(self._asked + 1, len(self._contacts)) if not self._is_silent(place)]
        if not following:
            following = [place for place in range(len(self._contacts)) if not self._is_silent(place)] or [0]
            self._silent.clear()
        self._asked = following[0]
        self._line.broker = self._contacts[self._asked]
        self.attach()

    def _is_silent(self, place: int) -> bool:
        return self._contacts[place] in self._silent

    def connected(self, peer: str) -> None:
        """The connection to a broker is fresh."""
        self.trusted(peer)
        if peer == self._line.broker:
            self.attach()

    def trusted(self, peer: str) -> None:
        """A broker is there, after all."""
        self._silent.pop(peer, None)
        self._lost.pop(peer, None)

    def suspected(self, peer: str) -> None:
        """A broker seems to be lost."""
        self._silent[peer] = self._lost[peer] = None
        if peer == self._line.broker:
            self._try_next()

    def timed_out(self) -> None:
        """The time for an answer is over. If the session was not found, ask the next contact.

        Of one that seems to be lost, no answer was expected. Its smallest story: b0 and b3 are dead, and b2 could let c
        in. c asks b0, b3, and b0 again. If it waited longer each time, it would come to b2 seconds later.
        """
        self._redirects = 0
        if not self.is_attached:
            if not self._is_put_off and self._line.broker not in self._lost:
                self._be_patient()
            self._try_next()

    # ---- answers ------------------------------------------------------------------------------------------

    def awaits(self, peer: str, message: Answer) -> bool:
        """Whether it answers what the client asked last."""
        is_answer = message.attempt == self._line.attempt and peer == self._line.broker
        if is_answer and self.is_attached:
            self._served_at = self._line.now
        return is_answer

    def granted(self, message: Attached) -> None:
        """The session is here."""
        self._be_as_patient_as_needed()
        self.is_attached = self._line.is_attached = True
        self._served_at = self._line.now
        self.home = message.home
        self._heard = message.attempt
        self._deferrals = 0
        self._contacts = tuple(message.contacts)
        self._asked = 0

    def granted_late(self, peer: str, message: Attached) -> None:
        """The client has asked elsewhere since. The session is where it was granted: go back there, and stay longer.

        Its smallest story: b9 gives the session back to b8, and b8 answers too late. The client goes on to others, says
        that b9 held its session, and b9 dies. Its heir does not know the session, and takes it for expired.
        """
        if not self.is_attached and message.attempt > max(self._heard, self._late):
            self._late = message.attempt
            self.home = message.home
            self._be_patient()
            if peer == self._line.broker:
                self._set_timer()
            else:
                self._line.broker = peer
                self.attach()

    def put_off(self) -> None:
        """Nobody can grant it now: ask again in a while."""
        self._be_as_patient_as_needed()
        self.is_attached = self._line.is_attached = False
        self._is_put_off = True
        self._deferrals += 1
        self._line.emit(SetTimer(RETRY, self._pause_us()))

    def _pause_us(self) -> int:
        """How long to wait before the next attempt; names and attempts decide the share, so runs are repeatable."""
        times = min(2 ** max(0, self._deferrals - PROMPT), PAUSE_MAX)
        share = crc32(f"{self._client} {self._line.attempt}".encode()) / (1 << 32)
        return int(self._retry_us * (times if times == 1 else times * (1 - share / 2)))

    def redirected(self, message: Redirect) -> None:
        """Go there; but if brokers send us in a circle, let some time pass before the next step.

        The one that held the session may be the last of that circle. Its smallest story: c is sent from b1 to b2, on to
        b3, and back to b2, which grants the session and gives it to b3 a moment later. If c still took b2 for its
        broker, it would wait for ever.
        """
        self._redirects += 1
        self._line.broker = message.broker
        if self._redirects <= REDIRECTS_MAX:
            self.attach()
        else:
            self.put_off()

    def begin(self, home: str) -> None:
        """There is no session: begin one with this life, or, without any, with whoever invites the client."""
        self.home = home
        self.attach()
