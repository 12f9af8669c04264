"""Fetches a JSON Web Key Set from the URL in `[signed_tokens]`, with bounds on size and time.

The URL must be https, because anybody who can change the answer can act as any user with signed
tokens. Plain http is accepted from this host only. Redirects are not followed.
"""

import socket
import ssl
from contextlib import suppress
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from pathlib import Path
from threading import Timer
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPHandler, HTTPRedirectHandler, HTTPSHandler, Request, build_opener

from gapless.errors import ConfigError, DeniedError

__all__ = ["KeysPendingError", "check_url", "fetch", "is_url"]

BYTES_MAX = 256 * 1024
PIECE = 16 * 1024
TIMEOUT_S = 5.0
"""Timeout of the connection, and of each piece of the answer."""
WHOLE_S = 10.0
"""The timeout of the whole answer including its head, so that an issuer that sends one byte at a time cannot occupy a
thread forever."""
LOOPBACK = ("127.0.0.1", "::1", "localhost")


class KeysPendingError(DeniedError):
    """The key of a signed token is unknown, but the next fetch may bring it."""


class _NoRedirect(HTTPRedirectHandler):
    def redirect_request(self, *_: object) -> None:
        return None


class _Deadline:
    """Limits one fetch to `WHOLE_S`: closes the connection while the head is read. After that, the reader checks
    `is_over`."""

    def __init__(self) -> None:
        self.is_over = False
        self._connection: HTTPConnection | None = None
        self._timer = Timer(WHOLE_S, self._end)
        self._timer.daemon = True
        self._timer.start()

    def watch(self, connection: HTTPConnection) -> HTTPConnection:
        """Return the connection, after registering it as the one to close."""
        self._connection = connection
        return connection

    def cancel(self) -> None:
        """Stop the timer, so that the connection is not closed any more."""
        self._timer.cancel()

    def _end(self) -> None:
        self.is_over = True
        connected = None if self._connection is None else self._connection.sock
        if connected is not None:
            with suppress(OSError):
                socket.socket.shutdown(connected, socket.SHUT_RDWR)  # wakes the thread that reads from it


class _HttpHandler(HTTPHandler):
    def __init__(self, deadline: _Deadline) -> None:
        super().__init__()
        self._deadline = deadline

    def http_open(self, request: Request) -> HTTPResponse:
        return self.do_open(lambda *place, **how: self._deadline.watch(HTTPConnection(*place, **how)), request)


class _HttpsHandler(HTTPSHandler):
    def __init__(self, deadline: _Deadline, context: ssl.SSLContext) -> None:
        super().__init__(context=context)
        self._deadline = deadline
        self._tls = context

    def https_open(self, request: Request) -> HTTPResponse:
        def connection(*place: Any, **how: Any) -> HTTPConnection:
            return self._deadline.watch(HTTPSConnection(*place, context=self._tls, **how))

        return self.do_open(connection, request)


def is_url(keys: str) -> bool:
    """Return whether the keys are fetched from a URL instead of read from a file."""
    return "://" in keys


def check_url(url: str) -> None:
    """Raise a `ConfigError` if keys may not be fetched from this URL."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        parts.port  # noqa: B018 - it is read when asked for
    except ValueError:
        raise ConfigError(f"{url!r} is not a valid URL") from None
    if parts.username is not None or parts.password is not None:
        raise ConfigError("the URL of keys contains a user or a password; public keys need none")
    if not host or not (parts.scheme == "https" or (parts.scheme == "http" and host in LOOPBACK)):
        raise ConfigError(f"{url!r} is not https://…; keys are fetched by plain http from this host only")


def fetch(url: str, authority: Path | None) -> str:
    """Return the answer; raise a `ConfigError` with the reason otherwise. Blocks for at most about
    `WHOLE_S`.
    """
    try:
        context = ssl.create_default_context(cafile=None if authority is None else str(authority))
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(f"{authority}: the file contains no certificate of an authority: {error.strerror}") from None
    deadline = _Deadline()
    opener = build_opener(_NoRedirect, _HttpHandler(deadline), _HttpsHandler(deadline, context))
    try:
        with opener.open(Request(url, headers={"Accept": "application/json"}), timeout=TIMEOUT_S) as answer:
            found = bytearray()
            while not deadline.is_over and (piece := answer.read1(PIECE)):
                found += piece
                if len(found) > BYTES_MAX:
                    raise ConfigError(f"{url}: the answer has more than {BYTES_MAX:,} bytes")
            if deadline.is_over:
                raise TimeoutError
            return found.decode()
    except HTTPError as error:
        error.close()
        why = "a redirect, which is not followed" if 300 <= error.code < 400 else "no keys"
        raise ConfigError(f"{url}: the answer is status {error.code}: {why}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{url}: the answer is not UTF-8 text") from None
    except (OSError, ValueError, HTTPException) as error:
        if deadline.is_over:
            raise ConfigError(f"{url}: the answer took longer than {WHOLE_S:g} s") from None
        reason = error.reason if isinstance(error, URLError) else error
        raise ConfigError(f"{url}: cannot be fetched: {str(reason) or type(reason).__name__}") from None
    finally:
        deadline.cancel()
