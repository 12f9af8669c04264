"""The upper limit: a bare relay on uvloop that decodes each batch with msgspec, forwards it, and acknowledges it.

It has no filters, no storage and no fault tolerance. Batches have 256 events, acknowledged by number.
"""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Iterable
from itertools import islice
from pathlib import Path
from typing import cast

import msgspec
import uvloop
from benchmarks.peers.system import System

BATCH = 256
WINDOW = 8
"""The maximum number of unacknowledged batches."""

encode = msgspec.msgpack.Encoder().encode


class Item(msgspec.Struct, array_like=True, gc=False):
    """An event."""

    seq: int
    attributes: dict[str, str]
    payload: bytes


decode = msgspec.msgpack.Decoder(list[Item]).decode


class Frames(asyncio.Protocol):
    """Length-prefixed frames."""

    def __init__(self, on_frame: Callable[["Frames", bytes], None]) -> None:
        self._buffer = bytearray()
        self._on_frame = on_frame

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        buffer = self._buffer
        buffer += data
        start = 0
        while len(buffer) - start >= 4:
            end = start + 4 + int.from_bytes(buffer[start : start + 4], "big")
            if end > len(buffer):
                break
            self._on_frame(self, bytes(buffer[start + 4 : end]))
            start = end
        del buffer[:start]

    def send(self, body: bytes) -> None:
        """Write one frame."""
        self.transport.write(len(body).to_bytes(4, "big") + body)


class Relay(System):
    """The relay, as a system without guarantees."""

    name = "bare relay"
    promise = "none (the limit)"

    def command(self, port: int, folder: Path) -> list[str]:
        return [sys.executable, "-m", "benchmarks.peers.relay_system", str(port)]

    async def flood(self, port: int, payloads: Iterable[bytes]) -> None:
        loop = asyncio.get_running_loop()
        room = asyncio.Semaphore(WINDOW)
        _, frames = await loop.create_connection(lambda: Frames(lambda *_: room.release()), "127.0.0.1", port)
        attributes = {"topic": "bench"}
        numbered = enumerate(payloads)
        while batch := [Item(seq, attributes, payload) for seq, payload in islice(numbered, BATCH)]:
            await room.acquire()
            frames.send(encode(batch))
        for _ in range(WINDOW):
            await room.acquire()

    async def pace(self, port: int, payloads: AsyncIterator[bytes]) -> None:
        _, frames = await asyncio.get_running_loop().create_connection(
            lambda: Frames(lambda *_: None), "127.0.0.1", port
        )
        async for payload in payloads:
            frames.send(encode([Item(0, {"topic": "bench"}, payload)]))

    async def subscribe(self, port: int, ready: Callable[[], None], take: Callable[[bytes], bool]) -> None:
        loop = asyncio.get_running_loop()
        over = loop.create_future()

        def on_frame(frames: Frames, body: bytes) -> None:
            for item in decode(body):
                if not take(item.payload) and not over.done():
                    over.set_result(None)

        _, frames = await loop.create_connection(lambda: Frames(on_frame), "127.0.0.1", port)
        frames.send(b"subscribe")
        await asyncio.sleep(0.2)
        ready()
        await over


async def serve(port: int) -> None:
    """Forward all events to all subscribers."""
    subscribers: list[Frames] = []

    def on_frame(frames: Frames, body: bytes) -> None:
        if body == b"subscribe":
            subscribers.append(frames)
            return
        items = decode(body)
        for subscriber in subscribers:
            subscriber.send(body)
        frames.send(items[-1].seq.to_bytes(8, "big"))

    server = await asyncio.get_running_loop().create_server(lambda: Frames(on_frame), "127.0.0.1", port)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(serve(int(sys.argv[1])))
