"""Commands of other packages, such as `gapless lab` of `gapless_papers`.

A package offers a `typer.Typer` as an entry point of the group `gapless.commands`. It is loaded
when its name is typed, or when all commands are listed.
"""

from functools import cache
from importlib.metadata import entry_points
from typing import Any

import typer
from typer.core import TyperGroup

__all__ = ["GroupWithExtensions"]

GROUP = "gapless.commands"


class GroupWithExtensions(TyperGroup):
    """The commands of the product, and those of other packages."""

    def list_commands(self, ctx: typer.Context) -> list[str]:  # type: ignore[override]
        """Return the names of all commands, the product's first."""
        ours = super().list_commands(ctx)
        return [*ours, *sorted(entry_points(group=GROUP).names - set(ours))]

    def get_command(self, ctx: typer.Context, cmd_name: str) -> Any:  # type: ignore[override]
        """Return the product's command of this name, or that of another package."""
        return super().get_command(ctx, cmd_name) or _command(cmd_name)


@cache
def _command(name: str) -> Any:
    for entry in entry_points(group=GROUP, name=name):
        command = typer.main.get_command(entry.load())
        command.name = name
        return command
    return None
