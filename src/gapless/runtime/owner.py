"""What links ask of their owner, a broker or a client."""

from typing import Any, Protocol

from gapless.runtime.audit_log import Actor
from gapless.runtime.connection import Connection
from gapless.runtime.wire import Hello, Refusal, Welcome
from gapless.security.identity import Identity

__all__ = ["Owner"]


class Owner(Protocol):
    """The owner introduces itself, and decides which peers may come in."""

    def greeting(self) -> bytes:
        """What to say to a peer that listens."""

    def identify(self, connection: Connection, hello: Hello) -> Identity | Refusal:
        """Find out who dialled, or why the peer may not come in."""

    def answer(self, hello: Hello, identity: Identity, host: str) -> Welcome | Refusal:
        """What to say to a peer that dialled."""

    def welcomed(self, connection: Connection, welcome: Welcome) -> Refusal | None:
        """Somebody answered our greeting; a refusal if we do not want it after all."""

    def refused(self, peer: str, refusal: Refusal) -> None:
        """Somebody turned us down, or ended a connection."""

    def permits(self, identity: Identity, right: str) -> bool:
        """Whether somebody may do what not everybody may: see our `status`, or `operate`."""

    def report(self) -> dict[str, Any]:
        """Our state."""

    def cheated(self, client: str, reason: str) -> None:
        """A client asked for something that an honest client never asks for: end its session."""

    def end_client(self, client: str, actor: Actor) -> dict[str, Any]:
        """An operator wants this client's session to end; whether it was here."""

    def forget_broker(self, broker: str, actor: Actor) -> dict[str, Any]:
        """An operator says that a broker will not return; whether anything comes of it."""
