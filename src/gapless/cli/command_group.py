"""Click groups, and commands that other packages add, such as `gapless lab` of `gapless_papers`.

A package offers a `click.Command` as an entry point of the group `gapless.commands`. It is loaded
when its name is typed, or when all commands are listed.
"""

from functools import cache
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from importlib.metadata import EntryPoints

__all__ = ["CommandGroup", "GroupWithExtensions"]


class CommandGroup(click.Group):
    """A group that lists its commands in the order of their definition."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands."""
        return list(self.commands)


class GroupWithExtensions(CommandGroup):
    """The commands of the product, and those of other packages."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command. If it is interrupted, exit without the empty line that Click would print."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise click.Abort from None

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands, the product's first."""
        return [*self.commands, *sorted(_extensions().names - self.commands.keys())]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the product's command of this name, or that of another package."""
        return super().get_command(ctx, cmd_name) or _extension(cmd_name)


@cache
def _extensions() -> "EntryPoints":
    from importlib.metadata import entry_points  # importing it takes longer than most commands

    return entry_points(group="gapless.commands")


@cache
def _extension(name: str) -> click.Command | None:
    for entry in _extensions().select(name=name):
        command: click.Command = entry.load()
        return command
    return None
