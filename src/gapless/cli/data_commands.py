"""The commands of `gapless data`."""

from pathlib import Path
from typing import Annotated

import typer

from gapless.cli.shared_options import Json, help_without_command

__all__ = ["DATA_EPILOG", "data"]

DATA_EPILOG = (
    "Exit codes: 0 all is well, 1 damaged, 64 cannot be read, or in use, 70 a bug in Gapless, 130 interrupted."
)

data = typer.Typer(
    help="Inspect the data directory of a broker that is stopped.\n\nStart with:  [bold]gapless data show DIR[/bold]"
)

DataDirectory = Annotated[Path, typer.Argument(metavar="DIR", help="The `data` directory of a broker.")]


@data.callback(invoke_without_command=True)
def _data(context: typer.Context) -> None:
    help_without_command(context)


@data.command("check", epilog=DATA_EPILOG)
def data_check(directory: DataDirectory, json: Json = False) -> int:
    """Read all data and verify its checksums. Nothing is changed.

    Example:  [bold]gapless data check /var/lib/gapless/b3[/bold]

    A damaged directory can be moved away: with an empty one, the broker gets back what others hold copies of.
    """
    from gapless.cli.data import check

    return check(directory, as_json=json)


@data.command("show", epilog=DATA_EPILOG)
def data_show(
    directory: DataDirectory,
    entries: Annotated[bool, typer.Option("--entries", help="Name each of the entries.")] = False,
    json: Json = False,
) -> int:
    """Show the owner, journals, history and sizes of the data.

    Example:  [bold]gapless data show /var/lib/gapless/b3[/bold]
    """
    from gapless.cli.data import show

    return show(directory, with_entries=entries, as_json=json)
