"""The table of a comparison, set by hand.

A protocol that was left out, or broke down, has a phrase where the others have numbers, and that must neither widen a
column nor break the width.
"""

import textwrap
from collections.abc import Iterator, Sequence

from rich.text import Text

from gapless.checkers import Status
from gapless.cli.terminal import WIDTH_MAX
from gapless.cli.verdict_view import STYLES
from gapless.simulator import Entry, Figures

__all__ = ["LEGEND", "comparison_table", "status_of"]

LEGEND = """\
held: ✓ what it claims, and maybe more; ✗ it did not; ? too little happened to tell. subscribe: from the call until \
active. deliver: from publication to delivery. state: the most that a broker kept, on average. \
lost: published while a subscription was active, and never delivered for it."""

_SIGNS: dict[Status, str] = {"valid": "✓", "invalid": "✗", "unknown": "?"}

_HEADINGS = ("protocol", "claims", "held", "mean", "max", "mean", "p99", "sent", "bytes", "state", "lost")
_LEFT = 3
"""Columns of words; the others hold numbers."""
_NUMBER_WIDTH = 5
_GROUPS = {_LEFT: "subscribe ms", _LEFT + 2: "deliver ms", _LEFT + 4: ""}
"""Columns that begin a group, and what stands above them: two blanks go before them, one before the others."""


def status_of(entry: Entry) -> Status:
    """How the run turned out; one that broke down has not held what it claims."""
    assert entry.outcome is not None
    return "invalid" if entry.outcome.status == "broken" else entry.outcome.status


def comparison_table(entries: Sequence[Entry]) -> Iterator[Text]:
    """Line by line; at most `WIDTH_MAX` wide."""
    rows = {entry.protocol: _cells(entry) for entry in entries}
    widths = [max(map(len, column)) for column in zip(_HEADINGS, *rows.values(), strict=True)]
    widths[_LEFT:] = [_NUMBER_WIDTH] * (len(widths) - _LEFT)
    yield Text(_group_line(widths), "cyan")
    yield Text(_joined(_HEADINGS, widths), "cyan")
    for entry in entries:
        cells = rows[entry.protocol]
        if entry.figures is None:
            yield from _phrase_lines(entry, cells, widths)
            continue
        line = Text(_joined(cells, widths))
        start = widths[0] + widths[1] + 2
        line.stylize("bold", 0, widths[0])
        line.stylize(STYLES[status_of(entry)], start, start + widths[2])
        if entry.figures.lost:
            line.stylize("yellow", len(line) - len(cells[-1]))
        yield line


def _cells(entry: Entry) -> list[str]:
    if entry.figures is None:
        return [entry.protocol, entry.claims, *[""] * (len(_HEADINGS) - 2)]
    return [entry.protocol, entry.claims, _held(entry), *_numbers(entry.figures)]


def _numbers(figures: Figures) -> list[str]:
    subscribing, delivering = figures.subscribing, figures.delivering
    times = (subscribing.mean_ms, subscribing.max_ms, delivering.mean_ms, delivering.p99_ms)
    counts = (figures.messages, figures.bytes, figures.state_mean, figures.lost)
    return [*("–" if ms is None else _short(ms) for ms in times), *map(_short, counts)]


def _held(entry: Entry) -> str:
    """A sign, and a stronger guarantee that this run kept besides."""
    sign = _SIGNS[status_of(entry)]
    is_more = sign == "✓" and entry.held is not None and entry.held != entry.claims
    return f"{sign} {entry.held.removesuffix('-causal')}" if is_more and entry.held else sign


def _group_line(widths: Sequence[int]) -> str:
    """Each group's name ends where its second column does."""
    line = ""
    for column, name in _GROUPS.items():
        end = len(_joined([""] * (column + 2), widths[: column + 2]))
        line += name.rjust(end - len(line)) if name else ""
    return line


def _joined(cells: Sequence[str], widths: Sequence[int]) -> str:
    line = ""
    for number, (cell, width) in enumerate(zip(cells, widths, strict=True)):
        gap = "" if number == 0 else "  " if number in _GROUPS else " "
        line += gap + (cell.ljust(width) if number < _LEFT else cell.rjust(width))
    return line


def _phrase_lines(entry: Entry, cells: Sequence[str], widths: Sequence[int]) -> Iterator[Text]:
    """A protocol without numbers: why, in the room that they leave."""
    broken = entry.outcome is not None
    phrase = f"✗ broke down: {entry.outcome.summary}" if entry.outcome is not None else entry.unfit or ""
    before = f"{cells[0].ljust(widths[0])} {cells[1].ljust(widths[1])} "
    room = WIDTH_MAX - len(before)
    for number, part in enumerate(textwrap.wrap(phrase, room)):
        line = Text(before if number == 0 else " " * len(before))
        line.stylize("bold", 0, widths[0])
        yield line.append(part, "bold red" if broken else "dim")


def _short(value: float) -> str:
    """At most five characters: 7, 73.5, 1250, 12.3k, 4.56M."""
    if value < 1000:
        return f"{value:.0f}" if value >= 100 or value == round(value) else f"{value:.1f}"
    if value < 9_999.5:
        return f"{value:.0f}"
    for unit, size in (("k", 1e3), ("M", 1e6), ("G", 1e9)):
        if value < size * 999.5:
            scaled = value / size
            return f"{scaled:.{2 if scaled < 9.995 else 1 if scaled < 99.95 else 0}f}{unit}"
    return f"{value:.0e}"
