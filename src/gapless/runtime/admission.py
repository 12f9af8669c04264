"""Who is let in to a broker: brokers of the same network that are no earlier start, and clients that there is room for.

Whoever it has met it remembers by incarnation and boot, and does not listen to an earlier start again.
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
    """The broker."""

    config: NetworkConfig
    name: str
    incarnation: int
    boot: int
    wall_ns: Callable[[], int]

    @property
    def is_ready(self) -> bool:
        """Whether it takes part."""
        ...

    @property
    def links(self) -> Links:
        """Its links."""
        ...


class Admission:
    """One broker's."""

    def __init__(
        self, house: AdmissionHost, broker_security: BrokerSecurity | None, around: list[str], trace: str
    ) -> None:
        """`doors` know who is who; None if anybody may come in. `around` are whom clients may turn to instead."""
        self.met: dict[str, tuple[int, int]] = {}
        """By broker: the incarnation and boot of its last start."""
        self.on_met: Callable[[dict[str, tuple[int, int]]], None] = lambda met: None
        """Told when that has changed."""
        self._house = house
        self._broker_security = broker_security
        self._around = around
        self._trace = trace
        self._options = msgspec.to_builtins(house.config.options)
        self._broker_hosts: dict[str, None] = {}
        """From where brokers came who proved to be such: a crowd of others does not keep them out."""

    # ---- at the door --------------------------------------------------------------------------------------

    def may_come(self, host: str) -> bool:
        """Whether somebody from there may connect now."""
        links = self._house.links
        if host in self._broker_hosts or links.gate is None or links.gate.may_come():
            return True
        links.refusals.stranger(f"{host}:0", "limit", "more connect in a second than this broker takes")
        return False

    def turned_away(self, address: str, code: str, reason: str) -> None:
        """Somebody did not get as far as a greeting."""
        self._house.links.refusals.stranger(address, code, reason)

    def identify(self, connection: Connection, hello: Hello) -> Identity | Refusal:
        """Who dialled."""
        if self._broker_security is None:
            return ANYBODY
        who = self._broker_security.identify(connection, hello)
        if isinstance(who, Identity) and who.kind == "broker":
            self._broker_hosts[connection.peer_host] = None
            while len(self._broker_hosts) > len(self._house.config.brokers):
                del self._broker_hosts[next(iter(self._broker_hosts))]
        return who

    def permits(self, identity: Identity, right: str) -> bool:
        """Whether somebody may do what not everybody may."""
        return self._broker_security is None or self._broker_security.may(identity, right)

    # ---- greetings ----------------------------------------------------------------------------------------

    def greeting(self) -> bytes:
        """What we say to brokers."""
        house = self._house
        return greeting(
            BROKER, house.name, protocol=house.config.spec.name, network=house.config.fingerprint,
            incarnation=house.incarnation, boot=house.boot,
        )  # fmt: skip

    def answer(self, hello: Hello, identity: Identity, host: str) -> Welcome | Refusal:
        """Whether who dialled is let in."""
        house = self._house
        if hello.network and hello.network != house.config.fingerprint:
            return Refusal("network", f"{house.name!r} has another network file; give every host the same one")
        gate = house.links.gate
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
        """Whether we go on with a broker that we dialled."""
        if self._broker_security is not None and not self._broker_security.is_broker(
            connection.peer_certificate, welcome.name
        ):
            return Refusal("denied", f"what is shown there is not the certificate of broker {welcome.name!r}")
        return self._refuse_broker(welcome.name, welcome.incarnation, welcome.boot)

    def _refuse_broker(self, name: str, incarnation: int, boot: int) -> Refusal | None:
        house = self._house
        if name not in house.config.overlay or name == house.name:
            return Refusal("name", f"there is no other broker {name!r} in this network")
        if not house.is_ready:
            return Refusal("not-ready", f"broker {house.name!r} is starting or stopping")
        met = self.met.get(name)
        if met is not None and ((incarnation < met[0]) or (incarnation == met[0] and boot != met[1])):
            return Refusal("stale", f"{house.name!r} has met another start of {name!r}; start over")
        if met != (incarnation, boot):
            self.met[name] = (incarnation, boot)
            self.on_met(self.met)
        return None

    def _refuse_client(self, hello: Hello) -> Refusal | None:
        house, spec = self._house, self._house.config.spec
        if not house.is_ready:
            return Refusal("not-ready", f"broker {house.name!r} is starting or stopping; try another")
        if hello.protocol and hello.protocol != spec.name:
            return Refusal("protocol", f"this network runs {spec.name!r}, not {hello.protocol!r}")
        if hello.name in house.config.overlay:
            return Refusal("name", f"{hello.name!r} is the name of a broker; a client needs another")
        most = house.config.runtime.clients_max
        if len(house.links.links) >= most and house.links.client_count >= most:
            return Refusal("full", f"broker {house.name!r} has {most} clients; try another")
        return None

    def _welcome(self, name: str, identity: Identity) -> Welcome:
        house, config = self._house, self._house.config
        return Welcome(
            version=VERSION,
            name=house.name,
            protocol=config.spec.name,
            network=config.fingerprint,
            incarnation=house.incarnation,
            boot=house.boot,
            is_ready=house.is_ready,
            remembered=self.met[name][0] if name in self.met else -1,
            network_name=config.network.name,
            f=config.network.f,
            brokers=len(config.brokers),
            options=self._options,
            settings=config.runtime,
            contacts=[house.name, *self._around],
            addresses=config.addresses,
            trace=self._trace,
            user=identity.name if identity.kind == "user" else "",
            time_s=house.wall_ns() / 1e9,
        )
