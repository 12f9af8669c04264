"""A directory with all that a secure network needs, for development and as a model for what matters.

```
DIR/authority.pem, authority.key     an authority; keep the key away from brokers
DIR/brokers/NAME.pem, NAME.key       what each broker shows
DIR/users.toml                       who may do what
DIR/users/NAME.pem, NAME.key         what a user shows,
DIR/users/NAME.toml                  and its credentials: with it, the command line and programs can be this user
```

What is there stays: it can be made again after a broker was added to the network.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from gapless.errors import ConfigError
from gapless.security.certificates import Authority, write_secret
from gapless.security.identity import certificate_uri, is_user_name
from gapless.security.tokens import hash_secret, make_token

__all__ = ["make_security", "security_section"]


def make_security(directory: Path, network: str, brokers: Mapping[str, Sequence[str]], user: str) -> list[Path]:
    """Make what is missing, for brokers with these hosts and a first user who may do everything; what was made."""
    if not is_user_name(user):
        raise ConfigError(f"{user!r} is no name of a user; use 1 to 64 of A-Z a-z 0-9 . _ @ -")
    for folder in (directory, directory / "brokers", directory / "users"):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    made: list[Path] = []
    authority = _authority(directory, network, made)
    for name, hosts in brokers.items():
        certificate = directory / "brokers" / f"{name}.pem"
        if not certificate.exists():
            uri = certificate_uri(network, "broker", name)
            authority.issue(certificate, certificate.with_suffix(".key"), uri=uri, name=name, hosts=hosts)
            made.append(certificate)
    users = directory / "users.toml"
    if not users.exists():
        token = _make_user(directory / "users", authority, network, user)
        write_secret(users, _users(user, hash_secret(token)).encode())
        made += [users, directory / "users" / f"{user}.toml"]
    return made


def _authority(directory: Path, network: str, made: list[Path]) -> Authority:
    certificate, key = directory / "authority.pem", directory / "authority.key"
    if certificate.exists():
        return Authority.load(certificate, key)
    authority = Authority.make(f"{network} development authority")
    authority.write(certificate, key)
    made.append(certificate)
    return authority


def _make_user(directory: Path, authority: Authority, network: str, user: str) -> str:
    """Certificate, token and credentials of a user; returns the token."""
    certificate, key = directory / f"{user}.pem", directory / f"{user}.key"
    uri = certificate_uri(network, "user", user)
    authority.issue(certificate, key, uri=uri, name=user, is_server=False)
    token = make_token(user)
    lines = (
        "# Whoever can read this can be this user.",
        'authority = "../authority.pem"',
        f"certificate = {_toml(certificate.name)}",
        f"key = {_toml(key.name)}",
        f"# token = {_toml(token)}  # instead of certificate and key",
    )
    write_secret(directory / f"{user}.toml", ("\n".join(lines) + "\n").encode())
    return token


def _users(user: str, kept: str) -> str:
    return f"""# Who may do what. Brokers read it again when it changes.

[[users]]
name = {_toml(user)}
certificate = true
tokens = [{_toml(kept)}]
publish = ["TRUE"]
subscribe = ["TRUE"]
status = true
operate = true
history = true
named = true
"""


def security_section(directory: Path) -> dict[str, str]:
    """What to put under `[security]` in the network's file."""
    return {
        "authority": str(directory / "authority.pem"),
        "certificate": str(directory / "brokers" / "{name}.pem"),
        "key": str(directory / "brokers" / "{name}.key"),
        "users": str(directory / "users.toml"),
    }


def _toml(text: str) -> str:
    return msgspec.json.encode(text).decode()
