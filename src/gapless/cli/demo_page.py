"""Prints the demos: headings, paragraphs, pictures and tables, and the sections that all demos share."""

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
"""A guarantee, the measurement that supports it, and whether it was kept."""


def check_destinations(trace: Path | None, picture: Path | None) -> None:
    """Raise an error if the trace or the picture cannot be written, before the demo runs."""
    if trace is not None:
        must_be_free(trace)
    if picture is not None:
        check_file(picture)


class DemoPage:
    """Prints the sections of a demo."""

    def __init__(self, console: Console, overlay: Overlay) -> None:
        self.console = console
        self._overlay = overlay

    def heading(self, text: str) -> None:
        """Print the title of a section."""
        self.console.print(Rule(Text(text, "bold"), align="left", style="dim"))

    def say(self, text: str) -> None:
        """Print a paragraph."""
        self.console.print(Text(text))
        self.console.print()

    def draw(self, broker_of: Mapping[str, str], dead: str | None = None, chief: str | None = None) -> None:
        """Print the tree of brokers, with the clients under their brokers."""
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
        """Print a table of facts, with names in the first column."""
        table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
        for place, heading in enumerate(headings):
            table.add_column(heading, no_wrap=True, style="" if place else "cyan")
        for row in rows:
            table.add_row(*(Text(cell) for cell in row))
        self.console.print(table)
        self.console.print()

    def starting_cuts(self, rows: Iterable[Iterable[str]]) -> None:
        """Print the section about starting cuts, for the clients shipping, alert and board."""
        self.heading("1  subscribe() returns with a complete starting cut")
        self.table(("client", "filter", "publisher", "waited", "starting cut"), rows)
        self.say(
            "shipping is the first subscriber to its filter: a round trip to the publisher. A subscription at the next "
            "broker covers alert's: a round trip to the broker between them. A subscription at board's own broker "
            "covers board's, so the broker answers at once. From now on, no matching event may be missing."
        )

    def verdict(self, status: Status, summary: str, examples: Sequence[str]) -> None:
        """Print the checker's verdict."""
        lines = Text.assemble(status_text(status), "  ", summary)
        if examples:
            lines.append(f"\nfirst: {examples[0]}", "red")
        self.console.print(Padding(lines, (0, 0, 0, 2)))
        self.console.print()

    def promises(self, promises: Iterable[Promise]) -> None:
        """Print the closing table of guarantees and measurements."""
        self.heading("Promised and measured")
        table = Table(box=SIMPLE_HEAD, padding=(0, 1), header_style="bold", pad_edge=False)
        table.add_column("promised", no_wrap=True)
        table.add_column("measured", no_wrap=True)
        for promised, measured, is_kept in promises:
            table.add_row(promised, Text(measured, "green" if is_kept else "red"))
        self.console.print(table)

    def conclude(self, status: Status, reason: str, without: Status) -> Status:
        """Print and return the final status. It is `valid` only if the checker also found the error in the run
        `without` a rule."""
        if status == "valid" and without != "invalid":
            status, reason = "unknown", "the checker did not notice that a repair was disabled"
        self.console.print(Text.assemble(status_text(status), "  ", reason))
        return status


def missing(counts: Mapping[AnomalyKind, int]) -> int:
    """Return the number of deliveries that the checker found missing."""
    return _sum(counts, "gap", "unobserved", "late-start")


def guarantee(counts: Mapping[AnomalyKind, int], deliveries: int) -> list[Promise]:
    """Return the properties of the guarantee, each with the number of anomalies that violate it."""
    lost = missing(counts)
    twice = _sum(counts, "duplicate")
    unordered = _sum(counts, "fifo-inversion", "causal-inversion", "missing-effect")
    unwanted = _sum(counts, "spurious")
    of_all = f"of {deliveries:,} deliveries"
    return [
        ("events published after subscribe() returned arrive", f"{lost} missing", not lost),
        ("none arrives twice", f"{twice} {of_all}", not twice),
        ("none arrives before its cause, or without it", f"{unordered} {of_all}", not unordered),
        ("only matching events arrive", f"{unwanted} {of_all}", not unwanted),
    ]


def named(counts: Mapping[AnomalyKind, int]) -> str:
    """Return the numbers of anomalies as one line of text."""
    return ", ".join(f"{count} × {kind}" for kind, count in counts.items())


def _sum(counts: Mapping[AnomalyKind, int], *kinds: AnomalyKind) -> int:
    return sum(counts.get(kind, 0) for kind in kinds)
