"""Detects failures for one node: which peers are silent, have left, or are reachable again.

Any byte is a sign of life; an idle node sends a ping. A watched peer that is silent for too long is
*suspected*, with or without a connection, and trusted when it is heard again. `silence` computes
the limit: `suspect_ms`, and more for a peer that was slow before, or whose kernel still
acknowledges packets. Time in which this process was late or suspended does not count, and a peer
with unread bytes is not suspected. A suspicion of a peer that turns out to be alive on the same
connection was *false*; both kinds are counted.

At most f brokers fail at a time. So a broker that hears nothing from more than f others doubts its
own connection, and waits longer for them.

With many clients, pings would be most of a broker's work. So the interval grows with the number of
clients, and each tick handles some of them. A ping to a client carries a factor by which pings are
less frequent than usual (its *pace*); the client uses the same pace for its pings and for its
timeout. Brokers are not affected. Clients that run in the broker's own process, such as those of
the HTTP gateway, have a pace of at least `IN_PROCESS_PACE`: they fail with their broker.

Two kinds of peers are absent at once, without a suspicion. A peer that said goodbye has *left*. A
client whose connection ended without a goodbye is *lost*: only the client can create another one.
Nodes receive `Suspected` in all cases.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
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
"""The multiple of `suspect_ms` without any byte after which a connection is closed."""

DOUBT = 3
"""The factor by which the limit for brokers grows when more than f of them fall silent within it."""

CLIENT_PINGS_PER_S = 2_000
"""The maximum rate of a broker's pings to all its clients: each of 10,000 clients every five seconds."""
IN_PROCESS_PACE = 10
AT_ONCE = 50
"""The number of clients that are handled before other work gets its turn, because each ping is a system call."""

HAPPENED: Mapping[Absence, str] = {
    "suspected": "is suspected to have failed", "left": "left", "lost": "lost its connection"
}  # fmt: skip
GONE_MAX = 10_000
"""The maximum number of disconnected clients whose absence is remembered."""

_PING = frame(PING)


class Detector:
    """Watches the links of one node. `give` passes suspicions to the node, `give_up` closes a dead connection."""

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
        """How many times a peer was suspected, left or was lost, for metrics."""
        self.false_suspicions = 0
        """How many times a suspected peer was heard again on the same connection."""
        self.failing_max = 1 << 30
        """The number of brokers that may fail at a time (f)."""
        self.reports_pauses = False
        """Whether the node receives `Resumed` after a pause of this process."""
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
        """Clients that are still to be checked in this round."""
        self._due: list[Link] = []
        """Clients that are to be checked now."""
        self._pace = 1
        """The factor by which pings to idle clients are less frequent."""
        self._rounds = 0
        self._in_process: set[str] = set()
        """Clients that run in this process."""
        self._ticked_us = now_us()
        self._late_us = 0
        """The total lag of the event loop so far, in microseconds."""
        self._tick_s = settings.heartbeat_ms / 2000
        self._ticking = self._loop.call_later(self._tick_s, self._tick)

    def stop(self) -> None:
        """Stop watching."""
        self._ticking.cancel()
        self._due.clear()

    def recall(self, link: Link) -> None:
        """Restore the absence of a client that connects again, if it is remembered."""
        link.absence = self._gone.pop(link.name, "")

    def reduce_pings(self, client: str) -> None:
        """Send a client fewer pings, because it runs in this process."""
        self._in_process.add(client)
        if client in self._links:
            self._set_pace(self._links[client])

    def restore_pings(self, client: str) -> None:
        """Forget a client of this process that was closed."""
        self._in_process.discard(client)

    def established(self, link: Link) -> None:
        """Start to measure the silence of a peer with a new connection."""
        link.sent_us = now_us()
        link.silence.begin(link.sent_us, self._late_us)
        link.seen_in = link.seen_out = -1
        link.pace = 1
        self._set_pace(link)

    # ---- silence ------------------------------------------------------------------------------------------

    def _tick(self) -> None:
        """Check all peers for silence. The next tick is scheduled first and each peer is handled separately, so that no
        error stops the detector.
        """
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
        if self.reports_pauses and slept_us > suspect_us - int(self._settings.heartbeat_ms * 1000):
            self._give(Resumed())
        self._late_us += max(0, slept_us)

    def _begin_round(self, count: int) -> None:
        """Choose the `count` clients for this tick, so that each is checked twice per ping interval. If those of the
        last tick are not finished, the process has no time for more.
        """
        if self._due or not count:
            return
        if not self._round:
            self._rounds += 1
            left_out = self._in_process if self._rounds % IN_PROCESS_PACE else ()
            self._round = [link for link in self._links.values() if link.is_client and link.name not in left_out]
            self._pace = max(1, ceil(count / CLIENT_PINGS_PER_S * 1000 / self._settings.heartbeat_ms))
        some = ceil(count / self._pace)
        self._due, self._round = self._round[:some], self._round[some:]
        self._check_next()

    def _check_next(self) -> None:
        """Check some of the clients that are due."""
        begun = self._meter.begin()
        self._look_at([link for link in self._due[:AT_ONCE] if self._links.get(link.name) is link])
        self._meter.end(begun, "the failure detector", "")
        del self._due[:AT_ONCE]
        if self._due:
            self._loop.call_soon(self._check_next)

    def _look_at(self, links: Sequence[Link]) -> None:
        now = now_us()
        suspect_us = int(self._settings.suspect_ms * 1000)
        heartbeat_us = int(self._settings.heartbeat_ms * 1000)
        for link in links:
            self._run_isolated(link, self._listen, now, heartbeat_us)
        silent: dict[Link, float] = {}
        for link in links:
            times = self._times_too_long(link, now, suspect_us * link.pace)
            if times > 1.0:
                silent[link] = times
        doubtful = {link for link, times in silent.items() if not link.is_client and times < DOUBT}
        for link in silent:
            if link not in doubtful or len(doubtful) <= self.failing_max:
                self._run_isolated(link, self._suspect)
            silence_us = link.silence.so_far(now, self._late_us)
            if link.connection is not None and silence_us > SILENT_SUSPICIONS * suspect_us * link.pace:
                self._run_isolated(link, self._give_up)

    def _times_too_long(self, link: Link, now: int, suspect_us: int) -> float:
        """Return the silence of a peer divided by its limit. A value of at most 1 is within the limit."""
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

    def _run_isolated(self, link: Link, work: Callable[..., None], *facts: int) -> None:
        """Do some work for one peer. If it raises, close only that peer's connection."""
        try:
            work(link, *facts)
        except Exception:
            self._logger.exception(
                "closed a connection: handling its peer failed", extra={"event": "connection.failed", "peer": link.name}
            )
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
            link.silence.note(now, self._late_us)
            self.trust(link)

    def _set_pace(self, link: Link) -> None:
        """Send a client its new pace immediately, so that the client does not time out."""
        pace = max(self._pace, IN_PROCESS_PACE) if link.name in self._in_process else self._pace
        if link.is_client and link.pace != pace:
            link.pace = pace
            self._ping(link)

    def _ping(self, link: Link) -> None:
        if link.connection is not None:
            link.connection.write((frame(PING, link.pace) if link.is_client and link.pace > 1 else _PING,))

    def _suspect(self, link: Link) -> None:
        self.miss(link, "suspected")

    # ---- absence ------------------------------------------------------------------------------------------

    def miss(self, link: Link, absence: Absence) -> None:
        """Record the absence of a peer and notify the node. For a disconnected client, only the absence is
        remembered.
        """
        if not link.absence:
            link.absence = absence
            self.absences[absence] += 1
            self._logger.info(f"{link.name} {HAPPENED[absence]}", extra={"event": f"peer.{absence}", "peer": link.name})
            self._give(Suspected(link.name))
        if link.is_client and link.connection is None and self._links.get(link.name) is link:
            del self._links[link.name]
            self._gone[link.name] = link.absence
            while len(self._gone) > GONE_MAX:
                del self._gone[next(iter(self._gone))]

    def trust(self, link: Link) -> None:
        """Record that a peer was heard again, and notify the node."""
        if link.absence:
            self._logger.info(f"{link.name} is reachable again", extra={"event": "peer.reachable", "peer": link.name})
            link.absence = ""
            self._give(Trusted(link.name))
