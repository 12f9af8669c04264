"""Ends sessions and refuses calls: of malicious clients, of users whose permissions changed, and
for operators.
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
"""The maximum number of similar names that are suggested to an operator."""


class ExpulsionHost(Protocol):
    """The parts of a broker that expulsions use."""

    config: NetworkConfig
    name: str
    audit: AuditLog

    @property
    def links(self) -> Links: ...

    @property
    def node(self) -> BrokerNode | None: ...


class Expulsions:
    """Ends the sessions of clients of one broker."""

    def __init__(self, broker: ExpulsionHost, broker_security: BrokerSecurity | None) -> None:
        self._broker = broker
        self._broker_security = broker_security

    def expel(self, effect: Expel) -> None:
        """End the connection of a client that sent a message that no client may send."""
        link = self._broker.links.links.get(effect.client)
        if link is not None:
            self._broker.links.expel(link, "malformed", effect.reason)

    def deny(self, link: Link, name: str, reason: str) -> None:
        """Notify a client that the broker refuses its subscription or advertisement."""
        connection = link.connection
        if connection is not None:
            who = "" if connection.identity is None else connection.identity.text
            self._broker.links.refusals.denial(link.name, connection.peer_address, reason, who)
            connection.write((frame(DENIED, (name, reason)),))

    def end_session(self, client: str, code: str, reason: str) -> None:
        """End a client's session and notify the client."""
        links, node = self._broker.links, self._broker.node
        if node is not None and node.has_session(client):
            links.give(EndSession(client))
        link = links.links.get(client)
        if link is not None:
            links.expel(link, code, reason)

    def end_client(self, client: str, actor: Actor) -> dict[str, Any]:
        """End the session of a client that blocks publishers, on behalf of an operator, and notify it."""
        broker = self._broker
        if not broker.config.spec.ends_sessions:
            return {
                "ended": False,
                "reason": f"protocol {broker.config.spec.name!r} has no sessions; stop the client process",
            }
        if broker.node is None or not broker.node.has_session(client):
            found = [] if broker.node is None else [name for name in broker.node.sessions() if _begins(name, client)]
            reason = f"{client!r} has no session at {broker.name!r}"
            return {"ended": False, "reason": reason, "begin_so": sorted(found)[:SHOWN_MAX]}
        broker.audit.act("client.ended", "an operator ended the session of a client", actor, peer=client)
        why = "an operator ended the session of this client; connect again if that is permitted"
        self.end_session(client, "ended", why)
        return {"ended": True, "reason": ""}

    def users_changed(self, before: Users) -> None:
        """End the sessions of removed users, and make clients with changed permissions reconnect."""
        assert self._broker_security is not None
        links = self._broker.links
        now, gate = self._broker_security.users, links.gate
        assert now is not None
        assert gate is not None
        gate.renew()
        self.end_removed_users()
        for link in [link for link in links.links.values() if not link.is_client]:
            if link.connection is not None and now.is_revoked(link.connection.peer_certificate):
                links.expel(link, "denied", f"the certificate of broker {link.name!r} was revoked")
        for link in [link for link in links.links.values() if link.is_client]:
            user = user_of(link.name)
            if self._broker_security.user(user) is None:
                continue
            if now.trust != before.trust or now.by_name[user] != before.by_name.get(user):
                links.expel(link, "changed", f"the permissions of user {user!r} have changed; connect again")

    def end_signed(self) -> None:
        """Make clients with signed tokens reconnect, because a signing key is no longer trusted."""
        links = self._broker.links
        for link in [link for link in links.links.values() if link.is_client]:
            identity = None if link.connection is None else link.connection.identity
            if identity is not None and identity.proof == "signed token":
                links.expel(link, "changed", "the keys that sign tokens have changed; connect again")

    def end_removed_users(self) -> None:
        """End the sessions of removed users, including sessions that this broker has taken over since their removal."""
        links, node = self._broker.links, self._broker.node
        if links.gate is not None:
            sessions = [] if node is None else node.sessions()
            connected = [link.name for link in links.links.values() if link.is_client]
            for client in links.gate.of_removed_users(list(dict.fromkeys([*sessions, *connected]))):
                self.end_session(client, "denied", f"user {user_of(client)!r} was revoked")


def _begins(name: str, typed: str) -> bool:
    """Return whether the client's name begins with the typed text, with or without the name of its user."""
    return name.startswith((typed, f"{client_prefix(user_of(name))}{typed}"))
