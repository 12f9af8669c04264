"""Redis streams with redis-py and hiredis: entries are added in pipelines, read by a group and acknowledged."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from itertools import islice
from pathlib import Path
from typing import Any

from benchmarks.peers.system import TOPIC, System

BATCH = 1000


class RedisStreams(System):
    """One stream with one group."""

    name = "Redis streams"
    promise = "at least once, acknowledged"
    program = "redis-server"
    library = "hiredis"

    def command(self, port: int, folder: Path) -> list[str]:
        return ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(folder)]

    def _connect(self, port: int) -> Any:
        from redis.asyncio import Redis

        return Redis(port=port)

    async def flood(self, port: int, payloads: Iterable[bytes]) -> None:
        """Publish with the blocking client, which takes half as long as the asynchronous one."""
        from redis import Redis

        def publish() -> None:
            connection = Redis(port=port)
            remaining = iter(payloads)
            while batch := list(islice(remaining, BATCH)):
                pipeline: Any = connection.pipeline(transaction=False)
                for payload in batch:
                    pipeline.execute_command("XADD", TOPIC, "*", b"p", payload)
                pipeline.execute()
            connection.close()

        await asyncio.to_thread(publish)

    async def pace(self, port: int, payloads: AsyncIterator[bytes]) -> None:
        connection = self._connect(port)
        async for payload in payloads:
            await connection.xadd(TOPIC, {b"p": payload})
        await connection.aclose()

    async def subscribe(self, port: int, ready: Callable[[], None], take: Callable[[bytes], bool]) -> None:
        connection = self._connect(port)
        await connection.xgroup_create(TOPIC, "group", id="$", mkstream=True)
        ready()
        goes_on = True
        while goes_on:
            for _, entries in await connection.xreadgroup("group", "one", {TOPIC: ">"}, count=BATCH, block=1000):
                for _, fields in entries:
                    goes_on = take(fields[b"p"])
                await connection.xack(TOPIC, "group", *(number for number, _ in entries))
        await connection.aclose()


class RedisSynced(RedisStreams):
    """Redis streams with a log on disk that is synced before each answer."""

    name = "Redis streams, synced"
    promise = "at least once, acknowledged, on disk"

    def command(self, port: int, folder: Path) -> list[str]:
        return [*super().command(port, folder), "--appendonly", "yes", "--appendfsync", "always"]
