"""What a client shows to a broker, and whom it trusts.

A file of credentials, in TOML, is for the command line and for programs that are given no more than a path:

```toml
authority = "authority.pem"      # signed the brokers' certificates; left out: the authorities of the system
certificate = "ann.pem"          # a certificate of ours,
key = "ann.key"                  # and its key
token = "ann:…"                  # or a token, signed or not
```

Paths are relative to the file. Anybody who can read a token or a key can act as this user. So a file with a token that
others can read is named in a warning, and a key that others can read is refused.
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
    """Files in PEM, and a token or a function that returns one. Each connection calls it, so it can renew it."""

    authority: str | Path = ""
    certificate: str | Path = ""
    key: str | Path = ""
    token: TokenSource = ""

    def __repr__(self) -> str:
        return f"<Credentials of {self.certificate or ('a token' if self.token else 'anybody')}>"

    @classmethod
    def load(cls, path: str | Path) -> "Credentials":
        """Those in a file."""
        path = Path(path)
        try:
            found = msgspec.convert(tomllib.loads(path.read_text(encoding="utf-8")), _File)
        except OSError as error:
            raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
        except (ValueError, msgspec.ValidationError):
            # What is in it is not repeated: it is secret.
            raise ConfigError(
                f"{path}: these are no credentials; write authority, certificate, key and token, each as text, in TOML"
            ) from None
        complaint = exposure(path, is_secret=bool(found.token))
        if complaint:
            _logger.warning(complaint)
        near = path.parent
        files = {name: str(near / value) if value else "" for name, value in (
            ("authority", found.authority), ("certificate", found.certificate), ("key", found.key)
        )}  # fmt: skip
        return cls(**files, token=found.token)

    def current_token(self) -> str:
        """The token to show now."""
        token = self.token() if callable(self.token) else self.token
        if not isinstance(token, str):
            raise ConfigError(f"a token is text, but {type(token).__name__} was given")
        return token.strip()
