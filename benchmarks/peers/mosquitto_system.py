"""Mosquitto with gmqtt (asyncio): MQTT at each quality of service, with publications in flight."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from pathlib import Path
from typing import Any

from benchmarks.peers.system import TOPIC, System

IN_FLIGHT = 4096
"""The number of unacknowledged publications."""
UNSENT_MAX = 1 << 20
"""The maximum number of unsent bytes in the socket's buffer."""


class Mosquitto(System):
    """QoS 0: no acknowledgements."""

    name = "Mosquitto QoS 0"
    promise = "at most once"
    quality = 0
    program = "mosquitto"
    library = "gmqtt"

    def command(self, port: int, folder: Path) -> list[str]:
        settings = folder / "mosquitto.conf"
        settings.write_text(
            f"listener {port} 127.0.0.1\nallow_anonymous true\nmax_queued_messages 0\nmax_inflight_messages 0\n"
        )
        return ["mosquitto", "-c", str(settings)]

    async def _connect(self, port: int, name: str) -> Any:
        from gmqtt import Client

        client = Client(name)
        await client.connect("127.0.0.1", port)
        return client

    async def flood(self, port: int, payloads: Iterable[bytes]) -> None:
        client = await self._connect(port, "publisher")
        # gmqtt has no public way to wait for acknowledgements, or for the socket.
        socket, unconfirmed = client._connection._transport, client._persistent_storage
        for number, payload in enumerate(payloads, 1):
            client.publish(TOPIC, payload, self.quality)
            if number % IN_FLIGHT == 0:
                await unconfirmed.wait_empty()
            while socket.get_write_buffer_size() > UNSENT_MAX:
                await asyncio.sleep(0.0005)
        await unconfirmed.wait_empty()
        await self._close(client)

    async def pace(self, port: int, payloads: AsyncIterator[bytes]) -> None:
        client = await self._connect(port, "publisher")
        async for payload in payloads:
            client.publish(TOPIC, payload, self.quality)
        await client._persistent_storage.wait_empty()
        await self._close(client)

    async def _close(self, client: Any) -> None:
        while client._connection._transport.get_write_buffer_size():
            await asyncio.sleep(0.001)
        await client.disconnect()

    async def subscribe(self, port: int, ready: Callable[[], None], take: Callable[[bytes], bool]) -> None:
        loop = asyncio.get_running_loop()
        subscribed, over = loop.create_future(), loop.create_future()

        def on_message(client: Any, topic: str, payload: bytes, quality: int, properties: Any) -> int:
            if not take(payload) and not over.done():
                over.set_result(None)
            return 0

        client = await self._connect(port, "subscriber")
        client.on_message = on_message
        client.on_subscribe = lambda *_: subscribed.set_result(None)
        client.subscribe(TOPIC, self.quality)
        await subscribed
        ready()
        await over
        await client.disconnect()


class MosquittoOnceOrMore(Mosquitto):
    """QoS 1: each publication and delivery is acknowledged."""

    name = "Mosquitto QoS 1"
    promise = "at least once, acknowledged"
    quality = 1


class MosquittoOnce(Mosquitto):
    """QoS 2: each publication and delivery takes four messages."""

    name = "Mosquitto QoS 2"
    promise = "exactly once on each hop, acknowledged"
    quality = 2
