"""One peer of a node: its connection, if there is one, what waits to be sent to it, and when it was last heard."""

import asyncio
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    from gapless.runtime.connection import Connection

__all__ = ["Absence", "Link"]

Absence: TypeAlias = Literal["", "suspected", "left", "lost"]
"""Why a peer is missed; nothing if it is not (`detector`)."""


class Link:
    """A peer that we talk to, or want to.

    The outbox belongs to the host, which appends to it in its hot loop; whatever is in it is sent before the loop turns
    again, if there is a connection to take it.
    """

    __slots__ = (
        "absence", "address", "connection", "dialling", "greeting_connection", "heard_us", "is_client", "name",
        "outbox", "patience", "seen_in", "seen_out", "sent_us", "was_up",
    )  # fmt: skip

    def __init__(self, name: str, *, is_client: bool, address: str = "", now: int = 0) -> None:
        self.name = name
        self.is_client = is_client
        self.address = address
        """Where to dial; empty if only the peer can."""
        self.outbox: list[Any] = []
        self.connection: Connection | None = None
        self.was_up = False
        """Whether there ever was a connection. Until the first, what is sent waits; later, it is lost."""
        self.absence: Absence = ""
        self.patience = 1.0
        """How many times longer than usual it may be silent: more after each suspicion that was wrong."""
        self.heard_us = now
        self.sent_us = now
        self.seen_in = 0
        self.seen_out = 0
        self.greeting_connection: Connection | None = None
        """One that we dialled, and that has not been answered yet."""
        self.dialling: asyncio.Task[None] | None = None
