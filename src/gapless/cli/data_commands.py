"""The commands of `gapless data`."""

from pathlib import Path

import click

from gapless.cli.command_group import CommandGroup
from gapless.cli.shared_options import PATH, json_option

__all__ = ["DATA_EPILOG", "data"]

DATA_EPILOG = "Exit codes: 0 intact, 1 damaged, 64 unreadable or in use, 70 a bug in Gapless, 130 interrupted."

data = CommandGroup(
    epilog=DATA_EPILOG,
    help="Inspect the data directory of a stopped broker.\n\nStart with:  gapless data show DIR",
)

directory_argument = click.argument("directory", metavar="DIR", type=PATH, help="The `data` directory of a broker.")


@data.command("check", epilog=DATA_EPILOG)
@directory_argument
@json_option
def data_check(directory: Path, json: bool) -> int:
    """Read all data and verify its checksums. Nothing is changed.

    Example:  gapless data check /var/lib/gapless/b3

    Move a damaged directory away: with an empty one, the broker gets back all data that others have copies of.
    """
    from gapless.cli.data import check

    return check(directory, as_json=json)


@data.command("show", epilog=DATA_EPILOG)
@directory_argument
@click.option("--entries", is_flag=True, help="List every entry.")
@json_option
def data_show(directory: Path, entries: bool, json: bool) -> int:
    """Show the owner, journals, history and sizes of the data.

    Example:  gapless data show /var/lib/gapless/b3
    """
    from gapless.cli.data import show

    return show(directory, with_entries=entries, as_json=json)
