"""A network with certificates and users in this process, in a directory of the test."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from gapless.cli.security import make_for
from gapless.client import Credentials
from gapless.overlay import Overlay
from gapless.runtime.fleet import free_ports, local_network
from gapless.runtime.network_file import AuditLogEntry, NetworkConfig, ProtocolEntry, SecurityEntry
from gapless.runtime.settings import RuntimeSettings
from gapless.security.certificates import Authority
from gapless.security.development import security_section
from gapless.security.identity import certificate_uri
from gapless.security.tokens import hash_token, make_token

from .local import Local

__all__ = ["PATIENT", "STEADY", "Secure", "secure", "until"]

PATIENT = RuntimeSettings(heartbeat_ms=50, suspect_ms=600, hello_ms=5_000, join_ms=500, drain_ms=500, redial_max_ms=100)
"""Settings for TLS handshakes on a busy machine."""
STEADY = msgspec.structs.replace(PATIENT, suspect_ms=30_000)
"""Settings for tests without crashes, in which no broker should be suspected."""


class Secure(Local):
    """The brokers of one network, and credentials for it."""

    def __init__(self, config: NetworkConfig, directory: Path) -> None:
        super().__init__(config)
        self.directory = directory
        self.authority = Authority.load(directory / "authority.pem", directory / "authority.key")
        self.tokens: dict[str, str] = {}
        self._hashes: dict[str, str] = {}
        self._users: dict[str, dict[str, Any]] = {"admin": dict(ALL)}
        self._more: dict[str, Any] = {}

    def at(self, name: str) -> str:
        return f"gapless+tls://{self.config.addresses[name]}"

    @property
    def admin(self) -> Path:
        return self.directory / "users" / "admin.toml"

    def certified(
        self, user: str, *, authority: Authority | None = None, kind: Any = "user", days: float = 1
    ) -> Credentials:
        place = self.directory / f"{user}-{kind}-{len(list(self.directory.iterdir()))}.pem"
        uri = certificate_uri(self.config.network.name, kind, user)
        (authority or self.authority).issue(
            place, place.with_suffix(".key"), uri=uri, name=user, is_server=False, days=days
        )
        return Credentials(
            authority=self.directory / "authority.pem", certificate=place, key=place.with_suffix(".key")
        )  # fmt: skip

    def by_token(self, user: str) -> Credentials:
        """Return credentials with the user's token, which `set_users` writes to the file."""
        return self.with_token(self.token(user))

    def with_token(self, token: str) -> Credentials:
        return Credentials(authority=self.directory / "authority.pem", token=token)

    def token(self, user: str) -> str:
        if user not in self.tokens:
            self.tokens[user] = make_token(user)
            self._hashes[user] = hash_token(self.tokens[user])
        return self.tokens[user]

    def set_users(self, users: Mapping[str, Mapping[str, Any]], **more: Any) -> None:
        """Write the users file: these users, each with a certificate and a token, and the administrator."""
        roles = more.pop("roles", [])
        lines = [f"{key} = {_toml(value)}" for key, value in more.items() if not isinstance(value, dict)]
        for key, value in more.items():
            if isinstance(value, dict):
                lines += [f"[{key}]", *(f"{each} = {_toml(it)}" for each, it in value.items())]
        for role in roles:
            lines += ["[[roles]]", *(f"{each} = {_toml(it)}" for each, it in role.items())]
        for name, rights in {"admin": ALL, **users}.items():
            self.token(name)
            facts = {"certificate": True, "tokens": [self._hashes[name]], **rights}
            lines += ["[[users]]", f"name = {_toml(name)}"]
            lines += [f"{key} = {_toml(value)}" for key, value in facts.items() if not isinstance(value, dict)]
            for key, value in facts.items():
                if isinstance(value, dict):
                    lines += [f"[users.{key}]", *(f"{each} = {_toml(it)}" for each, it in value.items())]
        (self.directory / "users.toml").write_text("\n".join(lines) + "\n", encoding="utf-8")

    def set_expiry(self, user: str, expires: float) -> None:
        """Set the expiry of a user's token in the file."""
        file = self.directory / "users.toml"
        when = datetime.fromtimestamp(expires, UTC).isoformat()
        entry = f'{{hash = "{self._hashes[user]}", expires = {when}}}'
        file.write_text(file.read_text(encoding="utf-8").replace(f'"{self._hashes[user]}"', entry), encoding="utf-8")

    async def reload(self) -> None:
        for name in self.brokers:
            await self.reload_one(name)

    async def reload_one(self, name: str) -> None:
        broker_security = self.brokers[name].broker_security
        assert broker_security is not None
        assert await broker_security.reload("the test says so")


ALL = {"publish": ["TRUE"], "subscribe": ["TRUE"], "status": True, "operate": True}


def _toml(value: Any) -> str:
    return msgspec.json.encode(value).decode()


async def until(condition: Any, seconds: float = 30.0) -> None:
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.01)


@asynccontextmanager
async def secure(
    overlay: Overlay | int,
    directory: Path,
    *,
    f: int | None = None,
    users: Mapping[str, Mapping[str, Any]] | None = None,
    http: Sequence[str] = (),
    runtime: RuntimeSettings | None = None,
    protocol: str = "gapless",
    audit_log: AuditLogEntry | None = None,
    **more: Any,
) -> AsyncIterator[Secure]:
    """Start a network with these users, or with the administrator alone."""
    runtime = runtime or (STEADY if f == 0 else PATIENT)
    config = local_network(overlay, f=f, runtime=runtime, protocol=ProtocolEntry(protocol))
    if http:
        ports = dict(zip(http, free_ports(len(http)), strict=True))
        entries = tuple(
            msgspec.structs.replace(entry, http=f"127.0.0.1:{ports[entry.name]}") if entry.name in ports else entry
            for entry in config.brokers
        )
        config = msgspec.structs.replace(config, brokers=entries)
    make_for(config, directory)
    config = msgspec.structs.replace(config, security=SecurityEntry(**security_section(directory)))
    if audit_log is not None:
        config = msgspec.structs.replace(config, audit_log=audit_log)
    network = Secure(config, directory)
    if users is not None or more:
        network.set_users(users or {}, **more)
    try:
        await asyncio.gather(*(network.start(name) for name in config.overlay.brokers))
        yield network
    finally:
        await network.stop()
