"""Systems of three nodes, a client at the first and one at the second; a message between nodes takes `DELAY_MS`."""

import asyncio
import contextlib
import json
import shutil
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.peers.system import wait_for

import gapless
from gapless.runtime.fleet import free_ports

__all__ = ["DELAY_MS", "NODES", "GaplessNodes", "JetStreamNodes", "NatsNodes", "Nodes", "ZenohNodes"]

NODES = 3
DELAY_MS = 25.0
OnEvent = Callable[[int], None]
Close = Callable[[], Awaitable[None]]


class Nodes(ABC):
    """Three running nodes, with a subscriber's connection to the first and a publisher's to the second."""

    name: str
    program: str = ""
    library: str = ""

    def missing(self) -> str:
        """Return why it cannot run here; empty if it can."""
        if self.program and shutil.which(self.program) is None:
            return f"the program {self.program} is not installed"
        if self.library and find_spec(self.library) is None:
            return f"the Python package {self.library} is not installed"
        return ""

    @abstractmethod
    def run(self, folder: Path) -> contextlib.AbstractAsyncContextManager[None]:
        """Start the nodes and connect both clients."""

    @abstractmethod
    async def subscribe(self, topic: str, on_event: OnEvent) -> Close:
        """Subscribe at the first node, and return when the system confirms the subscription."""

    @abstractmethod
    async def publish(self, topic: str, number: int) -> None:
        """Publish at the second node."""


@contextlib.asynccontextmanager
async def delayed(target: int) -> AsyncIterator[int]:
    """Yield a port that forwards to the target's with a delay in both directions."""

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        loop = asyncio.get_running_loop()
        while data := await reader.read(65_536):
            loop.call_later(DELAY_MS / 1000, writer.write, data)
        loop.call_later(DELAY_MS / 1000, writer.close)

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # Cancelled at the end of the program, when the system is gone; asyncio would log that as an error.
        with contextlib.suppress(OSError, asyncio.CancelledError):
            there, back = await asyncio.open_connection("127.0.0.1", target)
            await asyncio.gather(pump(reader, back), pump(there, writer), return_exceptions=True)

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


class GaplessNodes(Nodes):
    """`subscribe()` returns when the starting cut is known."""

    name = "Gapless, f = 1"

    @contextlib.asynccontextmanager
    async def run(self, folder: Path) -> AsyncIterator[None]:
        ports = free_ports(NODES)
        brokers = "".join(f'[[brokers]]\nname = "b{n}"\naddress = "127.0.0.1:{p}"\n' for n, p in enumerate(ports))
        file = folder / "network.toml"
        file.write_text(
            f'[network]\nf = 1\nedges = [["b0", "b1"], ["b1", "b2"]]\n{brokers}[runtime]\ndelay_ms = {DELAY_MS}\n'
        )
        command = [sys.executable, "-m", "gapless", "broker", "--config", str(file), "--name"]
        async with (
            _processes([[*command, f"b{n}"] for n in range(NODES)], ports),
            gapless.connect(f"gapless://127.0.0.1:{ports[0]}") as self._near,
            gapless.connect(f"gapless://127.0.0.1:{ports[1]}") as self._far,
        ):
            await self._far.advertise("topic LIKE 't%'")
            yield

    async def subscribe(self, topic: str, on_event: OnEvent) -> Close:
        subscription = await self._near.subscribe(f"topic = '{topic}'")

        async def take() -> None:
            async for event in subscription:
                on_event(int(event.payload))

        task = asyncio.create_task(take())

        async def close() -> None:
            await subscription.close()
            await task

        return close

    async def publish(self, topic: str, number: int) -> None:
        await self._far.publish({"topic": topic}, str(number).encode())


class NatsNodes(Nodes):
    """The server confirms a subscription with the pong of `flush()`, before the other servers know it."""

    name = "NATS core, cluster of 3"
    program = "nats-server"
    library = "nats"
    jetstream = False

    @contextlib.asynccontextmanager
    async def run(self, folder: Path) -> AsyncIterator[None]:
        import nats

        ports, routes = free_ports(2 * NODES)[:NODES], free_ports(NODES)
        async with contextlib.AsyncExitStack() as stack:
            ways = [await stack.enter_async_context(delayed(route)) for route in routes]
            files = [self._write_config(folder, n, ports[n], routes[n], ways) for n in range(NODES)]
            await stack.enter_async_context(_processes([["nats-server", "-c", str(file)] for file in files], ports))
            self._near = await nats.connect(f"nats://127.0.0.1:{ports[0]}")
            stack.push_async_callback(self._near.close)
            self._far = await nats.connect(f"nats://127.0.0.1:{ports[1]}")
            stack.push_async_callback(self._far.close)
            await self._prepare()
            yield

    def _write_config(self, folder: Path, number: int, port: int, route: int, ways: list[int]) -> Path:
        others = ", ".join(f'"nats://127.0.0.1:{way}"' for n, way in enumerate(ways) if n != number)
        store = f'jetstream {{ store_dir: "{folder}/n{number}" }}\n' if self.jetstream else ""
        file = folder / f"n{number}.conf"
        file.write_text(
            f'server_name: n{number}\nlisten: "127.0.0.1:{port}"\n{store}cluster {{\n  name: c\n'
            f'  listen: "127.0.0.1:{route}"\n  cluster_advertise: "127.0.0.1:{ways[number]}"\n'
            f"  routes: [{others}]\n}}\n"
        )
        return file

    async def _prepare(self) -> None:
        await asyncio.sleep(3.0)  # until the servers have found each other

    async def subscribe(self, topic: str, on_event: OnEvent) -> Close:
        async def take(message: Any) -> None:
            on_event(int(message.data))

        subscription = await self._near.subscribe(f"bench.{topic}", cb=take)
        await self._near.flush()
        return subscription.unsubscribe

    async def publish(self, topic: str, number: int) -> None:
        await self._far.publish(f"bench.{topic}", str(number).encode())
        await self._far.flush()


class JetStreamNodes(NatsNodes):
    """The leader of the stream confirms a consumer that begins with new messages."""

    name = "NATS JetStream, 3 replicas"
    jetstream = True

    async def _prepare(self) -> None:
        from nats.js.api import StorageType

        deadline = time.monotonic() + 30
        while True:
            try:
                await self._far.jetstream().add_stream(
                    name="bench", subjects=["bench.*"], num_replicas=NODES, storage=StorageType.MEMORY
                )
                return
            except Exception:
                if time.monotonic() > deadline:
                    raise
                await asyncio.sleep(0.5)

    async def subscribe(self, topic: str, on_event: OnEvent) -> Close:
        from nats.js.api import DeliverPolicy

        async def take(message: Any) -> None:
            on_event(int(message.data))
            await message.ack()

        stream = self._near.jetstream()
        subscription = await stream.subscribe(f"bench.{topic}", cb=take, deliver_policy=DeliverPolicy.NEW)
        return subscription.unsubscribe

    async def publish(self, topic: str, number: int) -> None:
        await self._far.jetstream().publish(f"bench.{topic}", str(number).encode())


class ZenohNodes(Nodes):
    """`declare_subscriber` returns when the subscriber's own router may know of it."""

    name = "Zenoh, 3 routers"
    library = "zenoh"

    @contextlib.asynccontextmanager
    async def run(self, folder: Path) -> AsyncIterator[None]:
        ports = free_ports(NODES)
        async with contextlib.AsyncExitStack() as stack:
            ways = [await stack.enter_async_context(delayed(port)) for port in ports]
            for number, port in enumerate(ports):
                peers = [f"tcp/127.0.0.1:{way}" for way in ways[:number]]
                stack.callback((await asyncio.to_thread(_zenoh, "router", [f"tcp/127.0.0.1:{port}"], peers)).close)
            self._near = await asyncio.to_thread(_zenoh, "client", [], [f"tcp/127.0.0.1:{ports[0]}"])
            self._far = await asyncio.to_thread(_zenoh, "client", [], [f"tcp/127.0.0.1:{ports[1]}"])
            await asyncio.sleep(2.0)  # until the routers have found each other
            try:
                yield
            finally:
                await asyncio.to_thread(self._near.close)
                await asyncio.to_thread(self._far.close)

    async def subscribe(self, topic: str, on_event: OnEvent) -> Close:
        loop = asyncio.get_running_loop()

        def take(sample: Any) -> None:
            loop.call_soon_threadsafe(on_event, int(sample.payload.to_string()))

        subscriber = await asyncio.to_thread(self._near.declare_subscriber, f"bench/{topic}", take)

        async def close() -> None:
            await asyncio.to_thread(subscriber.undeclare)

        return close

    async def publish(self, topic: str, number: int) -> None:
        await asyncio.to_thread(self._far.put, f"bench/{topic}", str(number))


def _zenoh(mode: str, listen: list[str], connect: list[str]) -> Any:
    import zenoh

    config = zenoh.Config()
    config.insert_json5("mode", json.dumps(mode))
    config.insert_json5("listen/endpoints", json.dumps(listen))
    config.insert_json5("connect/endpoints", json.dumps(connect))
    config.insert_json5("scouting/multicast/enabled", "false")
    config.insert_json5("scouting/gossip/enabled", "false")
    return zenoh.open(config)


@contextlib.asynccontextmanager
async def _processes(commands: list[list[str]], ports: list[int]) -> AsyncIterator[None]:
    """Run servers for the block; each is ready when it listens."""
    servers = [subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for words in commands]
    try:
        for port, server in zip(ports, servers, strict=True):
            await asyncio.to_thread(wait_for, port, server)
        yield
    finally:
        for server in servers:
            server.kill()
            server.wait()
