"""How a demo looks, and what every demo says: of the first subscriptions, of a verdict, of what was promised."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from gapless.checkers import AnomalyKind, Status
from gapless.cli.terminal import check_file
from gapless.cli.tree_picture import draw_tree
from gapless.cli.verdict_view import status_text
from gapless.overlay import Overlay
from gapless.trace import must_be_free

__all__ = ["DemoPage", "Promise", "check_destinations", "guarantee", "missing", "named"]

Promise = tuple[str, str, bool]
"""What was promised, what was measured, and whether that is the same."""


def check_destinations(trace: Path | None, picture: Path | None) -> None:
    """An error if what is to be kept could not be: nobody should hear that at the end."""
    if trace is not None:
        must_be_free(trace)
    if picture is not None:
        check_file(picture)


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

    def starting_cuts(self, rows: Iterable[Iterable[str]]) -> None:
        """What `subscribe()` gave to shipping, alert and board, who are in every demo."""
        self.heading("1  subscribe() returns with a whole starting cut")
        self.table(("who", "asks for", "publisher", "waited", "starting cut"), rows)
        self.say(
            "shipping is the first to ask: once to the publisher and back. alert asks for less than audit next door "
            "gets already: once to the broker they share. board shares audit's broker, which has its cut at once; but "
            "a second broker must know of it, in case the first dies. Whatever anyone publishes from now on may not be "
            "missing."
        )

    def verdict(self, status: Status, told: str, examples: Sequence[str]) -> None:
        """What the judge says."""
        lines = Text.assemble(status_text(status), "  ", told)
        if examples:
            lines.append(f"\nfirst: {examples[0]}", "red")
        self.console.print(Padding(lines, (0, 0, 0, 2)))
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

    def conclude(self, status: Status, reason: str, without: Status) -> Status:
        """The last line. Valid is only what would not have been so `without` a repair: return what it comes to."""
        if status == "valid" and without != "invalid":
            status, reason = "unknown", "the checker did not notice that a repair was missing"
        self.console.print(Text.assemble(status_text(status), "  ", reason))
        return status


def missing(counts: Mapping[AnomalyKind, int]) -> int:
    """How many deliveries were lost."""
    return _sum(counts, "gap", "unobserved", "late-start")


def guarantee(counts: Mapping[AnomalyKind, int], deliveries: int) -> list[Promise]:
    """The guarantee, held against the anomalies that were found."""
    lost = missing(counts)
    twice = _sum(counts, "duplicate")
    unordered = _sum(counts, "fifo-inversion", "causal-inversion", "missing-effect")
    unwanted = _sum(counts, "spurious")
    of_all = f"of {deliveries:,} deliveries"
    return [
        ("what is published after subscribe() returned comes", f"{lost} missing", not lost),
        ("none comes twice", f"{twice} {of_all}", not twice),
        ("none comes before its cause, or without it", f"{unordered} {of_all}", not unordered),
        ("nothing comes that was not asked for", f"{unwanted} {of_all}", not unwanted),
    ]


def named(counts: Mapping[AnomalyKind, int]) -> str:
    """The anomalies in a line."""
    return ", ".join(f"{count} × {kind}" for kind, count in counts.items())


def _sum(counts: Mapping[AnomalyKind, int], *kinds: AnomalyKind) -> int:
    return sum(counts.get(kind, 0) for kind in kinds)
