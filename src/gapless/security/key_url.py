"""Fetches a JSON Web Key Set from the URL in `[signed_tokens]`, with bounds on size and time.

The URL must be https, because anybody who can change the answer can act as any user with signed
tokens. Plain http is accepted from this host only. Redirects are not followed.
"""

import ssl
import time
from http.client import HTTPException
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, HTTPSHandler, Request, build_opener

from gapless.errors import ConfigError, DeniedError

__all__ = ["KeysPendingError", "check_url", "fetch", "is_url"]

BYTES_MAX = 256 * 1024
PIECE = 16 * 1024
TIMEOUT_S = 5.0
"""Timeout of the connection, and of each piece of the answer."""
WHOLE_S = 10.0
"""Timeout of the whole answer: an issuer that sends a byte at a time does not occupy a thread forever."""
LOOPBACK = ("127.0.0.1", "::1", "localhost")


class KeysPendingError(DeniedError):
    """The key of a signed token is unknown, but the next fetch may bring it."""


class _NoRedirect(HTTPRedirectHandler):
    def redirect_request(self, *_: object) -> None:
        return None


def is_url(keys: str) -> bool:
    """Return whether keys are fetched, not read from a file."""
    return "://" in keys


def check_url(url: str) -> None:
    """Raise a `ConfigError` if keys may not be fetched from this URL."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        parts.port  # noqa: B018 - it is read when asked for
    except ValueError:
        raise ConfigError(f"{url!r} is no URL") from None
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
        raise ConfigError(f"{authority}: there is no certificate of an authority in it: {error.strerror}") from None
    opener = build_opener(_NoRedirect, HTTPSHandler(context=context))
    deadline = time.monotonic() + WHOLE_S
    try:
        with opener.open(Request(url, headers={"Accept": "application/json"}), timeout=TIMEOUT_S) as answer:
            found = bytearray()
            while piece := answer.read1(PIECE):
                found += piece
                if len(found) > BYTES_MAX:
                    raise ConfigError(f"{url}: the answer has more than {BYTES_MAX:,} bytes")
                if time.monotonic() > deadline:
                    raise ConfigError(f"{url}: the answer took longer than {WHOLE_S:g} s")
            return found.decode()
    except HTTPError as error:
        error.close()
        why = "a redirect, which is not followed" if 300 <= error.code < 400 else "no keys"
        raise ConfigError(f"{url}: the answer is status {error.code}: {why}") from None
    except URLError as error:
        raise ConfigError(f"{url}: cannot be fetched: {error.reason}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{url}: the answer is no UTF-8 text") from None
    except (OSError, ValueError, HTTPException) as error:
        raise ConfigError(f"{url}: cannot be fetched: {error or type(error).__name__}") from None
