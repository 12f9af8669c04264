"""The interface of the owner of links, which is a broker or a client."""

from typing import Any, Protocol

from gapless.runtime.audit_log import Actor
from gapless.runtime.connection import Connection
from gapless.runtime.wire import Hello, Refusal, Welcome
from gapless.security.identity import Identity

__all__ = ["Owner"]


class Owner(Protocol):
    """Supplies the greeting of its links, decides which peers to accept, and answers operators."""

    def greeting(self) -> bytes:
        """Return the greeting for a peer that this node dials."""

    def identify(self, connection: Connection, hello: Hello) -> Identity | Refusal:
        """Authenticate a peer that dialled. Return its identity, or a refusal with the reason."""

    def answer(self, hello: Hello, identity: Identity, host: str) -> Welcome | Refusal:
        """Return the answer to the greeting of a peer that dialled."""

    def welcomed(self, connection: Connection, welcome: Welcome) -> Refusal | None:
        """Handle the welcome of a peer that this node dialled. Return a refusal to end the connection."""

    def refused(self, peer: str, refusal: Refusal) -> None:
        """Handle a refusal by a peer, or a connection that a peer ended."""

    def permits(self, identity: Identity, right: str) -> bool:
        """Return whether the identity has the right `status` or `operate`."""

    def report(self, about: str = "") -> dict[str, Any]:
        """Return the status report, or the details named by `about`."""

    def protocol_violated(self, client: str, reason: str) -> None:
        """End the session of a client that sent a request which no client library sends."""

    def end_client(self, client: str, actor: Actor) -> dict[str, Any]:
        """End a client's session on behalf of an operator. Return whether it was at this node."""

    def forget_broker(self, broker: str, actor: Actor) -> dict[str, Any]:
        """Stop waiting for a broker that will not return, on behalf of an operator. Return whether that had
        an effect.
        """

    def delete_events(self, publisher: str, actor: Actor) -> dict[str, Any]:
        """Delete the events of a publisher from history, on behalf of an operator. Return whether that had an
        effect.
        """
