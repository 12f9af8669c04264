"""A broker of a real network: a node, its links, and a port to listen on.

It listens from the start, so that others can ask it whether it remembers them, but lets nobody in before it has chosen
its life (`joining`). Whoever it has met it remembers by incarnation and boot, and does not listen to an earlier start
again. Told to stop, it lets no client in any more, stops reading those it has, sends what waits, and says goodbye, so
that nobody has to wait for a suspicion.
"""

import asyncio
import errno
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from gapless.disk import DiskContents
from gapless.errors import ConfigError
from gapless.protocol import BrokerNode, BrokerPlace, EndSession, Expel, HistoryRead, Persisted, Start
from gapless.runtime.access import CLEAR, Access
from gapless.runtime.address import split_address
from gapless.runtime.broker_disk import BrokerDisk
from gapless.runtime.codec import Codec
from gapless.runtime.connection import Connection, Link
from gapless.runtime.distant_connection import DistantConnection
from gapless.runtime.doors import Doors
from gapless.runtime.gate import Gate
from gapless.runtime.joining import ask_whether_remembered, choose_incarnation, later_incarnation
from gapless.runtime.links import Links
from gapless.runtime.listener import TlsListener
from gapless.runtime.logs import logger_of
from gapless.runtime.network_file import NetworkConfig
from gapless.runtime.news import News
from gapless.runtime.waiting import Waiting
from gapless.runtime.wire import BROKER, CLIENT, DENIED, REFUSAL, VERSION, Hello, Refusal, Welcome, frame, greeting
from gapless.security.identity import ANYBODY, Identity, user_of
from gapless.security.users_file import Users

__all__ = ["Broker", "listen_error"]

DRAIN_POLL_S = 0.02
NEWS_S = 0.5
"""How often it looks whether there is something to tell in the log."""


class Broker:
    """One broker of a network. `start` returns when it takes part."""

    def __init__(self, config: NetworkConfig, name: str, *, trace: str = "") -> None:
        self.config = config
        self.name = name
        self.entry = config.broker(name)
        self.failure: asyncio.Future[BaseException] = asyncio.get_running_loop().create_future()
        """Done when the node has failed, with what it failed of."""
        self.incarnation = 0
        self.boot = time.time_ns()
        self.started = time.time()
        self.logger = logger_of(name)
        self.doors = Doors(config, name, self.logger) if config.security is not None else None
        """Who may come in; None if anybody may, in clear text."""
        self.reloading: asyncio.Task[bool] | None = None
        """Reads certificates and users again."""
        self._broker_hosts: dict[str, None] = {}
        """From where brokers came who proved to be such: a crowd of others does not keep them out."""
        self._trace = trace
        self._codec = Codec(config.spec, config.runtime.frame_max, config.runtime.event_max)
        self._met: dict[str, tuple[int, int]] = {}
        self._is_ready = False
        self._inhabitant: BrokerNode | None = None
        self._starting_over: asyncio.Task[None] | None = None
        self._awaited: dict[str, str] = {}
        """While it starts: who is waited for, and why."""
        self._access: Access = CLEAR if config.security is None else config.security.access(name)
        self._around = list(config.overlay.within(name, config.network.f + 1))
        self._options = msgspec.to_builtins(config.options)
        self._disk = BrokerDisk(self._hear_disk, self._failed, self.logger) if self.entry.data else None
        self._links = self._make_links()
        self._server: asyncio.Server | TlsListener | None = None
        self._news = News(self.logger)
        self._waiting = Waiting(self.logger)
        self._telling: asyncio.TimerHandle | None = None

    def _make_links(self) -> Links:
        links = Links(
            self.name,
            self,
            self.config.runtime,
            self._codec,
            self.config.addresses,
            handlers={Expel: self._expel, **({} if self._disk is None else self._disk.handlers)},
            failed=self._failed,
            logger=self.logger,
            connection_kind=DistantConnection if self.config.runtime.delay_ms else Connection,
            tls=self._access.context,
        )
        judging = self.config.spec.judging
        if self.doors is not None and self.doors.users is not None:
            assert judging is not None, "checked with the network's file"
            links.gate = Gate(
                self.doors, judging, deny=self._deny, held_by=self._held_by, reads_history=self._reads_history
            )
        return links

    def _held_by(self, client: str) -> dict[str, str]:
        return {} if self._node is None else self._node.held_by(client)

    def _reads_history(self, client: str) -> bool:
        return self._node is not None and self._node.reads_history(client)

    @property
    def _node(self) -> BrokerNode | None:
        """What takes part; None until it does, and if it failed."""
        return self._inhabitant if self._links.host.node is not None else None

    # ---- a life -------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Listen, join, and take part."""
        found = await self._open_disk()
        host, port = split_address(self.entry.listen or self.entry.address)
        try:
            self._server = await self._listen(host, port)
        except OSError as error:
            await self._close_disk()
            raise listen_error(f"broker {self.name!r}", f"{host}:{port}", error) from None
        self.logger.info("listening", extra={"address": f"{host}:{port}"})
        self._tell_news()
        remembered = None if self._disk is None else self._disk.incarnation
        if remembered is not None:
            incarnation = later_incarnation(remembered)
        else:
            incarnation = await choose_incarnation(self.config, self.name, self.logger, self._awaited, self._access)
        await self._begin_with(incarnation, found)

    async def _open_disk(self) -> DiskContents | None:
        """What the broker's directory holds; None if it has none."""
        if self._disk is None:
            return None
        await self._disk.open(self.config, self.name, Path(self.entry.data))
        found = await self._disk.read()
        self._met.update(self._disk.met)
        return found

    async def _listen(self, host: str, port: int) -> asyncio.Server | TlsListener:
        if self.doors is None:
            return await asyncio.get_running_loop().create_server(self._accept, host, port, backlog=1024)
        listener = TlsListener(
            self._accept,
            self.doors.server_context,
            patience_s=self.config.runtime.hello_ms / 1000,
            in_clear_text=frame(REFUSAL, Refusal("tls", f"broker {self.name!r} speaks TLS only; write gapless+tls://")),
            refused=self._turned_away,
            may_come=self._may_come,
        )
        self.doors.changed = self._users_changed
        self.doors.looked = self._end_strangers
        await listener.start(host, port)
        self.doors.watch()
        return listener

    def _may_come(self, host: str) -> bool:
        if host in self._broker_hosts or self._links.gate is None or self._links.gate.may_come():
            return True
        self._links.refusals.stranger(f"{host}:0", "limit", "more connect in a second than this broker takes")
        return False

    def _turned_away(self, address: str, code: str, reason: str) -> None:
        """Somebody did not get as far as a greeting."""
        self._links.refusals.stranger(address, code, reason)

    def _accept(self) -> Connection:
        return self._links.new_connection(None, b"")

    async def _begin_with(self, incarnation: int, found: DiskContents | None) -> None:
        """Begin with what is on the disk. A node may have much to read, so a thread makes it."""
        if self._disk is None:
            self._begin(incarnation)
            return
        self._disk.note_incarnation(incarnation)
        place = self._place(incarnation, found)
        self._begin(incarnation, await asyncio.to_thread(self.config.spec.broker, place, self.config.options))

    def _place(self, incarnation: int, found: DiskContents | None) -> BrokerPlace:
        return BrokerPlace(self.name, self.config.overlay, self.config.network.f, incarnation, found)

    def _begin(self, incarnation: int, node: BrokerNode | None = None) -> None:
        self.incarnation = incarnation
        self._inhabitant = node or self.config.spec.broker(self._place(incarnation, None), self.config.options)
        self._links.host.inhabit(self._inhabitant)
        self._is_ready = True
        self._links.give(Start())
        self._links.watch(self._around, self.config.network.f)
        self.logger.info(
            "takes part",
            extra={"protocol": self.config.spec.name, "incarnation": incarnation, "f": self.config.network.f},
        )
        warning = self.config.spec.warns(self.config.overlay, self.config.network.f, self.config.options)
        if warning is not None:
            self.logger.warning(warning)
        self._awaited.clear()
        self._news = News(self.logger)
        self._tell_news()

    def _tell_news(self) -> None:
        self._hush()
        self._telling = asyncio.get_running_loop().call_later(NEWS_S, self._tell_news)
        overview = self._overview()
        self._news.tell(overview)
        self._waiting.look(overview, self._awaited)

    def _hush(self) -> None:
        if self._telling is not None:
            self._telling.cancel()

    def _hear_disk(self, item: Persisted | HistoryRead) -> None:
        self._links.give(item)

    def _failed(self, error: BaseException) -> None:
        self._is_ready = False
        self._links.host.leave()
        if not self.failure.done():
            self.failure.set_result(error)

    async def _start_over(self, peer: str) -> None:
        """A peer remembers another start of us: forget everything, and come back as a new life."""
        self.logger.warning("is remembered by others, and starts over as a new life", extra={"peer": peer})
        self._is_ready = False
        await self._links.close(with_goodbye=False)
        remembered = await ask_whether_remembered(self.config, self.name, peer, self._access)
        self.boot = time.time_ns()
        self._links = self._make_links()
        self._starting_over = None
        incarnation = later_incarnation(max(self.incarnation, remembered if isinstance(remembered, int) else -1))
        await self._begin_with(incarnation, None if self._disk is None else await self._disk.read())

    async def crash(self) -> None:
        """Vanish without a word, as a process that is killed."""
        self._hush()
        self._is_ready = False
        self._close_doors()
        await self._links.close(with_goodbye=False)
        await self._close_disk()

    async def _close_disk(self) -> None:
        if self._disk is not None:
            await self._disk.close()

    async def stop(self) -> None:
        """Leave in good order."""
        self._is_ready = False
        self._hush()
        self.logger.info("draining")
        self._close_doors()
        self._links.queues.pause(True)
        deadline = time.monotonic() + self.config.runtime.drain_ms / 1000
        while self._links.queues.unsent and time.monotonic() < deadline:
            await asyncio.sleep(DRAIN_POLL_S)
        left = self._links.queues.unsent
        await self._links.close()
        await self._close_disk()
        self.logger.info("stopped", extra={"unsent": left})

    def _close_doors(self) -> None:
        if self._server is not None:
            self._server.close()
        if self.doors is not None:
            self.doors.close()

    # ---- who is let in ------------------------------------------------------------------------------------

    def greeting(self) -> bytes:
        """What we say to brokers."""
        return greeting(
            BROKER, self.name, protocol=self.config.spec.name, network=self.config.fingerprint,
            incarnation=self.incarnation, boot=self.boot,
        )  # fmt: skip

    def identify(self, connection: Connection, hello: Hello, then: Callable[[Identity | Refusal], None]) -> None:
        """Who dialled."""
        if self.doors is None:
            then(ANYBODY)
            return

        def found(who: Identity | Refusal) -> None:
            if isinstance(who, Identity) and who.kind == "broker":
                self._broker_hosts[connection.peer_address.rpartition(":")[0]] = None
                while len(self._broker_hosts) > len(self.config.brokers):
                    del self._broker_hosts[next(iter(self._broker_hosts))]
            then(who)

        self.doors.identify(connection, hello, found)

    def permits(self, identity: Identity, right: str) -> bool:
        """Whether somebody may do what not everybody may."""
        return self.doors is None or self.doors.may(identity, right)

    def answer(self, hello: Hello, identity: Identity) -> Welcome | Refusal:
        """Whether who dialled is let in."""
        if hello.network and hello.network != self.config.fingerprint:
            return Refusal("network", f"{self.name!r} has another network file; give every host the same one")
        gate = self._links.gate
        why = "" if gate is None else gate.why_not(identity, is_client=hello.role == CLIENT)
        if why:
            return Refusal("limit", why)
        if hello.role == BROKER:
            refusal = self._refuse_broker(hello.name, hello.incarnation, hello.boot)
        elif hello.role == CLIENT:
            refusal = self._refuse_client(hello)
        else:
            refusal = None
        return refusal or self._welcome(hello.name, identity)

    def _refuse_broker(self, name: str, incarnation: int, boot: int) -> Refusal | None:
        if name not in self.config.overlay or name == self.name:
            return Refusal("name", f"there is no other broker {name!r} in this network")
        if not self._is_ready:
            return Refusal("not-ready", f"broker {self.name!r} is starting or stopping")
        met = self._met.get(name)
        if met is not None and ((incarnation < met[0]) or (incarnation == met[0] and boot != met[1])):
            return Refusal("stale", f"{self.name!r} has met another start of {name!r}; start over")
        if met != (incarnation, boot):
            self._met[name] = (incarnation, boot)
            if self._disk is not None:
                self._disk.note_met(self._met)
        return None

    def _refuse_client(self, hello: Hello) -> Refusal | None:
        spec = self.config.spec
        if not self._is_ready:
            return Refusal("not-ready", f"broker {self.name!r} is starting or stopping; try another")
        if hello.protocol and hello.protocol != spec.name:
            return Refusal("protocol", f"this network runs {spec.name!r}, not {hello.protocol!r}")
        if hello.name in self.config.overlay:
            return Refusal("name", f"{hello.name!r} is the name of a broker; a client needs another")
        if self._links.client_count >= self.config.runtime.clients_max:
            return Refusal("full", f"broker {self.name!r} has {self.config.runtime.clients_max} clients; try another")
        return None

    def _welcome(self, name: str, identity: Identity) -> Welcome:
        config = self.config
        return Welcome(
            version=VERSION,
            name=self.name,
            protocol=config.spec.name,
            network=config.fingerprint,
            incarnation=self.incarnation,
            boot=self.boot,
            is_ready=self._is_ready,
            remembered=self._met[name][0] if name in self._met else -1,
            network_name=config.network.name,
            f=config.network.f,
            brokers=len(config.brokers),
            options=self._options,
            settings=config.runtime,
            contacts=[self.name, *self._around],
            addresses=config.addresses,
            trace=self._trace,
            user=identity.name if identity.kind == "user" else "",
        )

    def welcomed(self, connection: Connection, welcome: Welcome) -> Refusal | None:
        """Whether we go on with a broker that we dialled."""
        if self.doors is not None and not self.doors.is_broker(connection.peer_certificate, welcome.name):
            return Refusal("denied", f"what is shown there is not the certificate of broker {welcome.name!r}")
        return self._refuse_broker(welcome.name, welcome.incarnation, welcome.boot)

    def refused(self, peer: str, refusal: Refusal) -> None:
        """A broker does not want us."""
        if refusal.code == "stale":
            if self._starting_over is None and self._is_ready:
                self._starting_over = asyncio.get_running_loop().create_task(self._start_over(peer))
        elif refusal.code not in ("duplicate", "not-ready"):
            times = self._links.reminders.due((peer, "turned down", refusal.reason))
            if times:
                facts = {"peer": peer, "code": refusal.code, "times": times}
                self.logger.error(f"turned down: {refusal.reason}", extra=facts)

    def _expel(self, effect: Expel) -> None:
        link = self._links.links.get(effect.client)
        if link is not None:
            self._links.expel(link, "malformed", effect.reason)

    def _deny(self, link: Link, name: str, reason: str) -> None:
        """Tell a client that a call of it is refused: what it wanted to have under this name it does not get."""
        connection = link.connection
        if connection is not None:
            who = link.name if connection.identity is None else f"{link.name} ({connection.identity.text})"
            self._links.refusals.denial(who, connection.peer_address, reason)
            connection.write((frame(DENIED, (name, reason)),))

    def cheated(self, client: str, reason: str) -> None:
        """A client asked for what it may not: its session ends, and it is told."""
        self._end_session(client, "denied", reason)

    def _end_session(self, client: str, code: str, reason: str) -> None:
        if self._node is not None and self._node.has_session(client):
            self._links.give(EndSession(client))
        link = self._links.links.get(client)
        if link is not None:
            self._links.expel(link, code, reason)

    def _users_changed(self, before: Users) -> None:
        """End what users who are gone have here; let others whose rights are others come again."""
        assert self.doors is not None
        now, gate = self.doors.users, self._links.gate
        assert now is not None
        assert gate is not None
        gate.renew()
        self._end_strangers()
        for link in [link for link in self._links.links.values() if not link.is_client]:
            if link.connection is not None and now.is_revoked(link.connection.peer_certificate):
                self._links.expel(link, "denied", f"the certificate of broker {link.name!r} was revoked")
        for link in [link for link in self._links.links.values() if link.is_client]:
            user = user_of(link.name)
            if self.doors.user(user) is None:
                continue
            if now.trust != before.trust or now.by_name[user] != before.by_name.get(user):
                self._links.expel(link, "changed", f"what user {user!r} may has changed; come again")

    def _end_strangers(self) -> None:
        """End the sessions of users who are gone; also of those that were inherited since they are."""
        if self._links.gate is not None:
            sessions = [] if self._node is None else self._node.sessions()
            connected = [link.name for link in self._links.links.values() if link.is_client]
            for client in self._links.gate.strangers(list(dict.fromkeys([*sessions, *connected]))):
                self._end_session(client, "denied", f"user {user_of(client)!r} was revoked")

    def end_client(self, client: str) -> dict[str, Any]:
        """Let an operator end the session of a client that holds everybody up; the client is told."""
        if not self.config.spec.ends_sessions:
            return {"ended": False, "reason": f"protocol {self.config.spec.name!r} knows no sessions; stop the client"}
        if self._node is None or not self._node.has_session(client):
            return {"ended": False, "reason": f"{client!r} has no session at {self.name!r}"}
        self.logger.warning("an operator ended the session of a client", extra={"peer": client})
        why = "an operator ended the session of this client; connect again if you may"
        self._end_session(client, "ended", why)
        return {"ended": True, "reason": ""}

    # ---- how it is ----------------------------------------------------------------------------------------

    @property
    def is_ready(self) -> bool:
        """Whether it takes part."""
        return self._is_ready

    @property
    def hindrance(self) -> str:
        """Why it cannot be called up, in words; nothing if it can."""
        stopping = [wait.text for wait in self._waiting.waits if wait.stops_broker]
        if not self._is_ready:
            return "; ".join(["not ready", *stopping])
        return "; ".join(stopping)

    @property
    def links(self) -> Links:
        """Its links."""
        return self._links

    def _overview(self) -> dict[str, Any]:
        return {} if self._node is None else self._node.overview()

    def report(self) -> dict[str, Any]:
        """All that `gapless status` shows."""
        links = self._links
        node = self._node
        overview = self._overview()
        counters = links.counters
        return {
            "broker": self.name,
            "protocol": self.config.spec.name,
            "network": self.config.network.name,
            "f": self.config.network.f,
            "address": self.entry.address,
            "pid": os.getpid(),
            "ready": self._is_ready,
            "incarnation": self.incarnation,
            "uptime_s": round(time.time() - self.started, 3),
            "up": not self.hindrance,
            "waits": [
                {
                    "kind": wait.kind,
                    "text": wait.text,
                    "names": wait.names,
                    "seconds": round(wait.seconds, 1),
                    "is_long": wait.is_long,
                }
                for wait in self._waiting.waits
            ],
            "clients": overview.get("clients", links.client_count),
            "connections": links.client_count,
            "paused": links.queues.is_paused,
            "links": {
                link.name: {
                    "up": link.connection is not None,
                    "suspected": link.absence == "suspected",
                    "left": link.absence == "left",
                    "queue": len(link.outbox),
                    "unsent_bytes": 0 if link.connection is None else link.connection.unsent(),
                }
                for link in links.links.values()
                if not link.is_client
            },
            "client_queue": max((len(link.outbox) for link in links.links.values() if link.is_client), default=0),
            "state": {} if node is None else dict(node.state_size()),
            "overview": overview,
            "messages_in": counters.messages_in,
            "messages_out": counters.messages_out,
            "frames_in": counters.frames_in,
            "bytes_in": links.bytes_in,
            "bytes_out": links.bytes_out,
            "lost": counters.lost,
            "refusals": counters.refusals,
            "refused": dict(counters.refused),
            "security": {} if self.doors is None else self.doors.report(),
            "suspicions": links.detector.absences["suspected"],
            "goodbyes": links.detector.absences["left"],
            "lost_clients": links.detector.absences["lost"],
            "steps": links.host.steps,
            "turns": links.meter.told(),
        }


def listen_error(who: str, address: str, error: OSError) -> ConfigError:
    """Why a port cannot be listened on."""
    if error.errno == errno.EADDRINUSE:
        return ConfigError(
            f"{who} cannot listen on {address}: the port is in use; stop what uses it, or choose another"
        )
    return ConfigError(f"{who} cannot listen on {address}: {error.strerror or error}")
