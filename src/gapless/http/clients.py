"""Clients that the gateway connects for its users: one for each stream, and a shared one for each user that publishes.

Subscriptions of one client share a window, so a stream gets a client of its own: a reader that is slow lags alone.
Publications share a client, because connecting and advertising take several round trips. A shared client is closed
after `IDLE_S` without use. When more than `PUBLISHERS_MAX` users publish, the one that was idle longest is closed.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from gapless.client import Client, connect
from gapless.errors import DeniedError, GaplessError
from gapless.http.callers import Caller, Callers
from gapless.http.problems import ProblemError
from gapless.positions import Position
from gapless.runtime.broker import Broker

__all__ = ["Clients", "Publisher"]

IDLE_S = 60.0
PUBLISHERS_MAX = 200
STREAMS_MAX = 500
"""Streams of events at a time, WebSockets and durable subscriptions included."""
CONNECT_S = 5.0


class Publisher:
    """The client with which one user publishes."""

    def __init__(self, client: Client, advertised: str) -> None:
        self.client = client
        self.advertised = advertised
        self.users = 0
        self.used = time.monotonic()
        self._asking: asyncio.Task[Position] | None = None
        self._next: asyncio.Task[Position] | None = None

    async def position(self) -> Position:
        """A position at which all that was confirmed before the call lies. Calls at the same time share a request."""
        if self._asking is None or self._asking.done():
            self._asking = asyncio.ensure_future(self.client.position())
            return await asyncio.shield(self._asking)
        if self._next is None or self._next.done():  # the one in progress may have begun before the publication
            self._next = asyncio.ensure_future(self._after(self._asking))
        return await asyncio.shield(self._next)

    async def _after(self, asking: "asyncio.Task[Position]") -> Position:
        with suppress(GaplessError):
            await asyncio.shield(asking)
        return await self.client.position()


class Clients:
    """Those of one broker's gateway."""

    def __init__(self, broker: Broker, callers: Callers) -> None:
        self._broker = broker
        self._callers = callers
        self._publishers: dict[tuple[str, str, str], Publisher] = {}
        self._opening: dict[tuple[str, str, str], asyncio.Task[Publisher]] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self._grants: dict[int, str] = {}
        """Tokens that are valid in this process alone, by the client that uses them."""
        self.streams = 0

    # ---- streams ------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def stream(self, caller: Caller) -> AsyncIterator[Client]:
        """A client of its own for one stream."""
        client = await self.open_stream(caller)
        try:
            yield client
        finally:
            self.close_stream(client)

    async def open_stream(self, caller: Caller) -> Client:
        """A client of its own; `close_stream` ends it."""
        if self.streams >= STREAMS_MAX:
            raise ProblemError(
                "too-many", f"the gateway of this broker serves {STREAMS_MAX} streams; use another broker's",
                headers={"Retry-After": "5"},
            )  # fmt: skip
        self.streams += 1
        try:
            return await self._connect(caller, "http")
        except BaseException:
            self.streams -= 1
            raise

    def close_stream(self, client: Client) -> None:
        """The stream of this client is over."""
        self.streams -= 1
        self._close(client)

    async def _connect(self, caller: Caller, name: str) -> Client:
        config, own = self._broker.config, self._broker.entry.address
        credentials = self._callers.credentials(caller)
        client = await connect(config.scheme + own, name=name, timeout_s=CONNECT_S, credentials=credentials)
        if credentials is not None and isinstance(credentials.token, str) and credentials.token != caller.token:
            self._grants[id(client)] = credentials.token
        return client

    def _close(self, client: Client) -> None:
        task = asyncio.get_running_loop().create_task(self._leave(client))
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    async def _leave(self, client: Client) -> None:
        with suppress(GaplessError):
            await client.close()
        grant = self._grants.pop(id(client), "")
        if grant and self._broker.broker_security is not None:
            self._broker.broker_security.revoke(grant)

    # ---- publishers ---------------------------------------------------------------------------------------

    @asynccontextmanager
    async def publisher(self, caller: Caller) -> AsyncIterator[Publisher]:
        """The client with which this user publishes. If its permissions changed, it is replaced."""
        publisher = await self._publisher(caller)
        publisher.users += 1
        try:
            yield publisher
        except GaplessError as error:
            if not publisher.client.is_connected or isinstance(error, DeniedError):
                self._forget(caller.key, publisher)
            raise
        finally:
            publisher.users -= 1
            publisher.used = time.monotonic()

    async def _publisher(self, caller: Caller) -> Publisher:
        key, text = caller.key, self._callers.publishable(caller)
        known = self._publishers.get(key)
        if known is not None and known.advertised == text and not _is_closed(known.client):
            return known
        if known is not None:
            self._forget(key, known)
        if key not in self._opening:
            task = self._opening[key] = asyncio.ensure_future(self._open(caller, text))
            task.add_done_callback(lambda _: self._opening.pop(key, None))
        return await asyncio.shield(self._opening[key])

    async def _open(self, caller: Caller, text: str) -> Publisher:
        if text == "FALSE":
            raise DeniedError(f"user {caller.user!r} may not publish; nothing is allowed")
        self._make_room()
        client = await self._connect(caller, "http")
        try:
            await client.advertise(text)
        except BaseException:
            self._close(client)
            raise
        made = self._publishers[caller.key] = Publisher(client, text)
        return made

    def _make_room(self) -> None:
        idle = [(publisher.used, key) for key, publisher in self._publishers.items() if not publisher.users]
        if len(self._publishers) < PUBLISHERS_MAX:
            return
        if not idle:
            raise ProblemError("too-many", f"{PUBLISHERS_MAX} users publish through this broker; use another one")
        key = min(idle)[1]
        self._forget(key, self._publishers[key])

    def _forget(self, key: tuple[str, str, str], publisher: Publisher) -> None:
        if self._publishers.get(key) is publisher:
            del self._publishers[key]
            self._close(publisher.client)

    def tidy(self) -> None:
        """Close publishers that nobody uses."""
        oldest = time.monotonic() - IDLE_S
        for key, publisher in list(self._publishers.items()):
            if not publisher.users and publisher.used < oldest:
                self._forget(key, publisher)

    async def close(self) -> None:
        """Close all clients that no stream uses."""
        for key, publisher in list(self._publishers.items()):
            self._forget(key, publisher)
        if self._closing:
            await asyncio.wait(self._closing)


def _is_closed(client: Client) -> bool:
    try:
        client._connection_manager.check_open()
    except GaplessError:
        return True
    return False
