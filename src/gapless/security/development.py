"""Creates a directory with everything that a secure network needs, for development and as a
template.

```
DIR/authority.pem, authority.key     an authority; keep the key away from brokers
DIR/brokers/NAME.pem, NAME.key       the certificate of each broker
DIR/users.toml                       users and their permissions
DIR/users/NAME.pem, NAME.key         the certificate of a user,
DIR/users/NAME.toml                  and its credentials, for the command line and for programs
```

Existing files are kept unless they have expired. Repeat the command after a broker was added to the
network, for another user, or when certificates have expired.
"""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from gapless.errors import ConfigError
from gapless.security.certificates import Authority, expiry_of, write_secret
from gapless.security.identity import certificate_uri, is_user_name
from gapless.security.tokens import hash_token, make_token
from gapless.security.users_file import load_users

__all__ = ["FIRST", "Made", "make_security", "security_section"]

FIRST = "admin"
HEADING = "# The permissions of users. Brokers read this file again when it changes."


class Made(NamedTuple):
    """The files that were created, and the name of a user whose credentials exist, or an empty string."""

    files: list[Path]
    user: str


def make_security(
    directory: Path, network: str, brokers: Mapping[str, Sequence[str]], user: str | None = None
) -> Made:  # fmt: skip
    """Create the files that are missing or have expired, for brokers with these hosts and a user with all permissions.

    The default is an existing user, or `FIRST` if there is no users' file yet.
    """
    if user is not None and not is_user_name(user):
        raise ConfigError(f"{user!r} is not a valid name of a user; use 1 to 64 of A-Z a-z 0-9 . _ @ -")
    for folder in (directory, directory / "brokers", directory / "users"):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    made: list[Path] = []
    authority = _authority(directory, network, made)
    is_new = bool(made)
    for name, hosts in brokers.items():
        certificate = directory / "brokers" / f"{name}.pem"
        if is_new or _is_due(certificate):
            uri = certificate_uri(network, "broker", name)
            authority.issue(certificate, certificate.with_suffix(".key"), uri=uri, name=name, hosts=hosts)
            made.append(certificate)
    for certificate in sorted((directory / "users").glob("*.pem")):
        if is_user_name(certificate.stem) and (is_new or _is_due(certificate)):
            _certify(certificate, authority, network)
            made.append(certificate)
    return Made(made, _user(directory, authority, network, user, made))


def _user(directory: Path, authority: Authority, network: str, user: str | None, made: list[Path]) -> str:
    """Create the user if it does not exist, and return its name."""
    file, folder = directory / "users.toml", directory / "users"
    known = load_users(file).by_name if file.exists() else {}
    if user is None and known:
        there = [name for name in known if (folder / f"{name}.toml").exists()]
        return next((name for name in there if known[name].operate), there[0] if there else "")
    name = user or FIRST
    credentials = folder / f"{name}.toml"
    if name not in known:
        kept = hash_token(_make_user(folder, authority, network, name))
        before = file.read_text(encoding="utf-8").rstrip() if file.exists() else HEADING
        write_secret(file, f"{before}\n\n{_section(name, kept)}".encode())
        made += [file, credentials]
    elif not credentials.exists():
        if not known[name].certificate:
            raise ConfigError(
                f"{file}: user {name!r} exists, but may not authenticate with a certificate; write "
                "certificate = true for it, or create a token: gapless security token"
            )
        _certify(folder / f"{name}.pem", authority, network)
        _write_credentials(credentials, "")
        made.append(credentials)
    return name


def _authority(directory: Path, network: str, made: list[Path]) -> Authority:
    certificate, key = directory / "authority.pem", directory / "authority.key"
    if not _is_due(certificate):
        return Authority.load(certificate, key)
    authority = Authority.make(f"{network} development authority")
    authority.write(certificate, key)
    made.append(certificate)
    return authority


def _is_due(certificate: Path) -> bool:
    """Return whether the certificate is missing or has expired."""
    return not certificate.exists() or expiry_of(certificate) <= time.time()


def _certify(certificate: Path, authority: Authority, network: str) -> None:
    """Issue a certificate for the user after whom the file is named."""
    uri = certificate_uri(network, "user", certificate.stem)
    authority.issue(certificate, certificate.with_suffix(".key"), uri=uri, name=certificate.stem, is_server=False)


def _make_user(directory: Path, authority: Authority, network: str, user: str) -> str:
    """Create a certificate, a token and a credentials file for a user. Return the token."""
    _certify(directory / f"{user}.pem", authority, network)
    token = make_token(user)
    _write_credentials(directory / f"{user}.toml", token)
    return token


def _write_credentials(path: Path, token: str) -> None:
    lines = [
        "# Anybody who can read this file can act as this user.",
        'authority = "../authority.pem"',
        f"certificate = {_toml(path.stem + '.pem')}",
        f"key = {_toml(path.stem + '.key')}",
    ]
    if token:
        lines.append(f"# token = {_toml(token)}  # instead of certificate and key")
    write_secret(path, ("\n".join(lines) + "\n").encode())


def _section(user: str, kept: str) -> str:
    return f"""[[users]]
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
    """Return the entries for `[security]` in the network's file."""
    return {
        "authority": str(directory / "authority.pem"),
        "certificate": str(directory / "brokers" / "{name}.pem"),
        "key": str(directory / "brokers" / "{name}.key"),
        "users": str(directory / "users.toml"),
    }


def _toml(text: str) -> str:
    return msgspec.json.encode(text).decode()
