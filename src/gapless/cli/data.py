"""`gapless data`: shows the contents of a stopped broker's data directory, and checks it for damage."""

from datetime import UTC, datetime
from pathlib import Path

import msgspec
from rich.table import Table
from rich.text import Text

from gapless.cli.exit_codes import INVALID, VALID
from gapless.cli.terminal import output_console, print_json, spinner
from gapless.storage.inspection import Checked, Contents, check_directory, show_directory

__all__ = ["check", "show"]

_SHOWN_MAX = 20
"""Maximum number of problems that are printed; --json has all of them."""


def check(directory: Path, *, as_json: bool) -> int:
    """Print the problems of a data directory. Return 1 if there are any."""
    with spinner("opening") as announce:
        found = check_directory(directory, announce)
    code = INVALID if found.problems else VALID
    if as_json:
        print_json({"directory": str(directory), "damaged": bool(found.problems), **msgspec.to_builtins(found)})
        return code
    console = output_console()
    whose = f"{directory}: broker {found.about.broker} of network {found.about.network}"
    console.print(Text(whose))
    console.print(_verdict(found))
    for problem in found.problems[:_SHOWN_MAX]:
        console.print(Text(problem.removeprefix(f"{directory}/"), "yellow"))
    if len(found.problems) > _SHOWN_MAX:
        console.print(Text(f"and {len(found.problems) - _SHOWN_MAX:,} more; --json has all of them"))
    return code


def _verdict(found: Checked) -> Text:
    looked = f"{found.rows:,} rows, {_bytes(found.bytes)}"
    if not found.problems:
        return Text.assemble(("WHOLE", "bold green"), f"  {looked}, all intact")
    return Text.assemble(("DAMAGED", "bold red"), f"  besides {looked}, which are intact:")


def show(directory: Path, *, with_entries: bool, as_json: bool) -> int:
    """Print the contents of a data directory."""
    found = show_directory(directory)
    if as_json:
        print_json({"directory": str(directory), **msgspec.to_builtins(found)})
        return VALID
    console = output_console()
    console.print(Text(f"{directory}: broker {found.about.broker} of network {found.about.network}"))
    console.print(Text(f"format {found.version}, since {found.about.created}, {_bytes(found.file_bytes)} on disk"))
    if found.missing:
        console.print(Text(f"the last {found.missing:,} commits that were reported as written are missing", "yellow"))
    if found.history:
        console.print(_history(found))
    size = sum(found.entries.values())
    console.print(Text(f"{len(found.entries):,} entries, {_bytes(size)}"))
    if with_entries:
        for key, length in found.entries.items():
            console.print(Text(f"  {key}  {_bytes(length)}"))
    return VALID


def _table(*headings: str) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="cyan")
    for place, heading in enumerate(headings):
        table.add_column(heading, justify="right" if place else "left", no_wrap=True)
    return table


def _history(found: Contents) -> Table:
    table = _table("history of", "from", "to", "events", "size")
    for origin, kept in found.history.items():
        table.add_row(Text(origin), _time(kept.first), _time(kept.last), f"{kept.events:,}", _bytes(kept.bytes))
    return table


def _time(stamp: int) -> str:
    """Return a timestamp as date and time, or as a number if no clock can have produced it."""
    try:
        return f"{datetime.fromtimestamp(stamp / 1e6, UTC):%Y-%m-%d %H:%M:%S}"
    except (OverflowError, ValueError, OSError):
        return str(stamp)


def _bytes(size: int) -> str:
    amount, unit = float(size), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if amount < 1024:
            break
        amount, unit = amount / 1024, larger
    return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
