"""The changes of a client's connection: connected, disconnected, or moved to another broker.

A client is connected while a broker holds its session and there is a connection to it. Calls can be made at any time,
and wait for a broker if there is none; iterate over `client.connection_changes()` to observe the connection.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, Self, TypeAlias
from weakref import WeakSet

import msgspec

from gapless.client.own_loop import OwnLoop
from gapless.errors import GaplessError
from gapless.protocol import ClientNode, Effect, Input, Received
from gapless.runtime.connection import Connection, Link
from gapless.runtime.links import Links

__all__ = ["ConnectionChange", "ConnectionChanges", "WatchedLinks", "WatchedNode", "Watching", "serving"]

ChangeKind: TypeAlias = Literal["connected", "disconnected", "moved"]

KEPT_MAX = 100
"""The number of changes that wait for a slow reader; older ones are only counted."""


class ConnectionChange(msgspec.Struct, frozen=True):
    """One change of a client's connection."""

    kind: ChangeKind
    """`connected`: a broker serves the client. `disconnected`: none does; the client looks for one, and publications
    wait. `moved`: another broker serves it than before; no event was missed."""
    broker: str
    """The broker that serves the client. For `disconnected`, the broker that served it last."""
    previous: str = ""
    """For `moved`: the broker that served the client before."""
    missed: int = 0
    """How many changes before this one were dropped because the application did not read them in time."""


class ConnectionChanges:
    """Iterates over the changes of a client's connection, from its current state until the client ends.

    If the client fails, iteration raises its error, too.
    """

    def __init__(self) -> None:
        self._queue: deque[ConnectionChange] = deque()
        self._own_loop = OwnLoop("this iterator over connection changes")
        self._something = asyncio.Event()
        self._missed = 0
        self._error: GaplessError | None = None
        self._is_over = False

    def __repr__(self) -> str:
        return f"<{type(self).__name__}{', ended' if self._is_over else ''}, {len(self._queue)} waiting>"

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> ConnectionChange:
        self._own_loop.check()
        while not self._queue:
            if self._error is not None:
                raise self._error
            if self._is_over:
                raise StopAsyncIteration
            self._something.clear()
            await self._something.wait()
        change = self._queue.popleft()
        missed, self._missed = self._missed, 0
        return msgspec.structs.replace(change, missed=missed) if missed else change

    def _put(self, change: ConnectionChange) -> None:
        if len(self._queue) >= KEPT_MAX:
            self._queue.popleft()
            self._missed += 1
        self._queue.append(change)
        self._something.set()

    def _end(self, error: GaplessError | None) -> None:
        """End the iteration, with an error if there is one."""
        self._is_over = True
        self._error = error
        self._something.set()


class Watching:
    """Notifies all `ConnectionChanges` of a client when another broker serves it or none does."""

    def __init__(self, serving: Callable[[], str]) -> None:
        self._serving = serving
        self._broker = ""
        self._last = ""
        self._watchers: WeakSet[ConnectionChanges] = WeakSet()
        self._end: tuple[GaplessError | None] | None = None

    def watch(self) -> ConnectionChanges:
        """Return a new iterator over the changes from now on."""
        changes = ConnectionChanges()
        if self._end is not None:
            changes._end(*self._end)
        elif self._broker:
            changes._put(ConnectionChange("connected", self._broker))
        self._watchers.add(changes)
        return changes

    def look(self) -> None:
        """Compare the connection with its last known state, and notify the iterators of any change."""
        broker = self._serving()
        if broker == self._broker or self._end is not None:
            return
        if not broker:
            change = ConnectionChange("disconnected", self._broker)
        elif self._last in ("", broker):
            change = ConnectionChange("connected", broker)
        else:
            change = ConnectionChange("moved", broker, self._last)
        self._broker = broker
        self._last = broker or self._last
        for watcher in self._watchers:
            watcher._put(change)

    def end(self, error: GaplessError | None) -> None:
        """End all iterators, because the client has ended."""
        self._end = (error,)
        for watcher in self._watchers:
            watcher._end(error)


class WatchedNode:
    """Wraps a client's node; `look` is called when the broker that serves the client may have changed."""

    def __init__(self, node: ClientNode, look: Callable[[], None]) -> None:
        self._node = node
        self._look = look

    def step(self, item: Input, now: int) -> Sequence[Effect]:
        """Process one input and return its effects."""
        node = self._node
        before = node.is_attached
        effects = node.step(item, now)
        if node.is_attached is not before or (before is None and item.__class__ is not Received):
            self._look()
        return effects

    def state_size(self) -> Mapping[str, int]:
        """Return the sizes of the node's collections."""
        return self._node.state_size()


class WatchedLinks(Links):
    """The links of a client, with two callbacks. `look` is called when a connection ends; `not_understood` is called
    with a broker whose messages cannot be decoded, and the reason.
    """

    look: Callable[[], None]
    not_understood: Callable[[str, str], None]
    has_session: bool
    """Whether the node repeats its registrations on each new connection, so that messages queued before it can be
    dropped."""

    def _establish(self, link: Link, connection: Connection, boot: int) -> None:
        if self.has_session:
            link.outbox.clear()
        super()._establish(link, connection, boot)

    def refusing(self, connection: Connection, code: str, reason: str) -> None:
        """Record that the client itself ends this connection."""
        super().refusing(connection, code, reason)
        if code == "malformed" and connection.link is not None:
            self.not_understood(connection.link.name, reason)

    def ended(self, connection: Connection) -> None:
        """Report that the connection has ended."""
        super().ended(connection)
        self.look()

    def said_goodbye(self, connection: Connection, reason: str) -> None:
        super().said_goodbye(connection, reason)
        self.look()


def serving(links: Links, node: ClientNode) -> str:
    """Return the broker that holds the client's session and is connected, or an empty string."""
    if node.is_attached is None:
        return next((link.name for link in links.links.values() if link.connection is not None), "")
    link = links.links.get(node.broker)
    is_served = node.is_attached and link is not None and link.connection is not None
    return node.broker if is_served else ""
