"""`gapless subscriptions`: lists, moves and deletes durable subscriptions."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import msgspec
from rich.table import Table
from rich.text import Text

from gapless.cli.exit_codes import VALID
from gapless.cli.terminal import output_console, print_json, print_text
from gapless.client import Client, connect
from gapless.names import DurableInfo
from gapless.runtime.event_loop import run

__all__ = ["delete", "lag_text", "move", "show"]

T = TypeVar("T")


def show(url: str, credentials: Path | None, *, as_json: bool) -> int:
    """Print all durable subscriptions."""
    found = _ask(url, credentials, lambda client: client.admin.list())
    if as_json:
        rows = [{**msgspec.structs.asdict(each), "position": str(each.position)} for each in found]
        print_json({"subscriptions": rows})
    elif not found:
        print("there are no durable subscriptions; gapless sub --durable NAME creates one")
    else:
        output_console().print(_table(found))
    return VALID


def move(url: str, credentials: Path | None, name: str, when: str, *, as_json: bool) -> int:
    """Move a durable subscription to another position."""

    async def do(client: Client) -> None:
        await client.admin.move(name, when)

    _ask(url, credentials, do)
    if as_json:
        print_json({"name": name, "moved_to": when})
    else:
        print_text(f"{name} continues from {when}")
    return VALID


def delete(url: str, credentials: Path | None, name: str, *, as_json: bool) -> int:
    """Delete a durable subscription."""
    _ask(url, credentials, lambda client: client.admin.delete(name))
    if as_json:
        print_json({"name": name, "deleted": True})
    else:
        print_text(f"deleted {name}")
    return VALID


def _ask(url: str, credentials: Path | None, call: Callable[[Client], Awaitable[T]]) -> T:
    async def main() -> T:
        async with connect(url, name="subscriptions", timeout_s=2.0, credentials=credentials) as client:
            return await call(client)

    return run(main())


def _table(found: list[DurableInfo]) -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False)
    for heading in ("name", "filter", "position", "lag", "attached"):
        table.add_column(heading, overflow="fold")
    for each in found:
        table.add_row(
            Text(each.name), Text(each.filter), str(each.position), lag_text(each.lag_s), Text(_listener(each))
        )
    return table


def _listener(each: DurableInfo) -> str:
    if not each.client:
        return "nobody"
    return f"a group, coordinated by {each.client}" if each.is_shared else each.client


def lag_text(seconds: float) -> str:
    """Return a duration in words."""
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"
