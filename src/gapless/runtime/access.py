"""The settings with which a program dials brokers: clear text, or TLS with credentials.

A program creates one `Access` and asks it for each connection. Changed files are read again, so
certificates can be renewed while clients run.
"""

import ssl
from collections.abc import Sequence
from pathlib import Path

from gapless.errors import ConfigError
from gapless.runtime.address import is_tls
from gapless.runtime.tls import client_context
from gapless.security.credentials import Credentials

__all__ = ["CLEAR", "Access"]


class Access:
    """The scheme and credentials that a program uses to dial brokers."""

    def __init__(self, *, is_tls: bool = False, credentials: Credentials | None = None) -> None:
        self.is_tls = is_tls
        self._credentials = credentials or Credentials()
        self._context: ssl.SSLContext | None = None
        self._read: Sequence[float] = ()
        self.context()  # an unreadable file is reported at once

    @classmethod
    def to(cls, url: str, credentials: Credentials | str | Path | None) -> "Access":
        """Return the access for the scheme of this URL, with these credentials or those in this file."""
        if credentials is None:
            return cls(is_tls=True) if is_tls(url) else CLEAR
        if not is_tls(url):
            raise ConfigError("credentials require TLS; write gapless+tls://host:port")
        shown = credentials if isinstance(credentials, Credentials) else Credentials.load(credentials)
        return cls(is_tls=True, credentials=shown)

    @property
    def scheme(self) -> str:
        """Return the URL scheme of the addresses to dial."""
        return "gapless+tls://" if self.is_tls else "gapless://"

    @property
    def token(self) -> str:
        """Return the token for the greeting, or an empty string. It is sent over TLS only."""
        return self._credentials.current_token() if self.is_tls else ""

    def context(self) -> ssl.SSLContext | None:
        """Return the TLS context, or None for clear text."""
        if not self.is_tls:
            return None
        shown = self._credentials
        files = [Path(file) if file else None for file in (shown.authority, shown.certificate, shown.key)]
        read = [_changed(file) for file in files]
        if self._context is None or read != self._read:
            try:
                self._context = client_context(*files)
                self._read = read
            except ConfigError:
                if self._context is None:
                    raise  # the files are being replaced: use the previous ones until they are complete
        return self._context


def _changed(file: Path | None) -> float:
    try:
        return 0.0 if file is None else file.stat().st_mtime
    except OSError:
        return 0.0


CLEAR = Access()
