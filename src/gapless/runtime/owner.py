"""The interface through which links call their owner, a broker or a client."""

from typing import Any, Protocol

from gapless.runtime.audit_log import Actor
from gapless.runtime.connection import Connection
from gapless.runtime.wire import Hello, Refusal, Welcome
from gapless.security.identity import Identity

__all__ = ["Owner"]


class Owner(Protocol):
    """The owner of links: it supplies the greeting and decides which peers to accept."""

    def greeting(self) -> bytes:
        """Return the greeting for a peer that listens."""

    def identify(self, connection: Connection, hello: Hello) -> Identity | Refusal:
        """Authenticate the peer that dialled, or return why it is refused."""

    def answer(self, hello: Hello, identity: Identity, host: str) -> Welcome | Refusal:
        """Return the answer to a peer that dialled."""

    def welcomed(self, connection: Connection, welcome: Welcome) -> Refusal | None:
        """Handle the answer to our greeting; return a refusal to end the connection."""

    def refused(self, peer: str, refusal: Refusal) -> None:
        """Handle a peer that refused us or ended a connection."""

    def permits(self, identity: Identity, right: str) -> bool:
        """Return whether the identity has the right `status` or `operate`."""

    def report(self, about: str = "") -> dict[str, Any]:
        """Return the status report, or the details that a console asks about."""

    def protocol_violated(self, client: str, reason: str) -> None:
        """End the session of a client that sent a request that a regular client never sends."""

    def end_client(self, client: str, actor: Actor) -> dict[str, Any]:
        """End a client's session on behalf of an operator; return whether it was here."""

    def forget_broker(self, broker: str, actor: Actor) -> dict[str, Any]:
        """Forget a broker that will not return, on behalf of an operator; return whether it had an effect."""

    def delete_events(self, publisher: str, actor: Actor) -> dict[str, Any]:
        """Delete the events of a publisher, on behalf of an operator; return whether it had an effect."""
