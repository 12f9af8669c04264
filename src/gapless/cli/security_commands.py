"""The commands of `gapless security`."""

from pathlib import Path

import click

from gapless.cli.command_group import CommandGroup
from gapless.cli.exit_codes import NETWORK_EPILOG
from gapless.cli.shared_options import PATH, json_option

__all__ = ["security"]

security = CommandGroup(
    epilog=NETWORK_EPILOG,
    help="Certificates and users.\n\nStart with:  gapless security init DIR --config network.toml",
)


@security.command("init", epilog=NETWORK_EPILOG)
@click.argument("directory", metavar="DIR", type=PATH, help="The directory for the files.")
@click.option("--config", metavar="FILE", type=PATH, required=True, help="The network's file, in TOML.")
@click.option("--user", metavar="NAME", help="A user with all rights; by default admin, if there is no user.")
@json_option
def security_init(directory: Path, config: Path, user: str | None, json: bool) -> int:
    """Create certificates for a network, and a first user.

    It creates an authority for development, which signs the certificates of the brokers.

    Example:  gapless security init security --config network.toml

    Existing files stay, unless they have expired. A user named by --user is added if missing.
    For a network on this machine,  gapless up --secure  does all of it.
    """
    from gapless.cli.security import init

    return init(directory, config, user, as_json=json)


@security.command("token", epilog=NETWORK_EPILOG)
@click.argument("user", metavar="NAME", help="The user of the token.")
@click.option("--days", metavar="N", type=float, help="The token expires after this many days (default: never).")
@json_option
def security_token(user: str, days: float | None, json: bool) -> int:
    """Create a token, and its hash for the users file.

    Example:  gapless security token ann --days 90
    """
    from gapless.cli.security import new_token

    return new_token(user, days, as_json=json)


@security.command("check", epilog=NETWORK_EPILOG)
@click.argument("file", metavar="FILE", type=PATH, help="A users' file, in TOML.")
@json_option
def security_check(file: Path, json: bool) -> int:
    """Validate a users file as brokers do.

    Example:  gapless security check users.toml
    """
    from gapless.cli.security import check_users

    return check_users(file, as_json=json)
