"""The failure detector of one node: who is silent, who left, who is back.

Any byte is a sign of life; a node that has nothing to say sends a ping. A watched peer that has been silent for too
long is *suspected*, with or without a connection, and it is trusted when it is heard again. `silence` says how long
that is: `suspect_ms`, and longer for a peer that was slow before, or whose kernel still acknowledges what we send. Time
in which this process was late or asleep is not counted, and nobody is suspected whose bytes wait to be read. A
suspicion of a peer that turns out to be alive on the same connection was *false*; both are counted.

No more than f brokers fail at a time, so a broker that hears nothing of more than f doubts itself, and gives them
longer.

With many clients, pings would be most of a broker's work. So it speaks to them the more seldom the more they are, and
looks after some of them at each tick. A ping to a client says how many times more seldom than usual pings come (its
*pace*); the client answers in the same pace, and is as much more patient. Brokers speak to each other as ever.

Two kinds of peers are missed at once, without a suspicion. A peer that said goodbye has *left*. A client whose
connection ended without a goodbye is *lost*: only the client can make another one. Nodes are told `Suspected` in all
cases.
"""

import asyncio
from collections.abc import Callable, Sequence
from math import ceil

from gapless.protocol import Input, Resumed, Suspected, Trusted
from gapless.runtime.clock import now_us
from gapless.runtime.connection import Absence, Link
from gapless.runtime.logs import Logger
from gapless.runtime.settings import RuntimeSettings
from gapless.runtime.turn_meter import TurnMeter
from gapless.runtime.wire import PING, frame

__all__ = ["Detector"]

SILENT_SUSPICIONS = 10
"""After that many times `suspect_ms` without a byte, a connection is given up: nobody holds the other end."""

DOUBT = 3
"""How many times longer than usual brokers may be silent if more than may fail fell silent within that time."""

CLIENT_PINGS_PER_S = 5_000
"""A broker pings its clients no more often, however many they are: ten thousand of them every two seconds."""
AT_ONCE = 50
"""So many clients are looked after before others get their turn: a ping is a call of the system."""

GONE_MAX = 10_000
"""Clients that are remembered as absent after they went away."""

_PING = frame(PING)


class Detector:
    """Watches the links of one node. `give` tells the node, `give_up` ends a connection that nobody holds."""

    def __init__(
        self,
        links: dict[str, Link],
        settings: RuntimeSettings,
        *,
        give: Callable[[Input], None],
        give_up: Callable[[Link], None],
        are_clients_held_back: Callable[[], bool],
        is_broker: bool,
        meter: TurnMeter,
        logger: Logger,
    ) -> None:
        self.absences: dict[Absence, int] = {"suspected": 0, "left": 0, "lost": 0}
        """How often each was the case, for metrics."""
        self.false_suspicions = 0
        """How often a peer was suspected and heard again on the same connection."""
        self.failing_max = 1 << 30
        """How many brokers may fail at a time."""
        self.is_waking_told = False
        """Whether the node wants to know that it stood still."""
        self._loop = asyncio.get_running_loop()
        self._links = links
        self._settings = settings
        self._give = give
        self._give_up = give_up
        self._are_clients_held_back = are_clients_held_back
        self._is_broker = is_broker
        self._meter = meter
        self._logger = logger
        self._gone: dict[str, Absence] = {}
        self._round: list[Link] = []
        """Clients whose turn to be looked after comes."""
        self._due: list[Link] = []
        """Those whose turn it is."""
        self._pace = 1
        """Of our clients."""
        self._ticked_us = now_us()
        self._late_us = 0
        """By how much our event loop was late, all in all."""
        self._tick_s = settings.heartbeat_ms / 2000
        self._ticking = self._loop.call_later(self._tick_s, self._tick)

    def stop(self) -> None:
        """Watch nobody any more."""
        self._ticking.cancel()
        self._due.clear()

    def recall(self, link: Link) -> None:
        """A client is new here, or was missed before."""
        link.absence = self._gone.pop(link.name, "")

    def established(self, link: Link) -> None:
        """It has a new connection."""
        link.sent_us = now_us()
        link.silence.begin(link.sent_us, self._late_us)
        link.seen_in = link.seen_out = -1
        link.pace = 1
        self._set_pace(link)

    # ---- silence ------------------------------------------------------------------------------------------

    def _tick(self) -> None:
        """Plan the next turn first, and look after each peer by itself. So nothing that one peer does, and no bug of
        ours with it, ends the detector."""
        now = now_us()
        slept_us = now - self._ticked_us - int(self._tick_s * 1e6)
        self._ticked_us = now
        brokers = [link for link in self._links.values() if not link.is_client]
        self._tick_s = self._settings.heartbeat_ms / 2000 * min((link.pace for link in brokers), default=1)
        self._ticking = self._loop.call_later(self._tick_s, self._tick)
        begun = self._meter.begin()
        self._wake_up(slept_us)
        self._look_at(brokers)
        self._meter.end(begun, "the failure detector", "")
        self._begin_round(len(self._links) - len(brokers))

    def _wake_up(self, slept_us: int) -> None:
        suspect_us = int(self._settings.suspect_ms * 1000)
        if self.is_waking_told and slept_us > suspect_us - int(self._settings.heartbeat_ms * 1000):
            self._give(Resumed())
        self._late_us += max(0, slept_us)

    def _begin_round(self, count: int) -> None:
        """Choose the clients that are looked after at this tick, of so many: each is twice in the time in which it is
        pinged once. If those of the last tick still wait, we are too busy for more."""
        if self._due or not count:
            return
        if not self._round:
            self._round = [link for link in self._links.values() if link.is_client]
            self._pace = max(1, ceil(count / CLIENT_PINGS_PER_S * 1000 / self._settings.heartbeat_ms))
        some = ceil(count / self._pace)
        self._due, self._round = self._round[:some], self._round[some:]
        self._go_on()

    def _go_on(self) -> None:
        """Look after some of the clients that are due."""
        begun = self._meter.begin()
        self._look_at([link for link in self._due[:AT_ONCE] if self._links.get(link.name) is link])
        self._meter.end(begun, "the failure detector", "")
        del self._due[:AT_ONCE]
        if self._due:
            self._loop.call_soon(self._go_on)

    def _look_at(self, links: Sequence[Link]) -> None:
        now = now_us()
        suspect_us = int(self._settings.suspect_ms * 1000)
        heartbeat_us = int(self._settings.heartbeat_ms * 1000)
        for link in links:
            self._attend(link, self._listen, now, heartbeat_us)
        silent: dict[Link, float] = {}
        for link in links:
            times = self._times_too_long(link, now, suspect_us * link.pace)
            if times > 1.0:
                silent[link] = times
        doubtful = {link for link, times in silent.items() if not link.is_client and times < DOUBT}
        for link in silent:
            if link not in doubtful or len(doubtful) <= self.failing_max:
                self._attend(link, self._suspect)
            silence_us = link.silence.so_far(now, self._late_us)
            if link.connection is not None and silence_us > SILENT_SUSPICIONS * suspect_us * link.pace:
                self._attend(link, self._give_up)

    def _times_too_long(self, link: Link, now: int, suspect_us: int) -> float:
        """How many times longer than it may a peer has been silent; at most 1 if it may be."""
        silence_us = link.silence.so_far(now, self._late_us)
        if silence_us <= suspect_us:
            return 0.0
        connection = link.connection
        if connection is not None and connection.has_unread:
            return 0.0
        limit_us = link.silence.limit(
            now,
            suspect_us,
            is_connected=connection is not None,
            is_acknowledged=connection is not None and connection.was_acknowledged_within(suspect_us / 1000),
            is_client=link.is_client or not self._is_broker,
        )
        return silence_us / limit_us

    def _attend(self, link: Link, work: Callable[..., None], *facts: int) -> None:
        """Look after one peer; if that fails, its connection goes, and nothing else."""
        try:
            work(link, *facts)
        except Exception:
            self._logger.exception("gave up a connection: it could not be looked after", extra={"peer": link.name})
            if link.connection is not None:
                link.connection.lose()

    def _listen(self, link: Link, now: int, heartbeat_us: int) -> None:
        connection = link.connection
        if connection is None:
            return
        self._set_pace(link)
        if connection.bytes_out != link.seen_out:
            link.seen_out, link.sent_us = connection.bytes_out, now
        elif now - link.sent_us >= heartbeat_us * link.pace // 3 and not connection.is_congested:
            self._ping(link)
        if connection.bytes_in != link.seen_in or (
            link.is_client and (connection.is_held or connection.backlog or self._are_clients_held_back())
        ):
            if link.absence == "suspected" and link.seen_in >= 0:
                self.false_suspicions += 1
            link.seen_in = connection.bytes_in
            link.silence.hear(now, self._late_us)
            self.trust(link)

    def _set_pace(self, link: Link) -> None:
        """A client learns its pace at once: it becomes impatient otherwise."""
        if link.is_client and link.pace != self._pace:
            link.pace = self._pace
            self._ping(link)

    def _ping(self, link: Link) -> None:
        if link.connection is not None:
            link.connection.write((frame(PING, link.pace) if link.is_client and link.pace > 1 else _PING,))

    def _suspect(self, link: Link) -> None:
        self.miss(link, "suspected")

    # ---- opinions -----------------------------------------------------------------------------------------

    def miss(self, link: Link, absence: Absence) -> None:
        """The peer is not there. Of a client that has no connection any more, only this is remembered."""
        if not link.absence:
            link.absence = absence
            self.absences[absence] += 1
            self._logger.info(absence, extra={"peer": link.name})
            self._give(Suspected(link.name))
        if link.is_client and link.connection is None and self._links.get(link.name) is link:
            del self._links[link.name]
            self._gone[link.name] = link.absence
            while len(self._gone) > GONE_MAX:
                del self._gone[next(iter(self._gone))]

    def trust(self, link: Link) -> None:
        """The peer is heard."""
        if link.absence:
            self._logger.info("trusted" if link.absence == "suspected" else "is here again", extra={"peer": link.name})
            link.absence = ""
            self._give(Trusted(link.name))
