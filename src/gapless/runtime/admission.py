"""Decides which peers a broker accepts: brokers of its network that have not been replaced by a later start, and
clients within the limits.

It remembers incarnation and boot of each broker that it has met, and refuses earlier starts.
"""

from collections.abc import Callable
from typing import Protocol

import msgspec

from gapless.runtime.broker_security import BrokerSecurity
from gapless.runtime.connection import Connection
from gapless.runtime.links import Links
from gapless.runtime.network_file import NetworkConfig
from gapless.runtime.wire import BROKER, CLIENT, VERSION, Hello, Refusal, Welcome, greeting
from gapless.security.identity import ANYBODY, Identity

__all__ = ["Admission"]


class AdmissionHost(Protocol):
    """The parts of a broker that the admission uses."""

    config: NetworkConfig
    name: str
    incarnation: int
    boot: int
    wall_ns: Callable[[], int]

    @property
    def is_ready(self) -> bool: ...

    @property
    def links(self) -> Links: ...


class Admission:
    """Accepts or refuses the peers of one broker."""

    def __init__(
        self, broker: AdmissionHost, broker_security: BrokerSecurity | None, around: list[str], trace: str
    ) -> None:
        """Create the admission of one broker. `broker_security` authenticates peers; None accepts every peer. `around`
        returns the other brokers that a client can use."""
        self.met: dict[str, tuple[int, int]] = {}
        """For each broker, the incarnation and boot of the last start that this one has met."""
        self.on_met: Callable[[dict[str, tuple[int, int]]], None] = lambda met: None
        """Called when `met` has changed."""
        self._broker = broker
        self._broker_security = broker_security
        self._around = around
        self._trace = trace
        self._options = msgspec.to_builtins(broker.config.options)
        self._broker_hosts: dict[str, None] = {}
        """Hosts of authenticated brokers, which are accepted even if too many peers from other hosts connect."""

    # ---- accepting connections ----------------------------------------------------------------------------

    def may_connect(self, host: str) -> bool:
        """Return whether a peer from this host may connect now."""
        links = self._broker.links
        if host in self._broker_hosts or links.gate is None or links.gate.may_connect():
            return True
        links.refusals.unauthenticated(
            f"{host}:0", "limit", "the rate of new connections exceeds the limit of this broker"
        )
        return False

    def turned_away(self, address: str, code: str, reason: str) -> None:
        """Log the refusal of a peer that has not sent a greeting."""
        self._broker.links.refusals.unauthenticated(address, code, reason)

    def identify(self, connection: Connection, hello: Hello) -> Identity | Refusal:
        """Authenticate a peer that dialled. Return its identity, or a refusal with the reason."""
        if self._broker_security is None:
            return ANYBODY
        who = self._broker_security.identify(connection, hello)
        if isinstance(who, Identity) and who.kind == "broker":
            self._broker_hosts[connection.peer_host] = None
            while len(self._broker_hosts) > len(self._broker.config.brokers):
                del self._broker_hosts[next(iter(self._broker_hosts))]
        return who

    def permits(self, identity: Identity, right: str) -> bool:
        """Return whether the identity has a right that not every user has."""
        return self._broker_security is None or self._broker_security.may(identity, right)

    # ---- greetings ----------------------------------------------------------------------------------------

    def greeting(self) -> bytes:
        """Return this broker's greeting for other brokers, as bytes."""
        broker = self._broker
        return greeting(
            BROKER, broker.name, protocol=broker.config.spec.name, network=broker.config.fingerprint,
            incarnation=broker.incarnation, boot=broker.boot,
        )  # fmt: skip

    def answer(self, hello: Hello, identity: Identity, host: str) -> Welcome | Refusal:
        """Decide whether to accept a peer that dialled; return the answer to its greeting."""
        broker = self._broker
        if hello.network and hello.network != broker.config.fingerprint:
            return Refusal("network", f"{broker.name!r} has another network file; give every host the same file")
        gate = broker.links.gate
        why = "" if gate is None else gate.why_not(identity, host, is_client=hello.role == CLIENT)
        if why:
            return Refusal("limit", why)
        if hello.role == BROKER:
            refusal = self._refuse_broker(hello.name, hello.incarnation, hello.boot)
        elif hello.role == CLIENT:
            refusal = self._refuse_client(hello)
        else:
            refusal = None
        return refusal or self._welcome(hello.name, identity)

    def welcomed(self, connection: Connection, welcome: Welcome) -> Refusal | None:
        """Decide whether to keep the connection to a broker that this one dialled. Return a refusal to end it."""
        if self._broker_security is not None and not self._broker_security.is_broker(
            connection.peer_certificate, welcome.name
        ):
            return Refusal("denied", f"the peer does not have a certificate of broker {welcome.name!r}")
        return self._refuse_broker(welcome.name, welcome.incarnation, welcome.boot)

    def _refuse_broker(self, name: str, incarnation: int, boot: int) -> Refusal | None:
        broker = self._broker
        if name not in broker.config.overlay or name == broker.name:
            return Refusal("name", f"there is no other broker {name!r} in this network")
        if not broker.is_ready:
            return Refusal("not-ready", f"broker {broker.name!r} is starting or stopping; try again")
        met = self.met.get(name)
        if met is not None and ((incarnation < met[0]) or (incarnation == met[0] and boot != met[1])):
            reason = f"{broker.name!r} has met another start of {name!r}; restart with a new incarnation"
            return Refusal("stale", reason)
        if met != (incarnation, boot):
            self.met[name] = (incarnation, boot)
            self.on_met(self.met)
        return None

    def _refuse_client(self, hello: Hello) -> Refusal | None:
        broker, spec = self._broker, self._broker.config.spec
        if not broker.is_ready:
            return Refusal("not-ready", f"broker {broker.name!r} is starting or stopping; try another broker")
        if hello.protocol and hello.protocol != spec.name:
            return Refusal("protocol", f"this network runs {spec.name!r}, not {hello.protocol!r}")
        if hello.name in broker.config.overlay:
            return Refusal("name", f"{hello.name!r} is the name of a broker; choose another name for the client")
        most = broker.config.runtime.clients_max
        if len(broker.links.links) >= most and broker.links.client_count >= most:
            return Refusal("full", f"broker {broker.name!r} has {most} clients; try another")
        return None

    def _welcome(self, name: str, identity: Identity) -> Welcome:
        broker, config = self._broker, self._broker.config
        return Welcome(
            version=VERSION,
            name=broker.name,
            protocol=config.spec.name,
            network=config.fingerprint,
            incarnation=broker.incarnation,
            boot=broker.boot,
            is_ready=broker.is_ready,
            remembered=self.met[name][0] if name in self.met else -1,
            network_name=config.network.name,
            f=config.network.f,
            brokers=len(config.brokers),
            options=self._options,
            settings=config.runtime,
            contacts=[broker.name, *self._around],
            addresses=config.addresses,
            trace=self._trace,
            user=identity.name if identity.kind == "user" else "",
            time_s=broker.wall_ns() / 1e9,
        )
