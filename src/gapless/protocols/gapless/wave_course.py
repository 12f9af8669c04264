"""How waves and echoes travel: from the root to all, and back. What they mean, `retention.waves` knows.

None starts, goes on or is echoed while a hand-over is under way: then the tree is not whole.
"""

from collections.abc import Callable

from gapless.protocol import SetTimer
from gapless.protocols.gapless.history.refill import Refill
from gapless.protocols.gapless.messages import Echo, Hurry, TreeBody, Wave
from gapless.protocols.gapless.recovery.handovers import Handovers
from gapless.protocols.gapless.recovery.state import BrokerState
from gapless.protocols.gapless.routing.records import Link

__all__ = ["WAVE", "WaveCourse"]

WAVE = "wave"
"""The key of the root's timer."""
FULL = 2
"""Which part of the window may be full before a broker asks for a wave: half of it."""


class WaveCourse:
    """One life's part in it."""

    def __init__(
        self,
        state: BrokerState,
        handovers: Handovers,
        refill: Refill,
        send_tree: Callable[[Link, TreeBody], None],
        set_timer: Callable[[SetTimer], None],
    ) -> None:
        self._state = state
        self._handovers = handovers
        self._refill = refill
        self._send_tree = send_tree
        self._set_timer = set_timer
        self._is_ticking = False
        self._hurried = (-1, False)
        """The wave since which the root knows that somebody waits, and whether it was asked for another."""

    def _parent(self) -> str | None:
        """The next broker on the way to the root; None at the root."""
        membership = self._state.membership
        above = membership.overlay.parent[membership.name]
        if above is None or not membership.excluded(above):
            return above
        chief = membership.stand_in(above)
        return None if chief == membership.name else chief

    def tick_if_root(self) -> None:
        """Let the clock run where the root is."""
        if not self._is_ticking and self._parent() is None:
            self._is_ticking = True
            self._set_timer(SetTimer(WAVE, int(self._state.options.wave_ms * 1000)))

    def tick(self) -> None:
        """The clock of the root has struck: a wave may start."""
        self._is_ticking = False
        self.tick_if_root()
        if self._parent() is None and not self._handovers.under_way:
            wave = self._state.waves.tick()
            if wave is not None:
                self._begin(wave)

    def receive_wave(self, link: Link, wave: Wave) -> None:
        """A wave comes from above."""
        if not self._handovers.under_way and link.peer == self._parent():
            self._begin(wave)

    def _begin(self, wave: Wave) -> None:
        state = self._state
        state.clients.publications.admit_lagging_clients()
        parent = self._parent()
        children = [peer for peer in state.table.links if peer != parent]
        sessions = {client: session.owed for client, session in state.clients.owing.find().items()}
        if state.waves.begin(wave, children, sessions, state.journal.number):
            for peer in children:
                self._send_tree(state.table.links[peer], wave)
            self.echo_if_due()
            state.clients.readings.final()
            state.clients.lagging.watch(state.clients.now)
            self._refill.go_on()

    def hurry(self, *, again: bool = False) -> None:
        """Somebody waits for a later final position, or a wave did not get through: let the root know."""
        parent = self._parent()
        waves = self._state.waves
        if self._handovers.under_way or self._hurried >= (waves.number, again):
            return
        self._hurried = waves.number, again
        if parent is None:
            wave = waves.hurry(again)
            if wave is not None:
                self._begin(wave)
        elif parent in self._state.table.links:
            self._send_tree(self._state.table.links[parent], Hurry(again))

    def hurry_if_full(self) -> None:
        """Clients have published so much that they will soon have to wait for room: what has reached everyone should
        be forgotten by then."""
        if FULL * self._state.journal.weight > self._state.options.window:
            self.hurry()

    def receive_echo(self, link: Link, echo: Echo) -> None:
        """An echo comes from below."""
        self._state.waves.echoed(link.peer, echo)
        self.echo_if_due()

    def echo_if_due(self) -> None:
        """Echo the wave if nothing is missing any more."""
        state = self._state
        if not state.waves.is_open or self._handovers.under_way:
            return
        if self._parent() is None and not state.waves.is_own:
            return
        echo = state.waves.due_echo(state.clients.released, state.journal.held)
        if echo is None:
            return
        parent = self._parent()
        if parent is None:
            wave = state.waves.completed(echo)
            if wave is not None:
                self._begin(wave)
            else:
                state.clients.readings.final()
        elif parent in state.table.links:
            self._send_tree(state.table.links[parent], echo)
