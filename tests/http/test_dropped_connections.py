"""Streams whose connection is lost at any moment: neither the gateway nor any broker keeps their sessions."""

import asyncio
import json
import random
import socket
import struct
from contextlib import suppress
from typing import Any

import pytest

from gapless.http import step_meter
from gapless.overlay import chain
from gapless.runtime.event_loop import run

from .serving import SLOW_SUSPICION, Serving, serving
from .test_streams import publisher

CONNECTIONS, AT_ONCE = 120, 24
EVENTS, PAYLOAD = 60, bytes(8_000)
STALL_S = (0.0, 0.0, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3)
ENDED_S = 10.0
QUERIES = (
    "filter=TRUE", "filter=n%20%3E%201", "since=earliest", "since=earliest&until=now", "since=1h&format=ndjson",
    "format=ndjson", "durable=a&filter=TRUE", "durable=b&ack=auto", "durable=c&share=1&format=ndjson",
)  # fmt: skip
COMMANDS: tuple[dict[str, Any], ...] = (
    {"op": "subscribe", "id": "1"},
    {"op": "subscribe", "id": "2", "since": "earliest", "credit": 10},
    {"op": "subscribe", "id": "3", "since": "earliest", "until": "now", "credit": 100_000},
    {"op": "subscribe", "id": "4", "durable": "d"},
    {"op": "publish", "id": "5", "event": {"attributes": {"n": 5}, "text": "x"}},
)
UPGRADE = "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {}==\r\n"


def _frame(command: dict[str, Any]) -> bytes:
    """Return a text message of a WebSocket, masked with zeros."""
    text = json.dumps(command).encode()
    assert len(text) < 126
    return struct.pack("!BB4x", 0x81, 0x80 | len(text)) + text


async def _drop(choice: random.Random, host: str) -> None:
    """Open a random stream, read some of it or nothing, and lose the connection, with an end or with a reset."""
    name, port = host.split(":")
    reader, writer = await asyncio.open_connection(name, int(port), limit=1_024)
    is_socket = choice.random() < 0.4
    path, more = ("/ws", UPGRADE.format("x" * 22)) if is_socket else (f"/events?{choice.choice(QUERIES)}", "")
    writer.write(f"GET {path} HTTP/1.1\r\nHost: {host}\r\n{more}\r\n".encode())
    await asyncio.sleep(choice.choice(STALL_S))
    if is_socket:
        with suppress(OSError, RuntimeError, asyncio.IncompleteReadError):  # the loop's error for a closed connection
            await reader.readuntil(b"\r\n\r\n")
            for command in choice.sample(COMMANDS, choice.randint(1, len(COMMANDS))):
                writer.write(_frame(command))
                await asyncio.sleep(choice.choice(STALL_S))
    if choice.random() < 0.5:
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(choice.choice(STALL_S)):
                while await reader.read(1_024):
                    pass
    await asyncio.sleep(choice.choice(STALL_S))
    if choice.random() < 0.5:
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()
    else:
        writer.close()


def _left(http: Serving) -> list[str]:
    """Return the streams and the subscriptions that are left."""
    left = [f"{name} serves {server.streams} streams" for name, server in http.servers.items() if server.streams]
    for name, broker in http.network.brokers.items():
        left += [f"{name} has the durable stream {each}" for each in http.servers[name]._gateway.durable._streams]
        assert broker.node is not None
        left += [f"{name} has {held}" for each in broker.node.sessions() if (held := broker.node.held_by(each))]
    return left


@pytest.mark.parametrize("turn_ms", [step_meter.TURN_MS, 0.0], ids=["idle", "busy"])
def test_no_subscription_is_left_when_connections_are_lost_at_any_moment(
    turn_ms: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a busy broker, each step of a request waits for the next turn of the event loop."""
    monkeypatch.setattr(step_meter, "TURN_MS", turn_ms)
    choice = random.Random(1)

    async def main() -> None:
        async with serving(chain(3), runtime=SLOW_SUSPICION, delivery_window=20, lag_window=40) as http:
            ann = await publisher(http, "ann", "b2")

            async def publish() -> None:
                for n in range(EVENTS):
                    await ann.publish({"n": n % 10}, PAYLOAD)
                    await asyncio.sleep(0.01)

            async def drop() -> None:
                for _ in range(CONNECTIONS // AT_ONCE):
                    await _drop(choice, http.network.brokers[choice.choice(("b0", "b1"))].entry.http)

            publishing = asyncio.ensure_future(publish())
            await asyncio.gather(*(drop() for _ in range(AT_ONCE)))
            await publishing
            with suppress(TimeoutError):
                async with asyncio.timeout(ENDED_S):
                    while _left(http):
                        await asyncio.sleep(0.05)
            assert _left(http) == []
            await ann.close()

    run(main())
