"""Connects a client to a network: resolves the address, and negotiates with a broker."""

import logging
import os
import secrets
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import TypeAlias

from gapless.client.arguments import check_name, check_seconds, check_text
from gapless.client.bootstrap import find_network
from gapless.client.client import Client
from gapless.client.codecs import Codec, CodecLike, find_codec
from gapless.client.identity import Identity
from gapless.client.middleware import Middleware, Middlewares
from gapless.client.opening import Opening
from gapless.errors import CallError
from gapless.runtime.access import Access
from gapless.runtime.wire import Welcome
from gapless.security.credentials import Credentials
from gapless.security.identity import client_prefix

__all__ = ["CREDENTIALS_VARIABLE", "URL_VARIABLE", "CredentialsLike", "connect", "connect_as"]

URL_VARIABLE, CREDENTIALS_VARIABLE = "GAPLESS_URL", "GAPLESS_CREDENTIALS"
"""The environment variables for the network's URL and the path of the credentials, used if the program gives
neither."""

_logger = logging.getLogger("gapless.client")

CredentialsLike: TypeAlias = Credentials | str | Path | None


def _wanted_trace(welcome: Welcome) -> str:
    """Return the directory for traces that the network asks for, or an empty string if it does not exist on this
    machine.
    """
    if welcome.trace and not Path(welcome.trace).is_dir():
        _warn_of(welcome.trace)
        return ""
    return welcome.trace


@lru_cache(maxsize=64)
def _warn_of(place: str) -> None:
    """Log a warning once for each directory, whatever the number of clients in the process."""
    _logger.warning(
        f"the network asks clients to write traces in {place}, which does not exist here, so clients of this "
        "process write none; connect(…, trace=DIR) writes one elsewhere",
        extra={"event": "trace.directory_missing"},
    )


async def _connect(
    url: str, name: str, timeout_s: float, trace: str | Path | None, credentials: CredentialsLike,
    identity: Identity | None = None, codec: Codec | None = None, middleware: Sequence[Middleware] = (),
) -> Client:  # fmt: skip
    Middlewares(middleware)  # reports an invalid value before anything is sent
    access = Access.to(url, credentials)
    address, welcome = await find_network(url, timeout_s, access)
    place = str(trace or "") if trace is not None else _wanted_trace(welcome)
    whose = client_prefix(welcome.user) if welcome.user else ""
    full_name = f"{whose}{name}-{secrets.token_hex(4)}" if identity is None else identity.name
    return Client(
        welcome, full_name, address=address, trace=place, access=access, identity=identity, patience_s=timeout_s,
        codec=codec, middleware=middleware,
    )  # fmt: skip


def connect(
    url: str | None = None, *, name: str = "client", timeout_s: float = 5.0, trace: str | Path | None = None,
    credentials: CredentialsLike = None, codec: CodecLike = None, middleware: Sequence[Middleware] = (),
) -> Opening[Client]:  # fmt: skip
    """Connect to a network: await the result, or use it in `async with`.

    Parameters:
        url: the addresses of one or more brokers, `gapless://host:port,host:port`, or `gapless+tls://…` with TLS. The
            first that answers names all others, so one is enough; more help if it is down. Without it, the environment
            variable `GAPLESS_URL` has the URL, and `GAPLESS_CREDENTIALS` the path of the credentials.
        name: the first part of the client's name, for logs and traces; a unique suffix is appended.
        timeout_s: how long to look for a broker.
        trace: a directory in which the client records what it does (see `docs/TRACE_FORMAT.md`). By default the
            client records if the network asks for it, and warns if that directory does not exist on this machine.
        credentials: for TLS, the authority to trust and the identity of the client: `gapless.Credentials`, or the path
            of a file with them. The name of the client then begins with that of its user.
        codec: "json", "msgpack", "arrow", or an object with `encode` and `decode`: payloads may be any values that it
            can encode, and `client.decode(event)` reads them.
        middleware: `gapless.Middleware` objects, called with each event that is published, delivered or acknowledged.

    Example: `async with gapless.connect("gapless://127.0.0.1:7400") as client:`
    """
    if url is None:
        url = os.environ.get(URL_VARIABLE)
        if not url:
            raise CallError(f"connect() needs the address of a network: pass a URL, or set {URL_VARIABLE}")
        credentials = credentials or os.environ.get(CREDENTIALS_VARIABLE) or None
    checked = check_text("the address of a network", url)
    found = find_codec(codec)
    connecting = _connect(
        checked, check_name(name), check_seconds(timeout_s), trace, credentials, codec=found, middleware=middleware
    )
    return Opening(connecting, "connect(…)", Client)


def connect_as(
    url: str, name: str, identity: Identity | None, *, timeout_s: float, credentials: CredentialsLike
) -> Opening[Client]:
    """Connect with the identity of another process that has ended, or as a new client if it is None. No trace is
    written.
    """
    return Opening(_connect(url, name, timeout_s, "", credentials, identity), "connect_as(…)", Client)
