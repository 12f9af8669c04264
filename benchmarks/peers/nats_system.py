"""NATS with nats-py: core (no acknowledgements), and JetStream (stored and acknowledged)."""

import asyncio
import subprocess
from collections.abc import AsyncIterator, Callable, Iterable
from pathlib import Path
from typing import Any

import msgspec
from benchmarks.peers.system import TOPIC, System, distinct_attributes

WINDOW = 1024
SYNCS_SINCE = (2, 10)
"""The first version with `sync_interval`."""


class NatsCore(System):
    """NATS core: no acknowledgements."""

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


class NatsDocuments(NatsCore):
    """NATS core with attributes: each message is a MessagePack document, which the subscriber decodes."""

    name = "NATS core, documents"

    async def flood(self, port: int, payloads: Iterable[bytes]) -> None:
        encode = msgspec.msgpack.Encoder().encode
        await super().flood(port, (encode([*each]) for each in zip(distinct_attributes(), payloads, strict=False)))

    async def pace(self, port: int, payloads: AsyncIterator[bytes]) -> None:
        encode, attributes = msgspec.msgpack.Encoder().encode, distinct_attributes()
        await super().pace(port, (encode([next(attributes), payload]) async for payload in payloads))

    async def subscribe(self, port: int, ready: Callable[[], None], take: Callable[[bytes], bool]) -> None:
        decode = msgspec.msgpack.Decoder(tuple[dict[str, Any], bytes]).decode
        await super().subscribe(port, ready, lambda document: take(decode(document)[1]))


class JetStream(NatsCore):
    """A stream in memory with acknowledged publications and deliveries."""

    name = "NATS JetStream"
    promise = "at least once, acknowledged"
    storage = "memory"

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
        await stream.add_stream(name="bench", subjects=[TOPIC], storage=StorageType(self.storage))
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


class JetStreamOnFile(JetStream):
    """A stream in files with the default sync interval of two minutes."""

    name = "NATS JetStream, file"
    promise = "at least once, acknowledged, in a file"
    storage = "file"


class JetStreamSynced(JetStreamOnFile):
    """A stream in files that are synced before a publication is acknowledged."""

    name = "NATS JetStream, synced"
    promise = "at least once, acknowledged, on disk"

    def missing(self) -> str:
        why = super().missing()
        if not why:
            told = subprocess.run([self.program, "--version"], capture_output=True, text=True, check=True).stdout
            version = told.rpartition("v")[2].strip()
            if tuple(map(int, version.split(".")[:2])) < SYNCS_SINCE:
                why = f"{self.program} {version} cannot sync before it acknowledges"
        return why

    def command(self, port: int, folder: Path) -> list[str]:
        file = folder / "nats.conf"
        text = f'jetstream {{ store_dir: "{folder / "store"}", sync_interval: always }}\n'
        file.write_text(text, encoding="utf-8")
        return [*NatsCore.command(self, port, folder), "-c", str(file)]
