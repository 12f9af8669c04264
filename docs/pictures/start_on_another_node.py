"""Draws when subscriptions on one node begin to receive events published on another, for several systems."""

from typing import Any

from docs.pictures.drawing import Drawing
from docs.results import start_figures

__all__ = ["draw_start_on_another_node"]

INK, CALL, LOST, FIRST, AXIS = "#1f3d66", "#8aa0bd", "#b03030", "#2f7d4f", "#999"
WIDTH, LEFT, RIGHT, TOP, STEP, BAR = 760, 210, 730, 92, 36, 14
LEAST_MS, MOST_MS = -180.0, 140.0


def draw_start_on_another_node() -> str:
    """Return the picture: one row for each system, along the time since its subscribe call returned."""
    rows = start_figures()["rows"]
    height = TOP + STEP * len(rows) + 62
    drawing = Drawing(WIDTH, height, "When a subscription begins to receive what is published on another node")
    drawing.words((LEFT, 28), "Subscribe on one node, publish on another, 25 ms apart", INK, "start", 15, "bold")
    _draw_legend(drawing)
    bottom = TOP + STEP * len(rows)
    for ms in range(-150, 101, 50):
        drawing.line((_place(ms), TOP - 14), (_place(ms), bottom), INK if ms == 0 else "#e3e8ef")
        drawing.words((_place(ms), bottom + 16), f"{ms} ms", AXIS, size=11)
    drawing.words((_place(0), bottom + 34), "the call returns, and publishing begins", INK, size=11)
    for number, row in enumerate(rows):
        _draw_row(drawing, TOP + STEP * number + STEP / 2 - BAR / 2, row)
    return drawing.text()


def _draw_legend(drawing: Drawing) -> None:
    for x, colour, text in ((LEFT, CALL, "subscribe()"), (LEFT + 110, LOST, "published, never delivered")):
        drawing.box((x, 44), (14, 12), colour, colour)
        drawing.words((x + 20, 54), text, "#444", "start", 11)
    drawing.dot((LEFT + 310, 50), FIRST)
    drawing.words((LEFT + 320, 54), "first event arrives", "#444", "start", 11)


def _draw_row(drawing: Drawing, y: float, row: dict[str, Any]) -> None:
    drawing.words((LEFT - 14, y + 11), row["system"], INK, "end", 12)
    begin, returned = _place(-row["call_ms"]), _place(0)
    drawing.box((begin, y), (max(2.0, returned - begin), BAR), CALL, CALL)
    if row["missed"]:
        drawing.box((returned, y), (_place(row["missed_ms"]) - returned, BAR), LOST, LOST)
        share = f"{row['missed']:,} of {row['published']:,} missed"
        drawing.words((_place(row["missed_ms"]) + 6, y - 3), share, LOST, "start", 10)
    drawing.dot((_place(row["first_event_ms"]), y + BAR / 2), FIRST)


def _place(ms: float) -> float:
    return LEFT + (RIGHT - LEFT) * (ms - LEAST_MS) / (MOST_MS - LEAST_MS)
