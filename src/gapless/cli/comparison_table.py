"""Formats the two tables of a protocol comparison: guarantees, and costs.

A protocol that was skipped or failed has a phrase in place of numbers, which must neither widen a column nor exceed the
width. For this reason the tables are formatted by hand.
"""

import textwrap
from collections.abc import Iterator, Sequence

from rich.text import Text

from gapless.checkers import Status
from gapless.cli.terminal import WIDTH_MAX
from gapless.cli.verdict_view import STYLES
from gapless.protocol import GUARANTEE_NAMES
from gapless.simulator import Entry, Figures

__all__ = ["COSTS_LEGEND", "PROMISES_LEGEND", "cost_table", "promise_table"]

PROMISES_LEGEND = (
    "held: ✓ as promised, or better; ✗ violated; ? too little happened to tell. lost: "
    "published while a subscription was active, and never delivered to it."
)
COSTS_LEGEND = (
    "subscribe: from the call until active. deliver: from publication to delivery. state: "
    "the maximum that a broker kept, averaged over brokers."
)

_SIGNS: dict[Status, str] = {"valid": "✓", "invalid": "✗", "unknown": "?"}

_PROMISE_HEADINGS = ("protocol", "promises", "held", "lost")
_COST_HEADINGS = ("protocol", "mean", "max", "mean", "p99", "sent", "bytes", "state")
_GROUPS = ("subscribe ms", "deliver ms", "messages")
"""Headings above pairs of numeric columns. Each pair is preceded by two additional spaces."""
_NUMBER_WIDTH = 6


def promise_table(entries: Sequence[Entry]) -> Iterator[Text]:
    """Yield the lines of the first table, at most `WIDTH_MAX` wide: what each protocol promises, kept and lost."""
    rows = {entry.protocol: _promise_cells(entry) for entry in entries}
    widths = [max(map(len, column)) for column in zip(_PROMISE_HEADINGS, *rows.values(), strict=True)]
    yield Text(_left(_PROMISE_HEADINGS, widths), "cyan")
    for entry in entries:
        cells = rows[entry.protocol]
        if entry.figures is None:
            yield from _phrase_lines(entry, cells, widths)
            continue
        line = Text(_left(cells, widths))
        held, lost = widths[0] + widths[1] + 4, widths[0] + widths[1] + widths[2] + 6
        line.stylize("bold", 0, widths[0])
        line.stylize(STYLES[entry.status], held, held + widths[2])
        if entry.figures.lost:
            line.stylize("yellow", lost)
        yield line


def _promise_cells(entry: Entry) -> list[str]:
    promised = GUARANTEE_NAMES[entry.claims]
    if entry.figures is None:
        return [entry.protocol, promised, "", ""]
    held = "nothing" if entry.held is None else GUARANTEE_NAMES[entry.held]
    sign = _SIGNS[entry.status]
    figures = entry.figures
    lost = f"{figures.lost:,} of {figures.due:,}" if figures.lost else "none"
    return [entry.protocol, promised, sign if sign == "?" else f"{sign} {held}", lost]


def _left(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()


def _phrase_lines(entry: Entry, cells: Sequence[str], widths: Sequence[int]) -> Iterator[Text]:
    """Yield the reason why a protocol has no figures, wrapped to the width of its columns."""
    broken = entry.outcome is not None
    phrase = f"✗ broke down: {entry.outcome.summary}" if entry.outcome is not None else entry.unfit or ""
    before = _left(cells[:2], widths[:2]).ljust(widths[0] + widths[1] + 4)
    for number, part in enumerate(textwrap.wrap(phrase, WIDTH_MAX - len(before))):
        line = Text(before if number == 0 else " " * len(before))
        line.stylize("bold", 0, widths[0])
        yield line.append(part, "bold red" if broken else "dim")


def cost_table(entries: Sequence[Entry]) -> Iterator[Text]:
    """Yield the lines of the second table, at most `WIDTH_MAX` wide: the costs of the protocols that ran."""
    ran = [(entry.protocol, entry.figures) for entry in entries if entry.figures is not None]
    width = max([len(_COST_HEADINGS[0]), *(len(name) for name, _ in ran)])
    if not ran:
        return
    yield Text(_group_line(width), "cyan")
    yield Text(_right(_COST_HEADINGS, width), "cyan")
    for name, figures in ran:
        line = Text(_right([name, *_numbers(figures)], width))
        line.stylize("bold", 0, width)
        yield line


def _numbers(figures: Figures) -> list[str]:
    subscribing, delivering = figures.subscribing, figures.delivering
    times = (subscribing.mean_ms, subscribing.max_ms, delivering.mean_ms, delivering.p99_ms)
    counts = (figures.messages, figures.bytes, figures.state_mean)
    return [*("–" if ms is None else _short(ms) for ms in times), *map(_short, counts)]


def _group_line(width: int) -> str:
    """Return the line of headings above pairs of columns, each aligned with the end of its pair."""
    line = " " * width
    for number, name in enumerate(_GROUPS, 1):
        end = len(_right([""] * (2 * number + 1), width))
        line += name.rjust(end - len(line))
    return line


def _right(cells: Sequence[str], width: int) -> str:
    """Return the cells as one line, the first aligned left and the others right."""
    line = cells[0].ljust(width)
    for number, cell in enumerate(cells[1:]):
        line += ("   " if number % 2 == 0 else " ") + cell.rjust(_NUMBER_WIDTH)
    return line


def _short(value: float) -> str:
    """Return a number in at most five characters, such as 7, 73.5, 1250, 12.3k or 4.56M."""
    if value < 1000:
        return f"{value:.0f}" if value >= 100 or value == round(value) else f"{value:.1f}"
    if value < 9_999.5:
        return f"{value:.0f}"
    for unit, size in (("k", 1e3), ("M", 1e6), ("G", 1e9)):
        if value < size * 999.5:
            scaled = value / size
            return f"{scaled:.{2 if scaled < 9.995 else 1 if scaled < 99.95 else 0}f}{unit}"
    return f"{value:.0e}"
