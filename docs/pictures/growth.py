"""How the cost of an event grows: one small plot for each axis of `benchmarks/growth.py`."""

from collections.abc import Mapping
from itertools import pairwise
from math import log10

from docs.pictures.drawing import Drawing
from docs.results import growth_figures

__all__ = ["draw_growth"]

INK, LINE, GRID, AXIS = "#1f3d66", "#2f7d4f", "#e3e8ef", "#666"
PLOT, GAP, LEFT, TOP = (200, 130), 62, 58, 58
COLUMNS = 3


def draw_growth() -> str:
    """Return the plots of the microseconds per event, and of the latency; both axes are logarithmic."""
    figures = growth_figures()
    plots: dict[str, dict[int, float]] = {
        f"µs/event by {axis}": {int(value): found["processor_us"] for value, found in points.items()}
        for axis, points in figures["growth"].items()
    }
    plots["p99 in ms by events per second"] = {int(load): each[1] for load, each in figures["latency_ms"].items()}
    rows = -(-len(plots) // COLUMNS)
    size = LEFT + COLUMNS * (PLOT[0] + GAP), TOP + rows * (PLOT[1] + GAP)
    drawing = Drawing(*size, "How the cost of an event grows")
    for number, (title, points) in enumerate(plots.items()):
        corner = LEFT + (PLOT[0] + GAP) * (number % COLUMNS), TOP + (PLOT[1] + GAP) * (number // COLUMNS)
        _draw(drawing, corner, title, points)
    return drawing.text()


def _draw(drawing: Drawing, corner: tuple[float, float], title: str, points: Mapping[int, float]) -> None:
    x, y = corner
    low, high = (log10(bound) for bound in (min(points.values()) / 1.5, max(points.values()) * 1.5))
    first, last = log10(min(points)), log10(max(points))
    drawing.words((x + PLOT[0] / 2, y - 14), title, INK, size=12, weight="bold")
    drawing.line((x, y + PLOT[1]), (x + PLOT[0], y + PLOT[1]), AXIS)
    places = [
        (x + PLOT[0] * (log10(value) - first) / (last - first), y + PLOT[1] * (high - log10(cost)) / (high - low))
        for value, cost in points.items()
    ]
    for begin, end in pairwise(places):
        drawing.line(begin, end, LINE)
    for place, (value, cost) in zip(places, points.items(), strict=True):
        drawing.line((place[0], place[1]), (place[0], y + PLOT[1]), GRID)
        drawing.dot(place, LINE)
        drawing.words((place[0], y + PLOT[1] + 16), f"{value:,}", AXIS, size=9)
        drawing.words((place[0], place[1] - 8), f"{cost:.3g}", INK, size=9)
