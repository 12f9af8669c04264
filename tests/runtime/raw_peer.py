"""A connection that can send anything, and a correct client that must not be affected."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from gapless.client import Client, connect
from gapless.protocols.gapless.client_messages import Attach, Ready
from gapless.registry import find_protocol
from gapless.runtime import wire
from gapless.runtime.address import split_address
from gapless.runtime.codec import Codec
from gapless.runtime.wire import HEADER, Refusal

from .local import Local

__all__ = ["NEW", "Raw", "batch", "framed", "with_witness"]

PATIENCE_S = 20
"""The timeout, for a machine that is busy with other tests."""


NEW = Attach(1, None, 0, 0, 0, 0, 0)
"""The first message of a new client."""


class Raw:
    """A connection that can send arbitrary bytes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, name: str = "stranger") -> None:
        self.name = name
        self._reader = reader
        self._writer = writer

    @classmethod
    async def dial(cls, network: Local, broker: str = "b0") -> "Raw":
        return cls(*await asyncio.open_connection(*split_address(network.config.addresses[broker])))

    @classmethod
    async def attached(cls, network: Local, name: str = "liar", broker: str = "b0") -> "Raw":
        """Connect as a correct client with session 1."""
        peer = (await cls.dial(network, broker)).greet(name).say(batch(NEW))
        await peer.wait_for(Ready)
        return peer

    def say(self, data: bytes) -> "Raw":
        self._writer.write(data)
        return self

    def greet(self, name: str = "stranger", role: str = "client", **more: object) -> "Raw":
        self.name = name
        return self.say(wire.greeting(role, name, **more))  # type: ignore[arg-type]

    async def read_frame(self) -> tuple[int, bytes]:
        # In Python 3.11, `wait_for` may swallow the end of a time limit around this call.
        async with asyncio.timeout(PATIENCE_S):
            header = await self._reader.readexactly(5)
        length, kind = HEADER.unpack(header)
        return kind, await self._reader.readexactly(length - 1)

    async def wait_for(self, kind: type[Any]) -> Any:
        """Return the next message of that kind; answer pings meanwhile."""
        while True:
            frame, body = await self.read_frame()
            assert frame in (wire.WELCOME, wire.PING, wire.MESSAGES), wire.decode_refusal(memoryview(body))
            self.say(framed(wire.PING, b""))
            if frame == wire.MESSAGES:
                for message in decoded(body):
                    if isinstance(message, kind):
                        return message

    async def refusal(self) -> Refusal:
        """Return the refusal, which must be the next frame except welcomes and pings, before the connection ends."""
        while True:
            kind, body = await self.read_frame()
            if kind not in (wire.WELCOME, wire.PING, wire.MESSAGES):
                break
        assert kind == wire.REFUSAL
        assert await asyncio.wait_for(self._reader.read(), PATIENCE_S) == b""
        self._writer.close()
        return wire.decode_refusal(memoryview(body))

    async def drain(self) -> None:
        await asyncio.wait_for(self._writer.drain(), PATIENCE_S)

    def close(self) -> None:
        self._writer.close()

    def abort(self) -> None:
        self._writer.transport.abort()


@asynccontextmanager
async def with_witness(network: Local) -> AsyncIterator[Client]:
    async with connect(network.url, name="witness") as client:
        await client.advertise("TRUE")
        subscription = await client.subscribe("TRUE")
        yield client
        event = await client.publish({"still": "here"})
        async for got in subscription:
            assert got.id == event.id
            break


def framed(kind: int, body: bytes) -> bytes:
    return HEADER.pack(len(body) + 1, kind) + body


def batch(*messages: msgspec.Struct) -> bytes:
    return b"".join(Codec(find_protocol("gapless"), 1 << 28).frames(messages))


def decoded(body: bytes) -> Sequence[Any]:
    return Codec(find_protocol("gapless"), 1 << 28).decode(memoryview(body), is_client=False)
