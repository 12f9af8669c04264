"""Commands of other packages: `gapless lab` is one of `gapless_papers`.

A package offers a group of commands, a `typer.Typer`, as an entry point of the group `gapless.commands`. It is loaded
when somebody types its name, or asks for the list of all commands.
"""

from functools import cache
from importlib.metadata import entry_points
from typing import Any

import typer
from typer.core import TyperGroup

__all__ = ["GroupWithExtensions"]

GROUP = "gapless.commands"


class GroupWithExtensions(TyperGroup):
    """The commands of the product, and those that other packages add."""

    def list_commands(self, ctx: typer.Context) -> list[str]:  # type: ignore[override]
        """Ours first."""
        ours = super().list_commands(ctx)
        return [*ours, *sorted(entry_points(group=GROUP).names - set(ours))]

    def get_command(self, ctx: typer.Context, cmd_name: str) -> Any:  # type: ignore[override]
        """Ours, or else another package's."""
        return super().get_command(ctx, cmd_name) or _command(cmd_name)


@cache
def _command(name: str) -> Any:
    for entry in entry_points(group=GROUP, name=name):
        command = typer.main.get_command(entry.load())
        command.name = name
        return command
    return None
