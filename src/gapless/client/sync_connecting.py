"""Generated from `gapless.client.connecting` by `scripts/generate_sync_client.py`. Edit that file instead."""

from collections.abc import Sequence
from pathlib import Path

from gapless.client import connecting
from gapless.client.caller_side import started
from gapless.client.codecs import CodecLike
from gapless.client.connecting import CredentialsLike
from gapless.client.middleware import Middleware
from gapless.client.sync_client import Client

__all__ = ["connect"]


def connect(
    url: str | None = None,
    *,
    name: str = "client",
    timeout_s: float = 5.0,
    trace: str | Path | None = None,
    credentials: CredentialsLike = None,
    codec: CodecLike = None,
    middleware: Sequence[Middleware] = (),
) -> Client:
    """Connect to a network. Use the result in `with`.

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

    Example: `with gapless.sync.connect("gapless://127.0.0.1:7400") as client:`
    """
    return started(
        Client,
        connecting.connect(
            url,
            name=name,
            timeout_s=timeout_s,
            trace=trace,
            credentials=credentials,
            codec=codec,
            middleware=middleware,
        ),
    )
