"""Manages the clients that the gateway connects for its users: one for each stream, and a shared one for each user.

Subscriptions of one client share a window, so a stream gets its own client: a slow reader lags alone. Publications and
requests about durable subscriptions share a client, because connecting and advertising take several round trips. A
shared client is closed after `IDLE_S` without use. If there are more than `SHARED_MAX` of them, the one that was idle
longest is closed.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

from gapless.client import Client, connect
from gapless.errors import DeniedError, GaplessError
from gapless.http.callers import Caller, Callers
from gapless.http.problems import ProblemError
from gapless.http.step_meter import StepMeter
from gapless.positions import Position
from gapless.runtime.broker import Broker

__all__ = ["Clients", "SharedClient"]

IDLE_S = 60.0
SHARED_MAX = 200
STREAMS_MAX = 500
"""The maximum number of simultaneous streams of events, including WebSockets and durable subscriptions."""
CONNECT_S = 5.0
CONNECTING_MAX = 16
"""The maximum number of clients that connect at a time. If hundreds connected at once, each would take longer than
`CONNECT_S`."""


class SharedClient:
    """A client that several requests of one user share."""

    def __init__(self, client: Client, publishable: str, steps: StepMeter) -> None:
        self.client = client
        self.publishable = publishable
        """A filter that matches all events that the user may publish."""
        self.users = 0
        self.used = time.monotonic()
        self._steps = steps
        self._advertising: asyncio.Task[Any] | None = None
        self._asking: asyncio.Task[Position] | None = None
        self._next: asyncio.Task[Position] | None = None

    async def advertise(self) -> None:
        """Advertise all events that the user may publish, unless that was done before."""
        if self._advertising is None or (self._advertising.done() and self._advertising.exception()):
            self._advertising = self._steps.start(_advertise(self.client, self.publishable), "advertise")
        await asyncio.shield(self._advertising)

    async def position(self) -> Position:
        """Return a position after all events confirmed before the call. Simultaneous calls share a request."""
        if self._asking is None or self._asking.done():
            self._asking = self._steps.start(self.client.position(), "position")
            return await asyncio.shield(self._asking)
        if self._next is None or self._next.done():  # the request in progress may have started before the publication
            self._next = self._steps.start(self._after(self._asking), "position")
        return await asyncio.shield(self._next)

    async def _after(self, asking: "asyncio.Task[Position]") -> Position:
        with suppress(GaplessError):
            await asyncio.shield(asking)
        return await self.client.position()


class Clients:
    """The clients that one broker's gateway has connected."""

    def __init__(self, broker: Broker, callers: Callers, steps: StepMeter) -> None:
        self._broker = broker
        self._callers = callers
        self._steps = steps
        self._shared: dict[tuple[str, str, str], SharedClient] = {}
        self._opening: dict[tuple[str, str, str], asyncio.Task[SharedClient]] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self._grants: dict[int, str] = {}
        """The tokens that are valid only in this process, by client."""
        self._connecting = asyncio.Semaphore(CONNECTING_MAX)
        self.streams = 0

    # ---- streams ------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def stream(self, caller: Caller) -> AsyncIterator[Client]:
        """Open a client for one stream within the block."""
        if self.streams >= STREAMS_MAX:
            raise ProblemError(
                "too-many",
                f"the gateway of this broker serves {STREAMS_MAX} streams, which is the maximum; use another broker",
                headers={"Retry-After": "5"},
            )  # fmt: skip
        self.streams += 1
        try:
            client = await self._connect(caller, "http")
            try:
                yield client
            finally:
                self._close(client)
        finally:
            self.streams -= 1

    async def _connect(self, caller: Caller, name: str) -> Client:
        config, own = self._broker.config, self._broker.entry.address
        credentials = self._callers.credentials(caller)
        async with self._connecting:
            client = await connect(config.scheme + own, name=name, timeout_s=CONNECT_S, credentials=credentials)
        self._broker.links.detector.reduce_pings(client.name)
        if credentials is not None and isinstance(credentials.token, str) and credentials.token != caller.token:
            self._grants[id(client)] = credentials.token
        return client

    def _close(self, client: Client) -> None:
        task = self._steps.start(self._leave(client), "leave")
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    async def _leave(self, client: Client) -> None:
        with suppress(GaplessError):
            await client.close()
        self._broker.links.detector.restore_pings(client.name)
        grant = self._grants.pop(id(client), "")
        if grant and self._broker.broker_security is not None:
            self._broker.broker_security.revoke(grant)

    # ---- shared clients -----------------------------------------------------------------------------------

    @asynccontextmanager
    async def shared(self, caller: Caller) -> AsyncIterator[SharedClient]:
        """Yield the client that requests of this user share. It is replaced if the user's permissions have changed."""
        shared = await self._find(caller)
        shared.users += 1
        try:
            yield shared
        except GaplessError:
            if not shared.client.is_connected:
                self._forget(caller.key, shared)
            raise
        finally:
            shared.users -= 1
            shared.used = time.monotonic()

    @asynccontextmanager
    async def publisher(self, caller: Caller) -> AsyncIterator[SharedClient]:
        """Yield the shared client of a user after it has advertised all events that the user may publish."""
        if self._callers.publishable(caller) == "FALSE":
            raise DeniedError(f"user {caller.user!r} may not publish any events")
        async with self.shared(caller) as shared:
            try:
                await shared.advertise()
                yield shared
            except DeniedError:
                self._forget(caller.key, shared)
                raise

    async def _find(self, caller: Caller) -> SharedClient:
        key, text = caller.key, self._callers.publishable(caller)
        known = self._shared.get(key)
        if known is not None and known.publishable == text and not _is_closed(known.client):
            return known
        if known is not None:
            self._forget(key, known)
        if key not in self._opening:
            task = self._opening[key] = self._steps.start(self._open(caller, text), "connect")
            task.add_done_callback(lambda _: self._opening.pop(key, None))
        return await asyncio.shield(self._opening[key])

    async def _open(self, caller: Caller, text: str) -> SharedClient:
        self._make_room()
        made = SharedClient(await self._connect(caller, "http"), text, self._steps)
        self._shared[caller.key] = made
        return made

    def _make_room(self) -> None:
        idle = [(shared.used, key) for key, shared in self._shared.items() if not shared.users]
        if len(self._shared) < SHARED_MAX:
            return
        if not idle:
            raise ProblemError(
                "too-many",
                f"{SHARED_MAX} users send requests to this broker, which is the maximum; use another broker",
                headers={"Retry-After": "5"},
            )  # fmt: skip
        key = min(idle)[1]
        self._forget(key, self._shared[key])

    def _forget(self, key: tuple[str, str, str], shared: SharedClient) -> None:
        if self._shared.get(key) is shared:
            del self._shared[key]
            self._close(shared.client)

    def prune(self) -> None:
        """Close shared clients that were not used for `IDLE_S`."""
        oldest = time.monotonic() - IDLE_S
        for key, shared in list(self._shared.items()):
            if not shared.users and shared.used < oldest:
                self._forget(key, shared)

    async def close(self) -> None:
        """Close all clients except the clients of streams."""
        for key, shared in list(self._shared.items()):
            self._forget(key, shared)
        if self._closing:
            await asyncio.wait(self._closing)


async def _advertise(client: Client, text: str) -> None:
    await client.advertise(text)


def _is_closed(client: Client) -> bool:
    try:
        client._connection_manager.check_open()
    except GaplessError:
        return True
    return False
