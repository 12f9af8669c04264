"""The credentials with which a client authenticates, and the authority that it trusts.

A credentials file in TOML serves the command line, and programs that are configured with a path:

```toml
authority = "authority.pem"      # signed the brokers' certificates; default: the system's authorities
certificate = "ann.pem"          # a client certificate,
key = "ann.key"                  # and its key
token = "ann:…"                  # or a token, static or signed
```

Paths are relative to the file. Anybody who can read a token or a key can act as this user. So a
token that others can read causes a warning, and a key that others can read is refused.
"""

import logging
import tomllib
from collections.abc import Callable
from pathlib import Path

import msgspec

from gapless.errors import ConfigError
from gapless.private_files import exposure

__all__ = ["Credentials", "TokenSource"]

_logger = logging.getLogger("gapless.client")

TokenSource = str | Callable[[], str]


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    authority: str = ""
    certificate: str = ""
    key: str = ""
    token: str = ""


class Credentials(msgspec.Struct, frozen=True, kw_only=True):
    """Paths of PEM files, and a token or a function that returns one. The function is called for each connection, so it
    can renew the token.
    """

    authority: str | Path = ""
    certificate: str | Path = ""
    key: str | Path = ""
    token: TokenSource = ""

    def __repr__(self) -> str:
        return f"<Credentials of {self.certificate or ('a token' if self.token else 'anybody')}>"

    @classmethod
    def load(cls, path: str | Path) -> "Credentials":
        """Return the credentials in a file.

        Parameters:
            path: where the file is; an operator of the network makes it.

        Example: `gapless.connect(url, credentials=gapless.Credentials.load("ann.toml"))`
        """
        path = Path(path)
        try:
            found = msgspec.convert(tomllib.loads(path.read_text(encoding="utf-8")), _File)
        except OSError as error:
            raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
        except (ValueError, msgspec.ValidationError):
            # The error does not repeat the content, which is secret.
            raise ConfigError(
                f"{path}: this is not a credentials file; write authority, certificate, key and token, each as text, "
                "in TOML"
            ) from None
        complaint = exposure(path, is_secret=bool(found.token))
        if complaint:
            _logger.warning(complaint, extra={"event": "file.exposed"})
        near = path.parent
        files = {name: str(near / value) if value else "" for name, value in (
            ("authority", found.authority), ("certificate", found.certificate), ("key", found.key)
        )}  # fmt: skip
        return cls(**files, token=found.token)

    def current_token(self) -> str:
        """Return the current token.

        Example: `headers = {"Authorization": f"Bearer {credentials.current_token()}"}`
        """
        token = self.token() if callable(self.token) else self.token
        if not isinstance(token, str):
            raise ConfigError(f"a token must be text, but is of type {type(token).__name__}")
        return token.strip()
