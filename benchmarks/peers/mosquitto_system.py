"""Mosquitto with paho: MQTT at each quality of service, with publications in flight."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from pathlib import Path
from typing import Any

from benchmarks.peers.system import TOPIC, System

IN_FLIGHT = 1024
"""Publications that wait for their acknowledgement at once; of its own accord paho lets twenty."""


class Mosquitto(System):
    """Publish and forget; paho runs a thread of its own."""

    name = "Mosquitto QoS 0"
    promise = "at most once"
    quality = 0
    program = "mosquitto"
    library = "paho"

    def command(self, port: int, folder: Path) -> list[str]:
        settings = folder / "mosquitto.conf"
        settings.write_text(
            f"listener {port} 127.0.0.1\nallow_anonymous true\nmax_queued_messages 0\nmax_inflight_messages 0\n"
        )
        return ["mosquitto", "-c", str(settings)]

    def _client(self) -> Any:
        from paho.mqtt.client import Client
        from paho.mqtt.enums import CallbackAPIVersion

        client = Client(CallbackAPIVersion.VERSION2)
        client.max_inflight_messages_set(IN_FLIGHT)
        return client

    async def flood(self, port: int, payloads: Iterable[bytes]) -> None:
        def publish() -> None:
            client = self._client()
            client.connect("127.0.0.1", port)
            client.loop_start()
            last = None
            for number, payload in enumerate(payloads, 1):
                last = client.publish(TOPIC, payload, self.quality)
                if number % IN_FLIGHT == 0:
                    last.wait_for_publish()
            if last is not None:
                last.wait_for_publish()
            client.disconnect()
            client.loop_stop()

        await asyncio.to_thread(publish)

    async def pace(self, port: int, payloads: AsyncIterator[bytes]) -> None:
        client = self._client()
        client.connect("127.0.0.1", port)
        client.loop_start()
        async for payload in payloads:
            client.publish(TOPIC, payload, self.quality)
        await asyncio.sleep(0.1)
        client.disconnect()
        client.loop_stop()

    async def subscribe(self, port: int, ready: Callable[[], None], take: Callable[[bytes], bool]) -> None:
        loop = asyncio.get_running_loop()
        subscribed, over = loop.create_future(), loop.create_future()

        def on_message(client: Any, data: Any, message: Any) -> None:
            if not take(message.payload):
                loop.call_soon_threadsafe(over.set_result, None)

        client = self._client()
        client.on_message = on_message
        client.on_subscribe = lambda *_: loop.call_soon_threadsafe(subscribed.set_result, None)
        client.connect("127.0.0.1", port)
        client.subscribe(TOPIC, self.quality)
        client.loop_start()
        await subscribed
        ready()
        await over
        client.disconnect()
        client.loop_stop()


class MosquittoOnceOrMore(Mosquitto):
    """Each publication and delivery acknowledged."""

    name = "Mosquitto QoS 1"
    promise = "at least once, acknowledged"
    quality = 1


class MosquittoOnce(Mosquitto):
    """Each publication and delivery in four steps."""

    name = "Mosquitto QoS 2"
    promise = "exactly once on each hop, acknowledged"
    quality = 2
