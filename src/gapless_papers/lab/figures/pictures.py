"""Draws figures: lines with confidence intervals, or bars.

Coinciding lines remain distinguishable: their dashes alternate, and they have the same letter in the legend. Intervals
of quantities that cannot be negative end at zero. A number given by the paper is drawn as a diamond. Repetitions,
confidence level, and length of the runs are written on the picture.
"""

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from gapless_papers.lab.experiment import Claim, FigureSpec
from gapless_papers.lab.figures.estimate import CONFIDENCE
from gapless_papers.lab.figures.tables import FigureTable, Point, Series

__all__ = ["picture_of", "save_picture"]

INK, GRID, PAPER = "#1f2933", "#dfe4ea", "#111827"
COLOURS: Mapping[str, str] = {
    "gapless": "#d1495b", "locaps": "#00798c", "delta": "#7a5195", "gryphon": "#edae49",
    "vcube": "#00798c", "srpt": "#edae49",
    "none": "#8d99a6", "push": "#edae49", "subscriber-pull": "#00798c", "publisher-pull": "#7a5195",
    "combined-pull": "#d1495b",
}  # fmt: skip
"""One colour for each protocol and recovery, on all figures."""
OTHERS = ("#00798c", "#edae49", "#7a5195", "#d1495b", "#66a182", "#2e4057", "#8d96a3")
MARKERS = "os^vPX<>D"
DASHES: Sequence[Any] = ("-", (0, (4, 2)), (0, (1, 1.5)), (0, (6, 2, 1, 2)))

LINES = ("lines", "course")
HATCHES = ("", "////", "....", "xxxx", "\\\\\\\\", "||||", "----", "oooo")
"""Hatches that distinguish bars of the same colour."""
LETTERS = "abcdefghijklmnopqrstuvwxyz"
DASH_LENGTH = 4.0
"""The length of a dash, in line widths."""
LABELS_ROOM = 70
"""The number of characters that fit side by side below the bars."""

_Places: TypeAlias = list[list[float]]
"""The positions of each series' points on the horizontal axis."""

_STYLE: Any = {
    "svg.hashsalt": "gapless", "font.family": "DejaVu Sans", "font.size": 9, "axes.edgecolor": INK,
    "axes.labelcolor": INK, "xtick.color": INK, "ytick.color": INK, "text.color": INK, "axes.spines.top": False,
    "axes.spines.right": False, "axes.grid": True, "grid.color": GRID, "grid.linewidth": 0.7, "axes.axisbelow": True,
}  # fmt: skip


def picture_of(table: FigureTable, title: str, claims: Sequence[Claim] = ()) -> Figure:
    """Return the picture, including the claims about single points of it."""
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(7.6, 4.4), layout="constrained")
        axes = figure.add_subplot()
        places = _draw_lines(axes, table) if table.spec.kind in LINES else _draw_bars(axes, table)
        said = _draw_paper(axes, table, claims, places)
        _set_height(axes, table, said)
        axes.set_xlabel(table.spec.x_label or table.spec.x or table.spec.y.metric)
        axes.set_ylabel(table.spec.y_label or table.spec.y.metric)
        _write_legend(axes, table)
        figure.suptitle(title, x=0.01, ha="left", fontsize=10.5, fontweight="bold")
        figure.supxlabel(_footing(table), fontsize=7.5, color="#52606d", x=0.99, ha="right")
        return figure


def save_picture(figure: Figure, stem: Path) -> str:
    """Save the picture as SVG and as PNG, and return the text of the SVG."""
    with mpl.rc_context(_STYLE):
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
        stem.with_suffix(".svg").write_text(text.getvalue(), encoding="utf-8")
        figure.savefig(stem.with_suffix(".png"), dpi=160, metadata={"Software": None})
    return text.getvalue()


def _style(table: FigureTable, number: int) -> tuple[str, str, int]:
    """Return the colour, the marker, and a number that selects the dashes or hatch among lines of one colour.

    The colour follows the axis whose values are in `COLOURS`, or else the first axis.
    """
    names = [_colour_name(row) for row in table.series]
    place = list(dict.fromkeys(names)).index(names[number])
    same = names[:number].count(names[number])
    colour = COLOURS.get(names[number], OTHERS[place % len(OTHERS)])
    return colour, MARKERS[place % len(MARKERS)], same


def _colour_name(series: Series) -> str:
    names = [str(value) for value in series.values]
    return next((name for name in names if name in COLOURS), names[0] if names else "")


def _draw_lines(axes: Axes, table: FigureTable) -> _Places:
    bundles = _bundles(table)
    letters = _letters(bundles)
    for number, series in enumerate(table.series):
        colour, marker, same = _style(table, number)
        dash = DASHES[same % len(DASHES)]
        bundle = bundles[number]
        turn, turns = bundle.index(number), len(bundle)
        label = f"{series.label} {letters[number]}".rstrip()
        if turns > 1:
            dash = (turn * DASH_LENGTH, (DASH_LENGTH, DASH_LENGTH * (turns - 1)))
        x = [point.x for point in series.points]
        y = [point.estimate.mean for point in series.points]
        error = _intervals(series, table.spec.y_most)
        size = 4.5 + 6.0 * (turns - 1 - turn) / max(1, turns - 1)
        axes.errorbar(
            x, y, yerr=error, label=label, color=colour, linestyle=dash, marker=marker, linewidth=2.2,
            dash_capstyle="butt", markersize=size, capsize=2.5, elinewidth=1.1,
            markeredgecolor="white", markeredgewidth=0.6, zorder=3 + number,
        )  # fmt: skip
    if table.spec.log_x:
        axes.set_xscale("log", base=2)
    if table.spec.log_y:
        axes.set_yscale("log", base=2)
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    ticks = {point.x: point.label for series in table.series for point in series.points}
    if len(ticks) <= 14:
        axes.set_xticks(list(ticks), list(ticks.values()))
        axes.minorticks_off()
    return [[point.x for point in series.points] for series in table.series]


def _bundles(table: FigureTable) -> list[list[int]]:
    """Return, for each line, the lines that coincide with it at every shared place, itself included."""
    highest = max((point.estimate.mean for series in table.series for point in series.points), default=0.0)
    found: list[list[int]] = []
    for number, series in enumerate(table.series):
        home = next((bundle for bundle in found if _coincide(table.series[bundle[0]], series, 0.01 * highest)), None)
        if home is None:
            found.append([number])
        else:
            home.append(number)
    return [next(bundle for bundle in found if number in bundle) for number in range(len(table.series))]


def _letters(bundles: Sequence[list[int]]) -> list[str]:
    """Return, for each line, the letter of its bundle; empty if the line is alone."""
    shared = list(dict.fromkeys(tuple(bundle) for bundle in bundles if len(bundle) > 1))
    return [f"[{LETTERS[shared.index(tuple(bundle))]}]" if len(bundle) > 1 else "" for bundle in bundles]


def _coincide(one: Series, other: Series, room: float) -> bool:
    places = {point.x: point.estimate.mean for point in one.points}
    shared = [(places[point.x], point.estimate.mean) for point in other.points if point.x in places]
    return len(shared) > 1 and all(abs(here - there) <= room for here, there in shared)


def _intervals(series: Series, most: float | None) -> list[list[float]] | None:
    """Return the interval's extent below and above the means, within the possible range; None if unknown."""
    halves = [point.estimate.half_width or 0.0 for point in series.points]
    if not any(halves):
        return None
    means = [point.estimate.mean for point in series.points]
    below = [min(half, mean) if mean >= 0 else half for half, mean in zip(halves, means, strict=True)]
    above = [
        half if most is None else max(0.0, min(half, most - mean)) for half, mean in zip(halves, means, strict=True)
    ]
    return [below, above]


def _draw_bars(axes: Axes, table: FigureTable) -> _Places:
    labels = list(dict.fromkeys(point.label for series in table.series for point in series.points))
    width = 0.82 / max(1, len(table.series))
    places = []
    for number, series in enumerate(table.series):
        colour, _, same = _style(table, number)
        x = [labels.index(point.label) + (number - (len(table.series) - 1) / 2) * width for point in series.points]
        y = [point.estimate.mean for point in series.points]
        axes.bar(
            x, y, width * 0.94, label=series.label, color=colour, yerr=_intervals(series, table.spec.y_most),
            hatch=HATCHES[same % len(HATCHES)], edgecolor="white", linewidth=0,
            error_kw={"elinewidth": 1.0, "ecolor": INK, "capsize": 2},
        )  # fmt: skip
        places.append(x)
    steep = sum(len(label) + 1 for label in labels) > LABELS_ROOM
    axes.set_xticks(range(len(labels)), labels, rotation=35 if steep else 0, ha="right" if steep else "center")
    for label in axes.get_xticklabels() if steep else ():
        label.set_rotation_mode("anchor")
    axes.tick_params(axis="x", length=0)
    axes.grid(visible=False, axis="x")
    if table.spec.log_y:
        axes.set_yscale("symlog", base=2, linthresh=1)
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    return places


def _draw_paper(axes: Axes, table: FigureTable, claims: Sequence[Claim], places: _Places) -> list[float]:
    """Draw the paper's numbers that belong to points of this picture, and return them."""
    found = [
        (x, claim.paper)
        for series, row in zip(table.series, places, strict=True)
        for point, x in zip(series.points, row, strict=True)
        for claim in claims
        if claim.paper is not None
        and claim.as_ == "value"
        and claim.of == "mean"
        and _speaks_of(claim, table.spec, series, point)
    ]
    if found:
        axes.plot(
            *zip(*found, strict=True), marker="D", markersize=7.5, markerfacecolor=(1, 1, 1, 0.6),
            markeredgecolor=PAPER, markeredgewidth=1.3, linestyle="none", label="the paper", zorder=20,
        )  # fmt: skip
    return [number for _, number in found]


def _speaks_of(claim: Claim, spec: FigureSpec, series: Series, point: Point) -> bool:
    place = {**spec.where, **dict(zip(spec.series, series.values, strict=True)), spec.x: point.value}
    return claim.y == point.reading and all(place.get(axis) == value for axis, value in claim.where.items())


def _set_height(axes: Axes, table: FigureTable, said: Sequence[float]) -> None:
    """Scale the axis from 0 so that the means fill the picture; the interval of two runs can be many times as high."""
    estimates = [point.estimate for series in table.series for point in series.points]
    highest = max((*(value.mean for value in estimates), *said))
    with_bars = max((*(value.mean + (value.half_width or 0.0) for value in estimates), *said))
    top = min(1.35 * highest, with_bars) or 1.0
    if table.spec.y_most is not None:
        top = min(top, max(highest, table.spec.y_most))
    if not table.spec.log_y:
        axes.set_ylim(0, 1.06 * top)
    elif table.spec.kind in LINES:
        axes.set_ylim(min(value.mean for value in estimates) / 1.4, 1.2 * top)
    else:
        axes.set_ylim(0, 2 * top)


def _write_legend(axes: Axes, table: FigureTable) -> None:
    handles, labels = axes.get_legend_handles_labels()
    if len(labels) < 2:
        return
    order = sorted(range(len(labels)), key=lambda number: labels[number] == "the paper")
    title = "" if table.spec.legend else ", ".join(axis.removeprefix("options.") for axis in table.spec.series)
    axes.legend(
        [handles[number] for number in order], [labels[number] for number in order], title=title or None,
        loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False, fontsize=8.5, title_fontsize=8, handlelength=2.6,
    )  # fmt: skip


def _footing(table: FigureTable) -> str:
    """Return the line below the picture: repetitions, confidence, and length of the runs."""
    least, most = table.runs_least, table.runs_most
    coincide = table.spec.kind in LINES and any(len(bundle) > 1 for bundle in _bundles(table))
    runs = f"{least}" if least == most else f"{least} to {most}"
    text = "one run a point" if most == 1 else f"mean of {runs} runs, bars: {CONFIDENCE:.0%} confidence"
    if table.length_ms is not None:
        shortest, longest = (f"{value / 1000:,.3g} s" for value in table.length_ms)
        text += f"; runs of {shortest}" if shortest == longest else f"; runs of {shortest} to {longest}"
        text += " virtual time"
    if coincide:
        text += "; lines with the same letter coincide"
    return text
