"""From an address to a client: `connect`."""

import logging
import secrets
from collections.abc import Generator
from functools import lru_cache
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeAlias

from gapless.client.arguments import check_name, check_seconds, check_text
from gapless.client.bootstrap import find_network
from gapless.client.client import Client
from gapless.client.standing import Standing
from gapless.errors import CallError
from gapless.runtime.access import Access
from gapless.runtime.wire import Welcome
from gapless.security.credentials import Credentials
from gapless.security.identity import client_prefix

__all__ = ["Connecting", "CredentialsLike", "connect"]


_logger = logging.getLogger("gapless.client")

CredentialsLike: TypeAlias = Credentials | str | Path | None


class Connecting:
    """What `connect` returns: await it for a client, or use it with `async with`."""

    def __init__(
        self, url: str, name: str, timeout_s: float, trace: str | Path | None, credentials: CredentialsLike,
        standing: Standing | None = None,
    ) -> None:  # fmt: skip
        self._standing = standing
        self._trace = trace
        self._credentials = credentials
        self._url = url
        self._name = name
        self._timeout_s = timeout_s
        self._client: Client | None = None

    def __await__(self) -> Generator[Any, None, Client]:
        return self._connect().__await__()

    async def _connect(self) -> Client:
        access = Access.to(self._url, self._credentials)
        address, welcome = await find_network(self._url, self._timeout_s, access)
        trace = str(self._trace or "") if self._trace is not None else _wanted_trace(welcome)
        whose = client_prefix(welcome.user) if welcome.user else ""
        standing = self._standing
        name = f"{whose}{self._name}-{secrets.token_hex(4)}" if standing is None else standing.name
        self._client = Client(
            welcome, name, address=address, trace=trace, access=access, standing=standing, patience_s=self._timeout_s
        )
        return self._client

    async def __aenter__(self) -> Client:
        return await self._connect()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._client is not None
        await self._client.close()

    if not TYPE_CHECKING:  # type checkers know that a client's methods are not here

        def __getattr__(self, name: str) -> Any:
            """Say what is missing where this is used as if it were the client."""
            if name in vars(Client):
                raise CallError(
                    f"connect() was not awaited, so there is no client yet that could {name}: write client = await "
                    "gapless.connect(…), or async with gapless.connect(…) as client"
                )
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)


def _wanted_trace(welcome: Welcome) -> str:
    """Where the network wants a trace, if that is a place on this machine."""
    if welcome.trace and not Path(welcome.trace).is_dir():
        _warn_of(welcome.trace)
        return ""
    return welcome.trace


@lru_cache(maxsize=64)
def _warn_of(place: str) -> None:
    """Said once of each place, however many clients a process has."""
    _logger.warning(
        f"the network asks clients to write traces in {place}, which is not here: clients of this process write none; "
        "connect(…, trace=DIR) writes one elsewhere"
    )


def connect(
    url: str, *, name: str = "client", timeout_s: float = 5.0, trace: str | Path | None = None,
    credentials: CredentialsLike = None,
) -> Connecting:  # fmt: skip
    """Connect to a network by the addresses of one or more of its brokers: `gapless://host:port,host:port`.

    The first that answers tells where all others are, so one is enough; more help if it is down. `name` is the first
    part of the client's name, for logs and traces; what makes it unique is added. With `trace`, the client writes down
    what it does, in that directory (see `docs/TRACE_FORMAT.md`); without, it does so where the network asks it to, and
    warns if there is no such place on this machine.

    With TLS it is `gapless+tls://host:port`, and `credentials` say whom to trust and who we are, or name the file that
    does (`gapless.Credentials`). The client's name then begins with its user's.
    """
    checked = check_text("the address of a network", url)
    return Connecting(checked, check_name(name), check_seconds(timeout_s), trace, credentials)
