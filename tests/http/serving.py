"""A network in this process whose brokers serve HTTP, with a client for each."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import msgspec

from gapless.http.server import HttpServer
from gapless.overlay import Overlay
from gapless.runtime.fleet import free_ports
from gapless.runtime.network_file import HttpEntry, NetworkConfig
from tests.runtime.local import QUICK, Local, local
from tests.runtime.secure import Secure

__all__ = ["SLOW_SUSPICION", "Serving", "serving", "serving_secure", "sse"]


SLOW_SUSPICION = msgspec.structs.replace(QUICK, suspect_ms=2_000)
"""Settings for tests that share the machine with a browser, so that a slow broker is not suspected."""


class Serving:
    """The HTTP servers of a network's brokers."""

    def __init__(self, network: Local) -> None:
        self.network = network
        self.servers: dict[str, HttpServer] = {}
        self._clients: list[httpx.AsyncClient] = []

    async def start(self, name: str) -> HttpServer:
        broker = self.network.brokers[name]
        broker.entry = msgspec.structs.replace(broker.entry, http=f"127.0.0.1:{free_ports(1)[0]}")
        server = self.servers[name] = HttpServer(broker)
        await server.start()
        return server

    def url(self, name: str) -> str:
        broker = self.network.brokers[name]
        return f"{'http' if broker.broker_security is None else 'https'}://{broker.entry.http}"

    def client(
        self, name: str, *, token: str = "", verify: "ssl.SSLContext | bool" = True, **more: Any
    ) -> httpx.AsyncClient:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        made = httpx.AsyncClient(
            base_url=self.url(name), headers=headers, timeout=30, verify=verify, trust_env=False, **more
        )
        self._clients.append(made)
        return made

    async def stop(self) -> None:
        for client in self._clients:
            await client.aclose()
        for server in self.servers.values():
            await server.close()


def with_http(config: NetworkConfig, http: HttpEntry) -> NetworkConfig:
    return msgspec.structs.replace(config, http=http)


@asynccontextmanager
async def serving(overlay: Overlay | int, *, origins: tuple[str, ...] = (), **more: Any) -> AsyncIterator[Serving]:
    """Start a network without security, with HTTP at each broker."""
    async with local(overlay, **more) as network:
        for broker in network.brokers.values():
            broker.config = with_http(broker.config, HttpEntry(origins=origins))
        made = Serving(network)
        try:
            for name in network.brokers:
                await made.start(name)
            yield made
        finally:
            await made.stop()


@asynccontextmanager
async def serving_secure(network: Secure) -> AsyncIterator[Serving]:
    """Start a network with certificates and users, with HTTP at each broker."""
    made = Serving(network)
    try:
        for name in network.brokers:
            await made.start(name)
        yield made
    finally:
        await made.stop()


def trusting(directory: Path, certificate: Any = None, key: Any = None) -> ssl.SSLContext:
    """Return a TLS context that trusts the test network's authority, with a certificate if given."""
    context = ssl.create_default_context(cafile=directory / "authority.pem")
    if certificate:
        context.load_cert_chain(certificate, key)
    return context


class Message(msgspec.Struct):
    """One server-sent event."""

    event: str
    id: str
    data: Any


async def sse(
    client: httpx.AsyncClient, params: Mapping[str, Any], headers: Mapping[str, str] | None = None
) -> AsyncIterator[Message]:
    async with client.stream("GET", "/events", params=dict(params), headers=dict(headers or {})) as response:
        if response.status_code != 200:
            await response.aread()
            raise AssertionError(response.text)
        event, name, data = "message", "", ""
        async for line in response.aiter_lines():
            if not line:
                if data:
                    yield Message(event, name, json.loads(data))
                event, data = "message", ""
            elif line.startswith("id: "):
                name = line[4:]
            elif line.startswith("event: "):
                event = line[7:]
            elif line.startswith("data: "):
                data = line[6:]


async def first(messages: AsyncIterator[Message], count: int, event: str = "message") -> list[Message]:
    found: list[Message] = []
    async with asyncio.timeout(60):
        async for message in messages:
            if message.event == event:
                found.append(message)
                if len(found) == count:
                    break
    return found
