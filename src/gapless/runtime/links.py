"""Manages the connections to all peers of one node. `detector` measures silence, `queues` bounds send queues.

**Connections.** The first message for a peer opens a link, which is kept: a lost connection is
dialled again, with growing pauses. Both ends receive `Connected` for every new connection. If both
ends dial at the same time, one connection must win, and both must agree which. The *senior*, whose
name is smaller, decides: it refuses an incoming connection while its own greeting is in flight or
its own connection is open, and the junior accepts whatever the senior dials. A restarted peer
(another `boot`) is always accepted.

**Lost messages.** Messages for a peer wait for the first connection. When a connection is lost, its
queue is lost with it, and so are messages until the next one: `Connected` notifies the node, and
the protocol repeats what matters.
"""

import asyncio
import random
import ssl
from collections.abc import Callable, Mapping
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any

from gapless.errors import DeniedError, GaplessError
from gapless.protocol import Connected, Input
from gapless.runtime.address import split_address, why_unreachable
from gapless.runtime.audit_log import Actor
from gapless.runtime.clock import SteadyClock, now_us
from gapless.runtime.codec import Codec
from gapless.runtime.connection import Connection, Link
from gapless.runtime.counters import Counters
from gapless.runtime.deferred_work import DeferredWork
from gapless.runtime.detector import Detector
from gapless.runtime.dialling import dial
from gapless.runtime.host import NodeHost
from gapless.runtime.log_backoff import LogBackoff
from gapless.runtime.logs import Logger
from gapless.runtime.owner import Owner
from gapless.runtime.pending_connections import PendingConnections
from gapless.runtime.queues import Queues
from gapless.runtime.refusal_log import RefusalLog
from gapless.runtime.refused_connections import RefusedConnections
from gapless.runtime.settings import RuntimeSettings
from gapless.runtime.turn_meter import TurnMeter
from gapless.runtime.turns import Turns
from gapless.runtime.wire import BROKER, BYE, CLIENT, PROBE, WELCOME, Hello, Refusal, Welcome, frame
from gapless.security.identity import Identity

if TYPE_CHECKING:  # clients have links, too, and import no code of brokers
    from gapless.runtime.request_checks import Gate

__all__ = ["Links"]

ANONYMOUS_MAX = 1_000
"""The maximum number of connections without a greeting; if there are more, one is closed (`pending_connections`)."""
EVICTED = "it did not send a greeting, and its place was needed"


class Links:
    """The links of one node, by peer."""

    def __init__(
        self,
        name: str,
        owner: Owner,
        settings: RuntimeSettings,
        codec: Codec,
        addresses: Mapping[str, str],
        *,
        handlers: Mapping[type, Callable[[Any], None]],
        failed: Callable[[BaseException], None],
        logger: Logger,
        connection_kind: type[Connection] = Connection,
        tls: Callable[[], ssl.SSLContext | None] = lambda: None,
        clock: SteadyClock | None = None,
    ) -> None:
        self.loop = asyncio.get_running_loop()
        self.name = name
        self.settings = settings
        self.codec = codec
        self.addresses = addresses
        self.links: dict[str, Link] = {}
        self.refused_connections = RefusedConnections(self.loop)
        self.counters = Counters()
        self.meter = TurnMeter(self.loop, logger)
        self.deferred = DeferredWork(self.loop)
        self.queues = Queues(self.links, settings, codec, self.counters, give_up=self._give_up, logger=logger)
        self.host = NodeHost(
            self.loop,
            self.links,
            self.meter,
            self.deferred,
            open_link=self.open,
            flush=self.queues.flush,
            failed=failed,
            handlers=handlers,
            clock=clock or SteadyClock(),
        )
        self.turns = Turns(self.loop, self.is_readable)
        self.log_backoff = LogBackoff()
        self.refusals = RefusalLog(name, self.counters, self.log_backoff, logger)
        self.gate: Gate | None = None
        """Checks the requests of clients; None if every request is allowed."""
        self.denied: Callable[[str, str], None] | None = None
        """Called with a name and a reason when a broker refuses the subscription or advertisement of that name."""
        self._owner = owner
        self._logger = logger
        self._connection_kind = connection_kind
        self._tls = tls
        self._anonymous: PendingConnections[Connection] = PendingConnections(ANONYMOUS_MAX)
        self._nobody = Link("nobody", is_client=True)
        self._nobody.was_up = True
        self._is_closing = False
        self.detector = Detector(
            self.links,
            settings,
            give=self.host.give,
            give_up=self._give_up,
            are_clients_held_back=lambda: self.queues.is_paused,
            is_broker=name in addresses,
            meter=self.meter,
            logger=logger,
        )

    # ---- opening ------------------------------------------------------------------------------------------

    def open(self, peer: str) -> Link:
        """Return the link to a peer. A missing link to a broker is created and dialled; for an absent client, return a
        link that discards messages."""
        link = self.links.get(peer)
        if link is not None:
            return link
        address = self.addresses.get(peer)
        if address is None or peer == self.name:
            return self._nobody
        link = self.links[peer] = Link(peer, is_client=False, address=address, now=now_us())
        self._dial(link)
        return link

    def _dial(self, link: Link) -> None:
        if link.address and link.connection is None and link.dialling is None and not self._is_closing:
            link.dialling = self.loop.create_task(self._keep_dialling(link))

    async def _keep_dialling(self, link: Link) -> None:
        pause, pause_max = self.settings.redial_min_ms / 1000, self.settings.redial_max_ms / 1000
        try:
            if link.was_up and now_us() - link.established_us < pause_max * 1e6:
                await asyncio.sleep(pause_max)  # so that a peer that ends every connection is not dialled continuously
            while link.connection is None and not self._is_closing:
                await self._dial_once(link)
                if link.connection is not None:
                    return
                await asyncio.sleep(pause * random.uniform(0.75, 1.25))
                pause = min(2 * pause, pause_max)
        finally:
            link.dialling = None

    def new_connection(self, target: Link | None, greeting: bytes) -> Connection:
        """Return one end of a connection that is about to be made. If there is a target, this node dials."""
        return self._connection_kind(self, self.settings, target, greeting)

    async def _dial_once(self, link: Link) -> None:
        connection = self.new_connection(link, self._owner.greeting())
        host, port = split_address(link.address)
        try:
            async with asyncio.timeout(self.settings.hello_ms / 1000):
                await dial(self.loop, lambda: connection, host, port, self._tls())
        except (OSError, TimeoutError) as error:
            connection.lose()
            reason = why_unreachable(link.address, error)
            times = self.log_backoff.due((link.name, "unreachable", reason))
            if times:
                self._logger.info(
                    f"cannot be reached: {reason}",
                    extra={"event": "peer.unreachable", "peer": link.name, "times": times},
                )
            return
        await connection.greeted
        if connection.refusal is not None:
            self._owner.refused(link.name, connection.refusal)

    # ---- greetings ----------------------------------------------------------------------------------------

    def arrived(self, connection: Connection) -> None:
        """Handle an incoming connection, whose peer is still unknown."""
        victim = self._anonymous.add(connection, connection.peer_host)
        if victim is not None:
            self.refusals.unauthenticated(victim.peer_address, "evicted", EVICTED)
            victim.abort()

    def asked(self, connection: Connection, hello: Hello) -> None:
        """Handle the greeting of a peer that dialled."""
        found = self._owner.identify(connection, hello)
        if isinstance(found, Refusal):
            connection.refuse(found.code, found.reason)
            return
        connection.identity = found
        answer = self._owner.answer(hello, found, connection.peer_host)
        if isinstance(answer, Welcome) and hello.role == BROKER and self._keeps_own_connection(hello):
            answer = Refusal("duplicate", "there is already a connection, or will be in a moment")
        if isinstance(answer, Refusal):
            connection.refuse(answer.code, answer.reason)
            return
        connection.write((frame(WELCOME, answer),))
        connection.is_welcome = True
        is_clock_check = hello.role == PROBE and found.kind != "user" and hello.name in self.addresses
        if self.refusals.audit is not None and not is_clock_check:
            self.refusals.audit.login(hello, Actor(found, connection.peer_address))
        if hello.role == PROBE:
            return
        link = self.links.get(hello.name)
        if link is None:
            is_client = hello.role == CLIENT
            address = "" if is_client else self.addresses.get(hello.name, "")
            link = self.links[hello.name] = Link(hello.name, is_client=is_client, address=address, now=now_us())
            self.detector.recall(link)
        if found.expires < inf:
            connection.await_expiry(found)
        self._establish(link, connection, hello.boot)

    def _keeps_own_connection(self, hello: Hello) -> bool:
        """Return whether this node is the senior and keeps its own connection, open or in progress, to the same start
        of the peer."""
        link = self.links.get(hello.name)
        if link is None or self.name > hello.name:
            return False
        if link.connection is not None:
            return link.connection.is_dialled and link.connection.boot == hello.boot
        return link.greeting_connection is not None

    def welcomed(self, connection: Connection, welcome: Welcome) -> None:
        """Handle the welcome of a peer that this node dialled."""
        refusal = self._owner.welcomed(connection, welcome)
        if refusal is not None:
            connection.refuse(refusal.code, refusal.reason)
            return
        link = connection.target
        assert link is not None
        if welcome.name != link.name:
            connection.refuse("name", f"expected {link.name!r} at this address, but it is {welcome.name!r}")
        elif self.links.get(link.name) is not link:
            connection.abort()  # no longer needed; if established, it would compete with its successor permanently
        elif link.connection is not None and self.name > welcome.name:
            connection.abort()  # the senior's connection was first
        else:
            self._establish(link, connection, welcome.boot)

    def _establish(self, link: Link, connection: Connection, boot: int) -> None:
        if link.connection is not None:
            self._disconnect(link)
        self._anonymous.discard(connection)
        if link.was_up:
            link.outbox.clear()
        link.connection = connection
        link.was_up = True
        link.established_us = now_us()
        connection.boot = boot
        connection.establish(link)
        self.detector.established(link)
        if self.gate is not None and link.is_client and connection.identity is not None:
            self.gate.add_connection(link, connection.identity, connection.peer_host)
        if link.is_client and self.queues.is_paused:
            connection.pause_reading()
        if link.outbox:
            self.queues.flush([link])
        self._logger.debug(
            "connected", extra={"event": "peer.connected", "peer": link.name, "address": connection.peer_address}
        )
        self.host.give(Connected(link.name))
        self.detector.trust(link)

    def permits(self, identity: Identity, right: str) -> bool:
        return self._owner.permits(identity, right)

    def report(self, about: str = "") -> dict[str, Any]:
        begun = self.meter.begin()
        try:
            return self._owner.report(about)
        finally:
            self.meter.end(begun, "a report", about)

    def end_client(self, client: str, actor: Actor) -> dict[str, Any]:
        return self._owner.end_client(client, actor)

    def forget_broker(self, broker: str, actor: Actor) -> dict[str, Any]:
        return self._owner.forget_broker(broker, actor)

    def delete_events(self, publisher: str, actor: Actor) -> dict[str, Any]:
        return self._owner.delete_events(publisher, actor)

    # ---- the end of a connection --------------------------------------------------------------------------

    def _disconnect(self, link: Link) -> None:
        """Detach the connection from the link, and close it."""
        connection = link.connection
        assert connection is not None
        link.connection = None
        connection.link = None
        connection.abort()
        if self.gate is not None and link.is_client:
            self.gate.remove_connection(link)
        self._count(connection)
        self.queues.forget(link)

    def _count(self, connection: Connection) -> None:
        self.counters.bytes_in += connection.bytes_in
        self.counters.bytes_out += connection.bytes_out

    def refusing(self, connection: Connection, code: str, reason: str) -> None:
        """Count and log that this node is about to end the connection."""
        self.refusals.ended(connection, code, reason)

    def ended(self, connection: Connection) -> None:
        """Handle the end of a connection, whatever the reason."""
        self.turns.forget(connection)
        self._anonymous.discard(connection)
        link = connection.link
        if link is None or link.connection is not connection:
            return
        self._logger.debug("disconnected", extra={"event": "peer.disconnected", "peer": link.name})
        self._disconnect(link)
        if connection.refusal is not None:
            self._owner.refused(link.name, connection.refusal)
        if link.is_client:
            self.deferred.do(partial(self._lose, link))
        self._dial(link)

    def _lose(self, link: Link) -> None:
        """Handle a client's connection that ended without a goodbye, unless the client has reconnected."""
        if link.connection is None and self.links.get(link.name) is link:
            self.detector.miss(link, "lost")

    def said_goodbye(self, connection: Connection, reason: str) -> None:
        """Record that a peer leaves gracefully, so that no suspicion is needed."""
        link = connection.link
        assert link is not None
        link.refused_connection = reason
        self._disconnect(link)
        self.detector.miss(link, "left")
        self._dial(link)

    def part(self, peer: str) -> None:
        """Say goodbye to a peer that is no longer needed. It is dialled again for the next message."""
        link = self.links.pop(peer, None)
        if link is None:
            return
        if link.dialling is not None:
            link.dialling.cancel()
        if link.connection is not None:
            self.queues.leave(link)
            self._count(link.connection)
            link.connection.link = None
            link.connection.close(frame(BYE))

    def expel(self, link: Link, code: str, reason: str) -> None:
        """End the connection of a peer with a reason."""
        connection = link.connection
        if connection is not None:
            connection.refuse(code, reason)

    # ---- messages -----------------------------------------------------------------------------------------

    def received(self, link: Link, connection: Connection, body: memoryview) -> None:
        """Decode and process a batch of messages."""
        begun = self.meter.begin()
        messages: list[Any] = []
        try:
            messages = self.codec.decode(body, is_client=link.is_client)
            self.counters.frames_in += 1
            self.counters.messages_in += len(messages)
            self.take_in(link, connection, messages, len(body))
        finally:
            self.meter.end(begun, link.name, messages)

    def take_in(self, link: Link, connection: Connection, messages: list[Any], size: int = 0) -> None:
        """Pass messages to the node. The rest stays with the connection and is passed here again without a size, as do
        messages of a client that exceeded its rate.
        """
        begun = self.meter.begin()
        try:
            judge = self.gate.judge if self.gate is not None and link.is_client else None
            connection.backlog = self.host.receive(link, messages, self.turns.deadline_us, judge)
            if connection.backlog:
                self.turns.wait(connection)
        except DeniedError as error:
            self._owner.protocol_violated(link.name, str(error))
        except GaplessError as error:
            self.expel(link, "malformed", str(error))
        finally:
            self.meter.end(begun, link.name, messages)
        if self.gate is not None and link.is_client:
            connection.hold(self.gate.wait_s(link, size))
        self.queues.look()

    def drained(self, connection: Connection) -> None:
        """Send queued messages, because the write buffer of the connection has drained."""
        self.queues.drained(connection)

    def _give_up(self, link: Link) -> None:
        if link.connection is not None:
            self._disconnect(link)
        self._dial(link)

    def has_time_for(self, connection: Connection) -> bool:
        """Return whether the connection is read in this turn. If not, it is resumed when its turn comes."""
        return self.turns.has_time_for(connection)

    def is_readable(self, connection: Connection) -> bool:
        """Return whether more data may be read from the connection now."""
        if connection.link is None or not connection.link.is_client:
            return True
        return not self.queues.is_paused and not connection.is_held

    def watch(self, peers: list[str], failing_max: int) -> None:
        """Keep connections to these brokers, and detect their failures. At most `failing_max` fail at a time."""
        self.detector.failing_max = failing_max
        for peer in peers:
            self.open(peer)

    # ---- totals and end -------------------------------------------------------------------------------------

    @property
    def client_count(self) -> int:
        """Return the number of connected clients."""
        return sum(link.is_client and link.connection is not None for link in self.links.values())

    @property
    def bytes_in(self) -> int:
        """Return the number of bytes read so far from all connections."""
        lasting = (link.connection.bytes_in for link in self.links.values() if link.connection is not None)
        return self.counters.bytes_in + sum(lasting)

    @property
    def bytes_out(self) -> int:
        """Return the number of bytes written so far to all connections."""
        lasting = (link.connection.bytes_out for link in self.links.values() if link.connection is not None)
        return self.counters.bytes_out + sum(lasting)

    def give(self, item: Input) -> None:
        """Pass one input to the node."""
        self.host.give(item)

    async def close(self, *, with_goodbye: bool = True, reason: str = "") -> None:
        """Close all connections after their queues are sent. Only brokers receive the reason."""
        self._is_closing = True
        self.detector.stop()
        self.host.leave()
        dialling = [link.dialling for link in self.links.values() if link.dialling is not None]
        for task in dialling:
            task.cancel()
        await asyncio.gather(*dialling, return_exceptions=True)
        last = frame(BYE) if with_goodbye else b""
        to_brokers = frame(BYE, reason) if with_goodbye and reason else last
        connections = [(link.connection, last if link.is_client else to_brokers) for link in self.links.values()]
        for connection, refused_connection in [*connections, *((each, last) for each in self._anonymous)]:
            if connection is not None:
                connection.link = None
                connection.close(refused_connection)
        self.links.clear()
        self.refused_connections.end()
