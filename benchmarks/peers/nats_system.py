"""NATS with nats-py: core, which forgets, and JetStream, which keeps and acknowledges."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from pathlib import Path
from typing import Any

from benchmarks.peers.system import TOPIC, System

WINDOW = 1024


class NatsCore(System):
    """Publish and forget."""

    name = "NATS core"
    promise = "at most once"
    program = "nats-server"
    library = "nats"

    def command(self, port: int, folder: Path) -> list[str]:
        return ["nats-server", "-a", "127.0.0.1", "-p", str(port)]

    async def _connect(self, port: int) -> Any:
        import nats

        return await nats.connect(f"nats://127.0.0.1:{port}", pending_size=64 * 1024 * 1024)

    async def flood(self, port: int, payloads: Iterable[bytes]) -> None:
        connection = await self._connect(port)
        for number, payload in enumerate(payloads, 1):
            await connection.publish(TOPIC, payload)
            if number % WINDOW == 0:
                await connection.flush()
        await connection.flush()
        await connection.close()

    async def pace(self, port: int, payloads: AsyncIterator[bytes]) -> None:
        connection = await self._connect(port)
        async for payload in payloads:
            await connection.publish(TOPIC, payload)
        await connection.flush()
        await connection.close()

    async def subscribe(self, port: int, ready: Callable[[], None], take: Callable[[bytes], bool]) -> None:
        connection = await self._connect(port)
        over = asyncio.get_running_loop().create_future()

        async def on_message(message: Any) -> None:
            if not take(message.data) and not over.done():
                over.set_result(None)

        await connection.subscribe(TOPIC, cb=on_message, pending_msgs_limit=-1, pending_bytes_limit=-1)
        await connection.flush()
        ready()
        await over
        await connection.close()


class JetStream(NatsCore):
    """A stream in memory, publications and deliveries acknowledged."""

    name = "NATS JetStream"
    promise = "at least once, acknowledged"

    def command(self, port: int, folder: Path) -> list[str]:
        return [*super().command(port, folder), "-js", "-sd", str(folder)]

    async def flood(self, port: int, payloads: Iterable[bytes]) -> None:
        connection = await self._connect(port)
        stream = connection.jetstream(publish_async_max_pending=WINDOW)
        for payload in payloads:
            await stream.publish_async(TOPIC, payload)
        await stream.publish_async_completed()
        await connection.close()

    async def pace(self, port: int, payloads: AsyncIterator[bytes]) -> None:
        connection = await self._connect(port)
        stream = connection.jetstream(publish_async_max_pending=WINDOW)
        async for payload in payloads:
            await stream.publish_async(TOPIC, payload)
        await stream.publish_async_completed()
        await connection.close()

    async def subscribe(self, port: int, ready: Callable[[], None], take: Callable[[bytes], bool]) -> None:
        from nats.js.api import StorageType

        connection = await self._connect(port)
        stream = connection.jetstream()
        await stream.add_stream(name="bench", subjects=[TOPIC], storage=StorageType.MEMORY)
        over = asyncio.get_running_loop().create_future()

        async def on_message(message: Any) -> None:
            await message.ack()
            if not take(message.data) and not over.done():
                over.set_result(None)

        await stream.subscribe(TOPIC, cb=on_message, manual_ack=True, pending_msgs_limit=-1, pending_bytes_limit=-1)
        await connection.flush()
        ready()
        await over
        await connection.flush()
        await connection.close()
