"""The commands of `gapless subscriptions`."""

from pathlib import Path

import click

from gapless.cli.command_group import CommandGroup
from gapless.cli.exit_codes import NETWORK_EPILOG
from gapless.cli.shared_options import credentials_option, json_option, local, url_option

__all__ = ["names"]

name_argument = click.argument("name", metavar="NAME", help="The name of the subscription.")


@click.group(
    cls=CommandGroup, epilog=NETWORK_EPILOG, invoke_without_command=True,
    help="Durable subscriptions: list, move and delete them.\n\n"
    "Start with:  gapless sub --durable billing \"topic = 'order'\"",
)  # fmt: skip
@url_option
@credentials_option
@json_option
@click.pass_context
def names(context: click.Context, url: str, credentials: Path | None, json: bool) -> int | None:
    if context.invoked_subcommand is not None:
        return None
    from gapless.cli.subscriptions import show

    return show(local(url, credentials), credentials, as_json=json)


@names.command("list", epilog=NETWORK_EPILOG)
@url_option
@credentials_option
@json_option
def names_list(url: str, credentials: Path | None, json: bool) -> int:
    """List durable subscriptions with filter, position, lag and client.

    Example:  gapless subscriptions
    """
    from gapless.cli.subscriptions import show

    return show(local(url, credentials), credentials, as_json=json)


@names.command("move", epilog=NETWORK_EPILOG)
@name_argument
@click.argument(
    "when", metavar="WHEN", help="The new position: earliest, now, an age (10m), a time, or a position (p1…)."
)
@url_option
@credentials_option
@json_option
def names_move(name: str, when: str, url: str, credentials: Path | None, json: bool) -> int:
    """Move a durable subscription to another position. An attached client is detached.

    Example:  gapless subscriptions move billing 10m
    """
    from gapless.cli.subscriptions import move

    return move(local(url, credentials), credentials, name, when, as_json=json)


@names.command("delete", epilog=NETWORK_EPILOG)
@name_argument
@url_option
@credentials_option
@json_option
def names_delete(name: str, url: str, credentials: Path | None, json: bool) -> int:
    """Delete a durable subscription. An attached client is detached.

    Example:  gapless subscriptions delete billing
    """
    from gapless.cli.subscriptions import delete

    return delete(local(url, credentials), credentials, name, as_json=json)
