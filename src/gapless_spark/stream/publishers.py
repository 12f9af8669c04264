"""Workers of Spark that publish for a sink after the driver has decided the batch.

Each task that writes to a sink with several publishers leaves a thread in its process that waits for the driver. The
driver's commit decides the batch, and sends each of these processes a share, with the identity of the client that
publishes it. A process without such an identity cannot publish anything.

A process can end at any moment, and may be unreachable. Then the driver takes over its client, so that brokers ignore
that process, and publishes the missing events (`committing`).

A driver authenticates with a secret that it receives with the messages of tasks, through Spark.
"""

import asyncio
import hmac
import secrets
import socket
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

import msgspec

from gapless.client.connecting import connect_as
from gapless.client.identity import Identity
from gapless.client.loop_thread import LoopThread
from gapless.errors import GaplessError, SparkError
from gapless.positions import Position
from gapless.runtime.address import parse_url
from gapless_spark.stream.connection import LONG, in_time
from gapless_spark.stream.layout import Layout
from gapless_spark.stream.share import Share, advertised, publish
from gapless_spark.stream.sink_options import SinkOptions
from gapless_spark.stream.staging import Staging

__all__ = ["PATIENT", "Publisher", "ready_publisher", "share_published"]

PATIENT = 6
"""The number of timeouts allowed without a newly confirmed event."""
REACH_S = 5.0
"""The timeout for a process to accept a connection."""
WRITERS_MAX = 64
"""The number of sinks that a process remembers."""
MESSAGE_MAX = 16 * 1024 * 1024
T = TypeVar("T")


@dataclass(frozen=True)
class Publisher:
    """A process that is ready to publish: its address and secret."""

    host: str
    port: int
    secret: str
    writer: str
    """The identifier of the sink and the schema in that process."""


class _Request(msgspec.Struct, frozen=True):
    secret: str
    writer: str
    share: Share
    identity: Identity
    position: str
    """The position up to which the client reads before it publishes the share."""


class _Answer(msgspec.Struct, frozen=True, omit_defaults=True):
    confirmed: int = 0
    identity: Identity | None = None
    """The identity of the client after it has published the share."""
    error: str = ""


# ---- at a worker -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Writer:
    options: SinkOptions
    layout: Layout


class _Service:
    """The server of one process."""

    def __init__(self) -> None:
        self.secret = secrets.token_hex(16)
        self.writers: OrderedDict[str, _Writer] = OrderedDict()
        self._loop = LoopThread()
        self._ports: dict[str, int] = {}

    def port(self, host: str) -> int:
        """Return the port at this address of the machine, opened if needed."""
        if host not in self._ports:
            self._ports[host] = self._loop.run(self._listen(host))
        return self._ports[host]

    async def _listen(self, host: str) -> int:
        server = await asyncio.start_server(self._serve, host, 0)
        port: int = server.sockets[0].getsockname()[1]
        return port

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            request = await _received(reader, _Request)
            if hmac.compare_digest(request.secret, self.secret):
                await self._answer(request, writer)
        except (OSError, EOFError, msgspec.MsgspecError):
            pass  # the driver has disconnected, or the peer was not the driver: nobody expects an answer
        finally:
            writer.close()

    async def _answer(self, request: _Request, writer: asyncio.StreamWriter) -> None:
        async def on_confirmed(confirmed: int) -> None:
            await _send(writer, _Answer(confirmed))

        try:
            found = self.writers.get(request.writer)
            if found is None:
                raise SparkError("this process no longer knows the sink")
            identity = await _publish(found, request, on_confirmed)
        except GaplessError as error:
            await _send(writer, _Answer(error=str(error)))
        else:
            await _send(writer, _Answer(identity=identity))


@lru_cache(maxsize=1)
def _service() -> _Service:
    return _Service()


def ready_publisher(options: SinkOptions, schema: str, layout: Layout) -> Publisher:
    """Make this process ready to publish for a sink."""
    service = _service()
    key = f"{options!r} {schema}"
    service.writers[key] = _Writer(options, layout)
    service.writers.move_to_end(key)
    while len(service.writers) > WRITERS_MAX:
        service.writers.popitem(last=False)
    host = _address_towards(options.network.url)
    return Publisher(host, service.port(host), service.secret, key)


def _address_towards(url: str) -> str:
    """Return the address of this machine in the network of the brokers."""
    host, _, port = parse_url(url)[0].rpartition(":")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.connect(address)  # connecting a UDP socket sends nothing
            return str(probe.getsockname()[0])
    except OSError:
        return "127.0.0.1"


async def _publish(writer: _Writer, request: _Request, on_confirmed: Callable[[int], Awaitable[None]]) -> Identity:
    options, network = writer.options, writer.options.network
    opening = connect_as(
        network.url, "sink", request.identity, timeout_s=network.timeout_s, credentials=network.credentials
    )
    async with opening as client:
        reading = await in_time(network, client.read("FALSE", since=Position(request.position)), LONG)
        while await in_time(network, reading.take(), LONG):
            pass  # reading up to there gives later publications larger timestamps
        await in_time(network, client.advertise(advertised(options.sink)), LONG)
        events = request.share.events(Staging(options.staging).opened, writer.layout, options.sink)
        await publish(client, events, request.share.label, PATIENT * network.timeout_s, on_confirmed)
        return client.identity


# ---- at the driver ---------------------------------------------------------------------------------------------------


async def share_published(
    publisher: Publisher, share: Share, identity: Identity, position: Position, patience_s: float
) -> Identity:
    """Let a process publish a share. Return the identity of its client at the end; raise a `SparkError` if it
    failed."""
    try:
        async with asyncio.timeout(REACH_S):
            reader, writer = await asyncio.open_connection(publisher.host, publisher.port)
    except (OSError, TimeoutError):
        raise SparkError(f"the worker at {publisher.host}:{publisher.port} cannot be reached") from None
    try:
        await _send(writer, _Request(publisher.secret, publisher.writer, share, identity, str(position)))
        while True:
            async with asyncio.timeout(patience_s):
                answer = await _received(reader, _Answer)
            if answer.error:
                raise SparkError(answer.error)
            if answer.identity is not None:
                return answer.identity
    except (OSError, EOFError, TimeoutError, msgspec.MsgspecError) as error:
        raise SparkError(f"the worker at {publisher.host}:{publisher.port} ended: {error!r}") from None
    finally:
        writer.close()


# ---- messages --------------------------------------------------------------------------------------------------------


async def _send(writer: asyncio.StreamWriter, message: msgspec.Struct) -> None:
    encoded = msgspec.msgpack.encode(message)
    writer.write(len(encoded).to_bytes(4, "big") + encoded)
    await writer.drain()


async def _received(reader: asyncio.StreamReader, kind: type[T]) -> T:
    size = int.from_bytes(await reader.readexactly(4), "big")
    if size > MESSAGE_MAX:
        raise EOFError(f"a message of {size:,} bytes")
    return msgspec.msgpack.decode(await reader.readexactly(size), type=kind)
