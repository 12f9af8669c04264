"""A peer that occupies all places for unauthenticated connections cannot keep others out."""

import asyncio
import contextlib
from pathlib import Path

import pytest

from gapless.client import connect
from gapless.runtime import http_endpoint, links, listener
from gapless.runtime.address import split_address
from gapless.runtime.event_loop import run
from gapless.runtime.pending_connections import PendingConnections
from gapless.runtime.settings import RuntimeSettings

from .local import local
from .secure import STEADY, secure

PATIENT = RuntimeSettings(hello_ms=60_000, suspect_ms=60_000)


def test_the_oldest_of_the_largest_group_has_to_go() -> None:
    pending: PendingConnections[str] = PendingConnections(4)
    assert [pending.add(f"bad {n}", "6.6.6.6") for n in range(2)] == [None, None]
    assert [pending.add(name, f"10.0.0.{n}") for n, name in enumerate(("ann", "bob"))] == [None, None]
    assert [pending.add(f"bad {n}", "6.6.6.6") for n in range(2, 5)] == ["bad 0", "bad 1", "bad 2"]
    assert pending.add("cid", "10.0.0.3") == "bad 3"
    pending.discard("ann")
    pending.discard("nobody")
    assert pending.add("dan", "10.0.0.4") is None
    assert list(pending) == ["bob", "bad 4", "cid", "dan"]


def test_silent_connections_do_not_keep_a_client_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(links, "ANONYMOUS_MAX", 4)

    async def main() -> None:
        async with local(1, f=0, runtime=PATIENT) as network:
            address = split_address(network.config.addresses["b0"])
            silent = [await asyncio.open_connection(*address) for _ in range(10)]
            async with asyncio.timeout(30), connect(network.url) as client:
                await client.advertise("TRUE")
                await client.publish({"still": "here"})
            assert network.brokers["b0"].links.counters.refused["evicted"] >= 6
            for _, writer in silent:
                writer.close()

    run(main())


@pytest.mark.parametrize("opening", [b"", b"\x16\x03\x01"])
def test_handshakes_that_do_not_end_do_not_keep_a_client_out(
    opening: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener, "PENDING_MAX", 4)

    async def main() -> None:
        async with secure(1, tmp_path, f=0, runtime=STEADY) as network:
            address = split_address(network.config.addresses["b0"])
            silent = [await asyncio.open_connection(*address) for _ in range(10)]
            for _, writer in silent:
                writer.write(opening)
            async with asyncio.timeout(30), connect(network.at("b0"), credentials=network.admin) as client:
                await client.advertise("TRUE")
                await client.publish({"still": "here"})
            assert network.brokers["b0"].links.counters.refused["evicted"] >= 6
            for _, writer in silent:
                writer.close()

    run(main())


def test_requests_over_http_that_do_not_end_do_not_keep_others_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_endpoint, "REQUESTS_MAX", 4)
    monkeypatch.setattr(http_endpoint, "PATIENCE_S", 60)

    async def main() -> None:
        async with local(1, f=0) as network:
            endpoint = http_endpoint.HttpEndpoint(network.brokers["b0"])
            server = await asyncio.start_server(endpoint._serve, "127.0.0.1", 0)
            address = server.sockets[0].getsockname()
            silent = [await asyncio.open_connection(*address) for _ in range(10)]
            reader, writer = await asyncio.open_connection(*address)
            writer.write(b"GET /healthz HTTP/1.1\r\n\r\n")
            assert (await asyncio.wait_for(reader.read(), 30)).startswith(b"HTTP/1.1 200 ")
            for ended, _ in silent[:6]:
                with contextlib.suppress(ConnectionError):
                    assert await asyncio.wait_for(ended.read(), 30) == b""
            for _, each in [*silent, (reader, writer)]:
                each.close()
            server.close()

    run(main())
