"""The commands of `gapless security`."""

from pathlib import Path
from typing import Annotated

import typer

from gapless.cli.exit_codes import NETWORK_EPILOG
from gapless.cli.shared_options import Json

__all__ = ["security"]

security = typer.Typer(
    help="Certificates and users.\n\nStart with:  [bold]gapless security init DIR --config network.toml[/bold]"
)


@security.command("init", epilog=NETWORK_EPILOG)
def security_init(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="Where to put it.")],
    config: Annotated[Path, typer.Option("--config", metavar="FILE", help="The network's file, in TOML.")],
    user: Annotated[
        str | None, typer.Option(metavar="NAME", help="A user with all rights; by default admin, if there is no user.")
    ] = None,
    json: Json = False,
) -> int:
    """Create an authority for development, certificates for the brokers of a network, and a first user.

    Example:  [bold]gapless security init security --config network.toml[/bold]

    Existing files stay, unless they have expired. A user named by --user is added if missing.
    For a network on this machine,  [bold]gapless up --secure[/bold]  does all of it.
    """
    from gapless.cli.security import init

    return init(directory, config, user, as_json=json)


@security.command("token", epilog=NETWORK_EPILOG)
def security_token(
    user: Annotated[str, typer.Argument(metavar="NAME", help="Whose it will be.")],
    days: Annotated[
        float | None, typer.Option(metavar="N", help="It expires after so many days; never, if this is left out.")
    ] = None,
    json: Json = False,
) -> int:
    """Create a token, and its hash for the users file.

    Example:  [bold]gapless security token ann --days 90[/bold]
    """
    from gapless.cli.security import new_token

    return new_token(user, days, as_json=json)


@security.command("check", epilog=NETWORK_EPILOG)
def security_check(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A users' file, in TOML.")], json: Json = False
) -> int:
    """Validate a users file as brokers do.

    Example:  [bold]gapless security check users.toml[/bold]
    """
    from gapless.cli.security import check_users

    return check_users(file, as_json=json)
