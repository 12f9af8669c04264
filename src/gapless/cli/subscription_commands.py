"""The commands of `gapless subscriptions`."""

from typing import Annotated

import typer

from gapless.cli.exit_codes import NETWORK_EPILOG
from gapless.cli.shared_options import LOCAL, CredentialsFile, Json, Url, local

__all__ = ["names"]

names = typer.Typer(
    help="Durable subscriptions: list, move and delete them.\n\n"
    "Start with:  [bold]gapless sub --durable billing \"topic = 'order'\"[/bold]"
)
Name = Annotated[str, typer.Argument(metavar="NAME", help="The name of the subscription.")]


@names.callback(invoke_without_command=True)
def _names(
    context: typer.Context, url: Url = LOCAL, credentials: CredentialsFile = None, json: Json = False
) -> int | None:
    if context.invoked_subcommand is not None:
        return None
    from gapless.cli.subscriptions import show

    return show(local(url, credentials), credentials, as_json=json)


@names.command("list", epilog=NETWORK_EPILOG)
def names_list(url: Url = LOCAL, credentials: CredentialsFile = None, json: Json = False) -> int:
    """List the durable subscriptions: filter, position, lag, and the attached client.

    Example:  [bold]gapless subscriptions[/bold]
    """
    from gapless.cli.subscriptions import show

    return show(local(url, credentials), credentials, as_json=json)


@names.command("move", epilog=NETWORK_EPILOG)
def names_move(
    name: Name,
    when: Annotated[
        str, typer.Argument(metavar="WHEN", help="Where it goes on: earliest, now, an age (10m), a time, a position.")
    ],
    url: Url = LOCAL,
    credentials: CredentialsFile = None,
    json: Json = False,
) -> int:
    """Move a durable subscription to another position. An attached client is detached.

    Example:  [bold]gapless subscriptions move billing 10m[/bold]
    """
    from gapless.cli.subscriptions import move

    return move(local(url, credentials), credentials, name, when, as_json=json)


@names.command("delete", epilog=NETWORK_EPILOG)
def names_delete(name: Name, url: Url = LOCAL, credentials: CredentialsFile = None, json: Json = False) -> int:
    """Delete a durable subscription. An attached client is detached.

    Example:  [bold]gapless subscriptions delete billing[/bold]
    """
    from gapless.cli.subscriptions import delete

    return delete(local(url, credentials), credentials, name, as_json=json)
