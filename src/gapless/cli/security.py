"""`gapless security`: creates certificates, tokens and users for a secure network, and validates the users file."""

import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from gapless.cli.terminal import print_json
from gapless.errors import ConfigError
from gapless.private_files import exposure
from gapless.runtime.address import split_address
from gapless.runtime.network_file import NetworkConfig, load_network

if TYPE_CHECKING:  # imports cryptography, an optional dependency
    from gapless.security.development import Made

__all__ = ["check_users", "init", "make_for", "new_token"]

DAYS_MAX = 36_500


def init(directory: Path, file: Path, user: str | None, *, as_json: bool) -> int:
    """Create missing or expired files, and print how to use them."""
    from gapless.security.development import security_section

    made, user = make_for(load_network(file), directory, user)
    section = security_section(directory.absolute())
    if as_json:
        print_json({"made": [str(path) for path in made], "security": section, "user": user})
        return 0
    for path in made:
        print(f"made {path}")
    if not made:
        print(f"{directory} already contains everything")
    print(f"\nadd this to {file}, if it is missing:\n\n[security]")
    for key, value in section.items():
        print(f'{key} = "{value}"')
    if user:
        print(f"\nand connect with:  gapless status --config {file} --credentials {directory / 'users' / user}.toml")
    else:
        print("\nthere are no users' credentials yet; create some with --user NAME")
    return 0


def make_for(config: NetworkConfig, directory: Path, user: str | None = None) -> "Made":
    """Create the missing or expired files for this network."""
    from gapless.security.development import make_security

    hosts = {entry.name: _hosts(entry.address, entry.http) for entry in config.brokers}
    return make_security(directory, config.network.name, hosts, user)


def _hosts(*addresses: str) -> list[str]:
    found = [split_address(address)[0] for address in addresses if address]
    return list(dict.fromkeys([*found, *(["localhost"] if "127.0.0.1" in found else [])]))


def new_token(user: str, days: float | None, *, as_json: bool) -> int:
    """Print a new token, and the entry for the users file."""
    from gapless.security.identity import is_user_name
    from gapless.security.tokens import hash_token, make_token

    if not is_user_name(user):
        raise ConfigError(f"{user!r} is not a valid name of a user; use 1 to 64 of A-Z a-z 0-9 . _ @ -")
    if days is not None and not 0 < days <= DAYS_MAX:
        raise ConfigError(f"--days {days:g}: a token expires after more than 0 and at most {DAYS_MAX:,} days")
    token = make_token(user)
    kept = hash_token(token)
    expires = "" if days is None else _expiry(days)
    if as_json:
        print_json({"token": token, "hash": kept, "expires": expires or None})
    else:
        entry = f'{{hash = "{kept}", expires = {expires}}}' if expires else f'"{kept}"'
        print(f"for {user}, to be kept secret:     {token}")
        print(f"for the users' file, in tokens:  {entry}")
    return 0


def _expiry(days: float) -> str:
    """Return an expiry date in the format of TOML and JSON."""
    until = datetime.now(UTC) + timedelta(days=days)
    return until.isoformat(timespec="seconds").replace("+00:00", "Z")


def check_users(file: Path, *, as_json: bool) -> int:
    """Print whether brokers would accept the users file; return the exit code."""
    from gapless.security.users_file import load_users

    users = load_users(file)
    complaint = exposure(file, is_secret=True)
    if complaint:
        print(f"warning: {complaint}", file=sys.stderr)
    disabled = sum(user.disabled for user in users.by_name.values())
    if as_json:
        print_json({"users": len(users.by_name), "disabled": disabled})
    else:
        print(f"{file} is valid: {len(users.by_name)} users, {disabled} of them disabled")
    return 0
