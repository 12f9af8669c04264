"""Gapless with certificates and users: the same guarantee over TLS, with permission checks for every event."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.peers.gapless_system import Gapless

from gapless.runtime.access import Access
from gapless.security.credentials import Credentials
from gapless.security.development import make_security, security_section

DIRECTORY = "GAPLESS_BENCHMARK_SECURITY"
"""The variable with the directory of the credentials."""


class SecureGapless(Gapless):
    """The same chain of brokers with TLS."""

    name = "gapless, TLS"
    promise = "the same, encrypted, and only for who may"
    scheme = "gapless+tls://"

    @property
    def credentials(self) -> Path | None:
        return Path(os.environ[DIRECTORY]) / "users" / "admin.toml"

    @property
    def access(self) -> Access:
        assert self.credentials is not None
        return Access(is_tls=True, credentials=Credentials.load(self.credentials))

    def more(self, folder: Path) -> str:
        make_security(folder, "gapless", {f"b{number}": ["127.0.0.1"] for number in range(len(self.ports))}, "admin")
        section = "".join(f'{key} = "{path}"\n' for key, path in security_section(folder).items())
        return f"[security]\n{section}"

    @contextmanager
    def serve(self, folder: Path) -> Iterator[int]:
        os.environ[DIRECTORY] = str(folder)
        with super().serve(folder) as port:
            yield port
