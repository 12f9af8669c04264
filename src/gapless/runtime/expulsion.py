"""Who is sent away from a broker again, or refused a call: who lies, and whose rights are others now.

An operator may send somebody away, too.
"""

from typing import Any, Protocol

from gapless.protocol import BrokerNode, EndSession, Expel
from gapless.runtime.audit_log import Actor, AuditLog
from gapless.runtime.broker_security import BrokerSecurity
from gapless.runtime.connection import Link
from gapless.runtime.links import Links
from gapless.runtime.network_file import NetworkConfig
from gapless.runtime.wire import DENIED, frame
from gapless.security.identity import client_prefix, user_of
from gapless.security.users_file import Users

__all__ = ["Expulsions"]

SHOWN_MAX = 10
"""Clients whose names begin with what an operator typed, and are told."""


class ExpulsionHost(Protocol):
    """The broker."""

    config: NetworkConfig
    name: str
    audit: AuditLog

    @property
    def links(self) -> Links:
        """Its links."""
        ...

    @property
    def node(self) -> BrokerNode | None:
        """What takes part; None until it does, and if it failed."""
        ...


class Expulsions:
    """One broker's way to do it."""

    def __init__(self, house: ExpulsionHost, broker_security: BrokerSecurity | None) -> None:
        self._house = house
        self._broker_security = broker_security

    def expel(self, effect: Expel) -> None:
        """A client said what no client may say."""
        link = self._house.links.links.get(effect.client)
        if link is not None:
            self._house.links.expel(link, "malformed", effect.reason)

    def deny(self, link: Link, name: str, reason: str) -> None:
        """Tell a client that a call of it is refused: what it wanted to have under this name it does not get."""
        connection = link.connection
        if connection is not None:
            who = "" if connection.identity is None else connection.identity.text
            self._house.links.refusals.denial(link.name, connection.peer_address, reason, who)
            connection.write((frame(DENIED, (name, reason)),))

    def end_session(self, client: str, code: str, reason: str) -> None:
        """A client's session ends, and it is told."""
        links, node = self._house.links, self._house.node
        if node is not None and node.has_session(client):
            links.give(EndSession(client))
        link = links.links.get(client)
        if link is not None:
            links.expel(link, code, reason)

    def end_client(self, client: str, actor: Actor) -> dict[str, Any]:
        """Let an operator end the session of a client that holds everybody up; the client is told."""
        house = self._house
        if not house.config.spec.ends_sessions:
            return {"ended": False, "reason": f"protocol {house.config.spec.name!r} knows no sessions; stop the client"}
        if house.node is None or not house.node.has_session(client):
            found = [] if house.node is None else [name for name in house.node.sessions() if _begins(name, client)]
            reason = f"{client!r} has no session at {house.name!r}"
            return {"ended": False, "reason": reason, "begin_so": sorted(found)[:SHOWN_MAX]}
        house.audit.act("client.ended", "an operator ended the session of a client", actor, peer=client)
        why = "an operator ended the session of this client; connect again if you may"
        self.end_session(client, "ended", why)
        return {"ended": True, "reason": ""}

    def users_changed(self, before: Users) -> None:
        """End what users who are gone have here; let others whose rights are others come again."""
        assert self._broker_security is not None
        links = self._house.links
        now, gate = self._broker_security.users, links.gate
        assert now is not None
        assert gate is not None
        gate.renew()
        self.end_strangers()
        for link in [link for link in links.links.values() if not link.is_client]:
            if link.connection is not None and now.is_revoked(link.connection.peer_certificate):
                links.expel(link, "denied", f"the certificate of broker {link.name!r} was revoked")
        for link in [link for link in links.links.values() if link.is_client]:
            user = user_of(link.name)
            if self._broker_security.user(user) is None:
                continue
            if now.trust != before.trust or now.by_name[user] != before.by_name.get(user):
                links.expel(link, "changed", f"what user {user!r} may has changed; come again")

    def end_signed(self) -> None:
        """Let clients that were known by signed tokens come again: one of the keys counts no more."""
        links = self._house.links
        for link in [link for link in links.links.values() if link.is_client]:
            identity = None if link.connection is None else link.connection.identity
            if identity is not None and identity.proof == "signed token":
                links.expel(link, "changed", "the keys that sign tokens have changed; come again")

    def end_strangers(self) -> None:
        """End the sessions of users who are gone; also of those that were inherited since they are."""
        links, node = self._house.links, self._house.node
        if links.gate is not None:
            sessions = [] if node is None else node.sessions()
            connected = [link.name for link in links.links.values() if link.is_client]
            for client in links.gate.strangers(list(dict.fromkeys([*sessions, *connected]))):
                self.end_session(client, "denied", f"user {user_of(client)!r} was revoked")


def _begins(name: str, typed: str) -> bool:
    """Whether the name of a client begins so; also if its user's is left out."""
    return name.startswith((typed, f"{client_prefix(user_of(name))}{typed}"))
