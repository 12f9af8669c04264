"""A broker on a real network: a node, its links, and a listening port.

It listens from the start, so that other brokers can ask whether it remembers them, but accepts no
peer before it has chosen its incarnation (`joining`). Then its `admission` decides which peers to
accept. When it stops, it accepts no more clients, stops reading from the connected ones, flushes
its queues, and says goodbye, so that no peer has to wait for a suspicion.
"""

import asyncio
import errno
import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gapless.disk import DiskContents
from gapless.errors import ConfigError
from gapless.protocol import BrokerNode, BrokerPlace, DeleteEvents, Expel, Forget, Owners, Persisted, Start
from gapless.runtime.access import CLEAR, Access
from gapless.runtime.address import split_address
from gapless.runtime.admission import Admission
from gapless.runtime.audit_log import Actor, AuditLog
from gapless.runtime.broker_disk import BrokerDisk
from gapless.runtime.broker_security import BrokerSecurity
from gapless.runtime.clock import SteadyClock
from gapless.runtime.clock_check import ClockCheck
from gapless.runtime.codec import Codec
from gapless.runtime.connection import Connection
from gapless.runtime.delayed_connection import DelayedConnection
from gapless.runtime.expulsion import Expulsions
from gapless.runtime.joining import ask_whether_remembered, choose_incarnation, later_incarnation
from gapless.runtime.links import Links
from gapless.runtime.listener import TlsListener
from gapless.runtime.log_limit import write_left_out
from gapless.runtime.logs import logger_of
from gapless.runtime.loop_lag import LoopLag
from gapless.runtime.membership_log import MembershipLog
from gapless.runtime.network_file import NetworkConfig
from gapless.runtime.recent_log import RecentLog
from gapless.runtime.report import clients_of, report_of
from gapless.runtime.request_checks import Gate
from gapless.runtime.samples import Samples
from gapless.runtime.waiting import Waiting
from gapless.runtime.wire import REFUSAL, Hello, Refusal, Welcome, frame
from gapless.security.identity import Identity

__all__ = ["Broker", "listen_error"]

DRAIN_POLL_S = 0.02
NEWS_S = 0.5
"""The interval at which the broker looks for changes to log."""


class Broker:
    """One broker of a network: its node, links and listening port. `start` returns when the broker has joined."""

    def __init__(
        self, config: NetworkConfig, name: str, *, trace: str = "", wall_ns: Callable[[], int] = time.time_ns
    ) -> None:
        self.config = config
        self.wall_ns = wall_ns
        """The clock of the host, in nanoseconds since 1970."""
        self.name = name
        self.entry = config.broker(name)
        self.failure: asyncio.Future[BaseException] = asyncio.get_running_loop().create_future()
        """A future that is resolved with the exception when the node fails."""
        self.incarnation = 0
        self.boot = time.time_ns()
        self.started = time.time()
        self.logger = logger_of(name)
        self.audit = AuditLog(config.audit_log.file_of(name), name, self.logger)
        self.broker_security = BrokerSecurity(config, name, self.logger) if config.security is not None else None
        """Authenticates peers and checks permissions; None in a network without TLS."""
        self.reloading: asyncio.Task[bool] | None = None
        """The task that reloads certificates and users."""
        runtime = config.runtime
        self._codec = Codec(
            config.spec, runtime.frame_max, runtime.event_max, runtime.batch_max, runtime.client_frame_max
        )
        self._is_ready = False
        self._broker_node: BrokerNode | None = None
        self._starting_over: asyncio.Task[None] | None = None
        self._awaited: dict[str, str] = {}
        """The brokers that this one waits for while it starts, each with the reason."""
        self._access: Access = CLEAR if config.security is None else config.security.access(name)
        self._around = list(config.overlay.within(name, config.network.f + 1))
        self.clocks = ClockCheck(config, name, self._access, self.logger, wall_ns)
        """Compares the clock of this host with the clocks of other brokers' hosts."""
        self._disk = BrokerDisk(self._on_persisted, self._failed, self.logger) if self.entry.data else None
        self.admission = Admission(self, self.broker_security, self._around, trace)
        """Decides which peers to accept."""
        if self._disk is not None:
            self.admission.on_met = self._disk.note_met
        self._expulsions = Expulsions(self, self.broker_security)
        self._links = self._make_links()
        self._server: asyncio.Server | TlsListener | None = None
        self._membership_log = MembershipLog(self.logger)
        self._waiting = Waiting(self.logger)
        self._log_timer: asyncio.TimerHandle | None = None
        self.loop_lag = LoopLag()
        """The lag of the timer that checks for changes to log."""
        self.recent_log = RecentLog(name)
        self._samples = Samples()

    def _make_links(self) -> Links:
        links = Links(
            self.name,
            self,
            self.config.runtime,
            self._codec,
            self.config.addresses,
            handlers={Expel: self._expulsions.expel, **({} if self._disk is None else self._disk.handlers)},
            failed=self._failed,
            logger=self.logger,
            connection_kind=DelayedConnection if self.config.runtime.delay_ms else Connection,
            tls=self._access.context,
            clock=SteadyClock(self.wall_ns),
        )
        links.refusals.audit = self.audit
        broker_security = (
            self.broker_security
            if self.broker_security is not None and self.broker_security.users is not None
            else None
        )
        links.gate = Gate(
            broker_security,
            self.config.spec.judging,
            self.audit,
            deny=self._expulsions.deny,
            node=lambda: self.node,
            limits=self.config.limits,
            broker_limits=self.config.broker_limits,
        )
        return links

    # ---- start and stop -----------------------------------------------------------------------------------

    async def start(self) -> None:
        """Listen, choose an incarnation, and join the network."""
        found = await self._open_disk()
        host, port = split_address(self.entry.listen or self.entry.address)
        try:
            self._server = await self._listen(host, port)
        except OSError as error:
            await self._close_disk()
            raise listen_error(f"broker {self.name!r}", f"{host}:{port}", error) from None
        self.recent_log.start()
        self.logger.info("listening", extra={"event": "broker.listening", "address": f"{host}:{port}"})
        self._log_membership()
        remembered = None if self._disk is None else self._disk.incarnation
        if remembered is not None:
            incarnation = later_incarnation(remembered)
        else:
            incarnation = await choose_incarnation(self.config, self.name, self.logger, self._awaited, self._access)
        await self._begin_with(incarnation, found)

    async def _open_disk(self) -> DiskContents | None:
        """Return the contents of the broker's data directory, or None if it has none."""
        if self._disk is None:
            return None
        await self._disk.open(self.config, self.name, Path(self.entry.data))
        found = await self._disk.read()
        self.admission.met.update(self._disk.met)
        return found

    async def _listen(self, host: str, port: int) -> asyncio.Server | TlsListener:
        if self.broker_security is None:
            return await asyncio.get_running_loop().create_server(self._accept, host, port, backlog=1024)
        listener = TlsListener(
            self._accept,
            self.broker_security.server_context,
            patience_s=self.config.runtime.hello_ms / 1000,
            in_clear_text=frame(
                REFUSAL, Refusal("tls", f"broker {self.name!r} accepts only TLS; write gapless+tls://")
            ),
            refused=self.admission.turned_away,
            may_connect=self.admission.may_connect,
        )
        self.broker_security.changed = self._expulsions.users_changed
        self.broker_security.looked = self._expulsions.end_removed_users
        self.broker_security.keys_removed = self._expulsions.end_signed
        self.broker_security.reloaded = lambda event, why: self.audit.note(event, because=why)
        await listener.start(host, port)
        self.broker_security.watch()
        return listener

    def _accept(self) -> Connection:
        return self._links.new_connection(None, b"")

    async def _begin_with(self, incarnation: int, found: DiskContents | None) -> None:
        """Start the node with this incarnation and the contents of its disk. A thread reads the disk, because that can
        take long.
        """
        await self.clocks.wait_until_right()
        if self._disk is None:
            self._begin(incarnation)
            return
        await self._disk.note_incarnation(incarnation)
        place = self._place(incarnation, found)
        self._begin(incarnation, await asyncio.to_thread(self.config.spec.broker, place, self.config.options))

    def _place(self, incarnation: int, found: DiskContents | None) -> BrokerPlace:
        owners = Owners() if self._links.gate is None else self._links.gate.owners()
        return BrokerPlace(self.name, self.config.overlay, self.config.network.f, incarnation, found, owners)

    def _begin(self, incarnation: int, node: BrokerNode | None = None) -> None:
        self.incarnation = incarnation
        self._broker_node = node or self.config.spec.broker(self._place(incarnation, None), self.config.options)
        self._links.host.set_node(self._broker_node)
        self._is_ready = True
        self._links.give(Start())
        self._links.watch(self._around, self.config.network.f)
        self._links.detector.reports_pauses = self._disk is not None
        self.logger.info(
            "joined the network",
            extra={
                "event": "broker.joined", "protocol": self.config.spec.name, "incarnation": incarnation,
                "f": self.config.network.f,
            },
        )  # fmt: skip
        self._awaited.clear()
        self.clocks.watch()
        self._membership_log = MembershipLog(self.logger)
        self._log_membership()

    def _log_membership(self) -> None:
        self._cancel_log_timer()
        loop = asyncio.get_running_loop()
        self._log_timer = loop.call_later(NEWS_S, self._log_membership)
        self.loop_lag.timer_fired(loop.time(), NEWS_S)
        overview = {} if self.node is None else self.node.overview()
        if self.node is not None:
            self._membership_log.log_changes(overview, self.node.has_session)
        self._waiting.look(overview, self._awaited, self.clocks.complaint)
        self._samples.look(self.wall_ns() / 1e9, overview, self._links.bytes_out, self.loop_lag.most_ms)
        write_left_out(logging.getLogger("gapless"))

    def _cancel_log_timer(self) -> None:
        if self._log_timer is not None:
            self._log_timer.cancel()

    def _on_persisted(self, item: Persisted) -> None:
        self._links.give(item)

    def _failed(self, error: BaseException) -> None:
        self._is_ready = False
        self._links.host.leave()
        if not self.failure.done():
            self.failure.set_result(error)

    async def _start_over(self, peer: str) -> None:
        """Drop all state and restart with a new incarnation, because a peer remembers an earlier start."""
        self.logger.warning(
            "other brokers remember an earlier start of this broker: restarting with a new incarnation",
            extra={"event": "broker.restarting", "peer": peer},
        )
        self._is_ready = False
        await self._links.close(with_goodbye=False)
        remembered = await ask_whether_remembered(self.config, self.name, peer, self._access)
        self.boot = time.time_ns()
        self._links = self._make_links()
        self._starting_over = None
        incarnation = later_incarnation(max(self.incarnation, remembered if isinstance(remembered, int) else -1))
        await self._begin_with(incarnation, None if self._disk is None else await self._disk.read())

    async def crash(self) -> None:
        """Stop without a goodbye, like a killed process."""
        self._cancel_log_timer()
        self.clocks.stop()
        self._is_ready = False
        self._close_security()
        self.recent_log.stop()
        await self._links.close(with_goodbye=False)
        await self._close_disk()

    async def _close_disk(self) -> None:
        if self._disk is not None:
            await self._disk.close()

    async def stop(self) -> None:
        """Leave the network gracefully: finish sending, and say goodbye to peers."""
        self._is_ready = False
        self._cancel_log_timer()
        self.clocks.stop()
        self.logger.info("draining", extra={"event": "broker.draining"})
        self._close_security()
        self._links.queues.pause(True)
        deadline = time.monotonic() + self.config.runtime.drain_ms / 1000
        while self._links.queues.unsent and time.monotonic() < deadline:
            await asyncio.sleep(DRAIN_POLL_S)
        left = self._links.queues.unsent
        await self._links.close()
        await self._close_disk()
        self.audit.close()
        self.logger.info("stopped", extra={"event": "broker.stopped", "unsent": left})
        self.recent_log.stop()

    def _close_security(self) -> None:
        if self._server is not None:
            self._server.close()
        if self.broker_security is not None:
            self.broker_security.close()

    # ---- called by the links (`Owner`) --------------------------------------------------------------------

    def greeting(self) -> bytes:
        return self.admission.greeting()

    def identify(self, connection: Connection, hello: Hello) -> Identity | Refusal:
        return self.admission.identify(connection, hello)

    def permits(self, identity: Identity, right: str) -> bool:
        return self.admission.permits(identity, right)

    def answer(self, hello: Hello, identity: Identity, host: str) -> Welcome | Refusal:
        return self.admission.answer(hello, identity, host)

    def welcomed(self, connection: Connection, welcome: Welcome) -> Refusal | None:
        return self.admission.welcomed(connection, welcome)

    def refused(self, peer: str, refusal: Refusal) -> None:
        """Handle a refusal by another broker: restart if that broker has met another start of this one; otherwise log
        the reason."""
        if refusal.code == "stale":
            if self._starting_over is None and self._is_ready:
                self._starting_over = asyncio.get_running_loop().create_task(self._start_over(peer))
        elif refusal.code not in ("duplicate", "not-ready"):
            times = self._links.log_backoff.due((peer, "refused", refusal.reason))
            if times:
                facts = {"peer": peer, "code": refusal.code, "times": times}
                self.logger.error(f"refused by a peer: {refusal.reason}", extra={"event": "broker.refused", **facts})

    def protocol_violated(self, client: str, reason: str) -> None:
        """End the session of a client that sent a forbidden request, and notify the client."""
        self._expulsions.end_session(client, "denied", reason)

    def end_client(self, client: str, actor: Actor) -> dict[str, Any]:
        """End the session of a client that blocks publishers, on behalf of an operator, and notify it."""
        return self._expulsions.end_client(client, actor)

    def forget_broker(self, broker: str, actor: Actor) -> dict[str, Any]:
        """Stop waiting for a broker that will not return, on behalf of an operator, and report the lost events."""
        reason = ""
        if not self.config.spec.forgets:
            reason = f"brokers of protocol {self.config.spec.name!r} do not wait for others"
        elif broker == self.name:
            reason = f"{broker!r} is this broker, and it is running"
        elif broker not in self.config.overlay:
            reason = f"there is no broker {broker!r} in this network"
        elif self.node is None:
            reason = f"{self.name!r} has not started yet"
        if reason:
            return {"forgotten": False, "reason": reason}
        self.audit.act("broker.forgotten", "an operator declared that a broker will not return", actor, peer=broker)
        self._links.give(Forget(broker))
        return {"forgotten": True, "reason": ""}

    def delete_events(self, publisher: str, actor: Actor) -> dict[str, Any]:
        """Delete from history all events that a publisher has published so far, on behalf of an operator."""
        reason = ""
        if not self.config.spec.deletes:
            reason = f"brokers of protocol {self.config.spec.name!r} keep no history"
        elif self.node is None:
            reason = f"{self.name!r} has not started yet"
        elif not self.node.may_hold_events_of(publisher):
            reason = f"no events of {publisher!r} are kept"
        else:
            self._links.give(DeleteEvents(publisher))
            if not self.node.has_deleted(publisher):
                reason = f"{self.name!r} already remembers the maximum number of deletions, so it accepts no more"
        if reason:
            return {"deleted": False, "reason": reason}
        self.audit.act("events.deleted", "an operator deleted the events of a publisher", actor, peer=publisher)
        return {"deleted": True, "reason": ""}

    # ---- state --------------------------------------------------------------------------------------------

    @property
    def is_ready(self) -> bool:
        """Return whether the broker has joined."""
        return self._is_ready

    @property
    def hindrance(self) -> str:
        """Return why the broker is not healthy, or an empty string if it is."""
        stopping = [wait.text for wait in self._waiting.waits if wait.stops_broker]
        if not self._is_ready:
            return "; ".join(["not ready", *stopping])
        return "; ".join(stopping)

    @property
    def damages(self) -> list[str]:
        """Return a description of each damage found on the broker's disk."""
        return [] if self._disk is None else list(self._disk.damages)

    @property
    def links(self) -> Links:
        """Return the broker's links."""
        return self._links

    @property
    def node(self) -> BrokerNode | None:
        """Return the running node, or None before the start and after a failure."""
        return self._broker_node if self._links.host.node is not None else None

    def report(self, about: str = "") -> dict[str, Any]:
        """Return the status report that `gapless status` shows, or the details named by `about`."""
        topic, _, after = about.partition(" ")
        match topic:
            case "clients":
                details = clients_of(self.node)
            case "samples":
                details = self._samples.report()
            case "log":
                details = self.recent_log.report(int(after) if after.isdecimal() and len(after) < 16 else 0)
            case _:
                return report_of(self, self._waiting.waits)
        return {"time": self.wall_ns() / 1e9, topic: details}


def listen_error(who: str, address: str, error: OSError) -> ConfigError:
    """Return the error for a port that cannot be opened."""
    if error.errno == errno.EADDRINUSE:
        return ConfigError(
            f"{who} cannot listen on {address}: the port is in use; stop the other process, or choose another port"
        )
    return ConfigError(f"{who} cannot listen on {address}: {error.strerror or error}")
