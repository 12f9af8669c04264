"""From an address to a client: `connect`."""

import secrets
from collections.abc import Generator
from pathlib import Path
from types import TracebackType
from typing import Any

from gapless.client.arguments import check_name, check_seconds, check_text
from gapless.client.bootstrap import find_network
from gapless.client.client import Client
from gapless.runtime.wire import Welcome

__all__ = ["Connecting", "connect"]


class Connecting:
    """What `connect` returns: await it for a client, or use it with `async with`."""

    def __init__(self, url: str, name: str, timeout_s: float, trace: str | Path | None) -> None:
        self._trace = trace
        self._url = url
        self._name = name
        self._timeout_s = timeout_s
        self._client: Client | None = None

    def __await__(self) -> Generator[Any, None, Client]:
        return self._connect().__await__()

    async def _connect(self) -> Client:
        address, welcome = await find_network(self._url, self._timeout_s)
        trace = str(self._trace or "") if self._trace is not None else _wanted_trace(welcome)
        self._client = Client(welcome, f"{self._name}-{secrets.token_hex(4)}", address=address, trace=trace)
        return self._client

    async def __aenter__(self) -> Client:
        return await self._connect()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._client is not None
        await self._client.close()


def _wanted_trace(welcome: Welcome) -> str:
    """Where the network wants a trace, if that is a place on this machine."""
    return welcome.trace if welcome.trace and Path(welcome.trace).is_dir() else ""


def connect(
    url: str, *, name: str = "client", timeout_s: float = 5.0, trace: str | Path | None = None
) -> Connecting:  # fmt: skip
    """Connect to a network by the addresses of one or more of its brokers: `gapless://host:port,host:port`.

    The first that answers tells where all others are, so one is enough; more help if it is down. `name` is the first
    part of the client's name, for logs and traces; what makes it unique is added. With `trace`, the client writes down
    what it does, in that directory (see `docs/TRACE_FORMAT.md`); without, it does so where the network asks it to.
    """
    return Connecting(check_text("the address of a network", url), check_name(name), check_seconds(timeout_s), trace)
