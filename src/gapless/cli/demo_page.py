"""How a demo looks: headings, paragraphs, trees, and the closing table of what was promised and measured."""

from collections.abc import Iterable, Mapping

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from gapless.checkers import Status
from gapless.cli.tree_picture import draw_tree
from gapless.cli.verdict_view import status_text
from gapless.overlay import Overlay

__all__ = ["DemoPage", "Promise"]

Promise = tuple[str, str, bool]
"""What was promised, what was measured, and whether that is the same."""


class DemoPage:
    """Prints the parts of a demo, one below the other."""

    def __init__(self, console: Console, overlay: Overlay) -> None:
        self.console = console
        self._overlay = overlay

    def heading(self, text: str) -> None:
        """The title of a part."""
        self.console.print(Rule(Text(text, "bold"), align="left", style="dim"))

    def say(self, text: str) -> None:
        """A paragraph."""
        self.console.print(Text(text))
        self.console.print()

    def draw(self, broker_of: Mapping[str, str], dead: str | None = None, chief: str | None = None) -> None:
        """The tree, with the clients under their brokers."""
        clients: dict[str, list[str]] = {}
        for client, broker in broker_of.items():
            clients.setdefault(broker, []).append(client)
        leaves = sum(not self._overlay.children(name) for name in self._overlay.brokers)
        self.console.print()
        for line in draw_tree(self._overlay, clients, dead, chief, leaf_width=max(9, 72 // leaves)):
            line.pad_left(3)
            self.console.print(line, no_wrap=True)
        self.console.print()

    def table(self, headings: Iterable[str], rows: Iterable[Iterable[str]]) -> None:
        """A table of facts; the first column is who."""
        table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
        for place, heading in enumerate(headings):
            table.add_column(heading, no_wrap=True, style="" if place else "cyan")
        for row in rows:
            table.add_row(*(Text(cell) for cell in row))
        self.console.print(table)
        self.console.print()

    def promises(self, promises: Iterable[Promise]) -> None:
        """The closing table."""
        self.heading("Promised and measured")
        table = Table(box=SIMPLE_HEAD, padding=(0, 1), header_style="bold", pad_edge=False)
        table.add_column("promised", no_wrap=True)
        table.add_column("measured", no_wrap=True)
        for promised, measured, is_kept in promises:
            table.add_row(promised, Text(measured, "green" if is_kept else "red"))
        self.console.print(table)

    def conclude(self, status: Status, reason: str) -> None:
        """The last line."""
        self.console.print(Text.assemble(status_text(status), "  ", reason))
