"""A refused peer gets the reason, whatever it was about to send; a peer that does not read it is disconnected."""

import asyncio
import contextlib
from pathlib import Path

import pytest

from gapless.client import connect
from gapless.runtime import refused_connections, wire
from gapless.runtime.address import split_address
from gapless.runtime.event_loop import run
from gapless.runtime.http_endpoint import HttpEndpoint
from gapless.runtime.tls import client_context

from .local import Local, local
from .secure import Secure, secure, until

MUCH = bytes(16 * 1024 * 1024)


async def _reason(reader: asyncio.StreamReader) -> str:
    length, kind = wire.HEADER.unpack(await asyncio.wait_for(reader.readexactly(5), 30))
    assert kind == wire.REFUSAL
    return wire.decode_refusal(memoryview(await reader.readexactly(length - 1))).reason


async def _talks_and_listens_late(network: Local | Secure, opening: bytes, tls: Path | None = None) -> str:
    broker = network.brokers["b0"]
    host, port = split_address(network.config.addresses["b0"])
    context = None if tls is None else client_context(tls, None, None)
    server = None if tls is None else host
    reader, writer = await asyncio.open_connection(host, port, ssl=context, server_hostname=server)
    refused = broker.links.counters.refusals
    writer.write(opening + MUCH)
    await until(lambda: broker.links.counters.refusals > refused)
    with contextlib.suppress(ConnectionError):
        await asyncio.wait_for(writer.drain(), 30)
    reason = await _reason(reader)
    writer.close()
    await until(lambda: not len(broker.links.refused_connections))
    return reason


def test_a_refused_peer_that_is_still_sending_reads_the_reason() -> None:
    async def main() -> None:
        async with local(1, f=0) as network:
            assert "too large" in await _talks_and_listens_late(network, b"\xff" * 10)
            greeting = wire.greeting("client", "b0", protocol="gapless")
            assert "is the name of a broker" in await _talks_and_listens_late(network, greeting)

    run(main())


def test_a_refused_tls_peer_that_is_still_sending_reads_the_reason(tmp_path: Path) -> None:
    async def main() -> None:
        async with secure(1, tmp_path, f=0) as network:
            authority = Path(network.certified("admin").authority)
            greeting = wire.greeting("client", "admin:c", protocol="gapless")
            assert "authenticate with a certificate" in await _talks_and_listens_late(network, greeting, authority)

    run(main())


def test_a_peer_that_ignores_its_refusal_is_disconnected(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        monkeypatch.setattr(refused_connections, "LINGER_S", 0.2)
        async with local(1, f=0) as network:
            links = network.brokers["b0"].links
            _, writer = await asyncio.open_connection(*split_address(network.config.addresses["b0"]))
            writer.write(b"\xff" * 10)
            await until(lambda: len(links.refused_connections) == 1)
            await until(lambda: not len(links.refused_connections))
            monkeypatch.setattr(refused_connections, "CLOSING_MAX", 0)
            reader, other = await asyncio.open_connection(*split_address(network.config.addresses["b0"]))
            other.write(b"\xff" * 10)
            assert "too large" in await _reason(reader)
            assert not len(links.refused_connections)
            writer.close()
            other.close()

    run(main())


def test_a_connection_that_is_refused_does_not_count_any_more(tmp_path: Path) -> None:
    """The user may have one connection, and connects again at once after a refusal."""

    async def main() -> None:
        ann = {"publish": ["TRUE"], "subscribe": ["TRUE"], "limits": {"connections": 1}}
        async with secure(1, tmp_path, f=0, users={"ann": ann}) as network:
            client = await connect(network.at("b0"), credentials=network.certified("ann"))
            await client.advertise("TRUE")
            network.set_users({"ann": {**ann, "subscribe": ["a = 1"]}})
            await network.reload()
            await asyncio.wait_for(client.publish({"a": 1}), 30)
            assert network.brokers["b0"].links.counters.refused["limit"] == 0
            await client.close()

    run(main())


def test_a_request_over_http_that_brings_a_body_is_answered() -> None:
    async def main() -> None:
        async with local(1, f=0) as network:
            endpoint = HttpEndpoint(network.brokers["b0"])
            server = await asyncio.start_server(endpoint._serve, "127.0.0.1", 0)
            reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            writer.write(b"POST /status HTTP/1.1\r\n\r\n" + MUCH)
            answer = await asyncio.wait_for(reader.read(), 30)
            assert answer.startswith(b"HTTP/1.1 405 ")
            writer.close()
            server.close()

    run(main())
