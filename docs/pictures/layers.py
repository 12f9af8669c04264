"""Draws the packages and their imports."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from docs.pictures.drawing import Drawing
from gapless.registry import protocol_names

__all__ = ["draw_layers"]

SOURCE = Path(__file__).parents[2] / "src"
WIDTH, BOX, STEP = 860, (122, 44), 84
INK, FILL, EDGE = "#1f3d66", "#eef3fa", "#8aa0bd"
WORDS = {
    "gapless_papers": ("papers' protocols, laboratory", 0.3),
    "gapless_spark": ("PySpark, audits", 0.38),
    "cli": ("the command line", 0.33),
    "http": ("gateway, console", 0.6),
    "otel": ("OpenTelemetry spans", 0.14),
    "sync": ("the synchronous client", 0.82),
    "client": ("connect, publish", 0.75),
    "simulator": ("virtual time, faults", 0.42),
    "runtime": ("brokers over TCP", 0.74),
    "checkers": ("checks of traces", 0.48),
    "archive": ("history in Parquet", 0.3),
    "security": ("users and permissions", 0.75),
    "trace": ("records of runs", 0.5),
    "registry": ("finds protocols", 0.3),
    "protocols": ("state machines", 0.13),
    "protocol": ("step(input, now)", 0.45),
    "filters": ("SQL conditions", 0.27),
    "names": ("durable calls", 0.12),
    "overlay": ("trees and graphs", 0.62),
    "storage": ("the broker's data", 0.9),
    "causes": ("causes of an event", 0.09),
    "disk": ("operations of a disk", 0.92),
    "errors": ("classes of errors", 0.4),
    "toml_file": ("configuration files", 0.75),
    "private_files": ("readable by one user", 0.24),
    "printable": ("checks of names", 0.6),
    "events": ("attributes, payload", 0.4),
    "event_runs": ("events by column", 0.1),
    "message_pack": ("counts objects", 0.9),
    "positions": ("places in a stream", 0.42),
}
"""A short description of each package, and its horizontal place. Its height follows from the imports."""


def draw_layers() -> str:
    """Return the picture: each package above all that it imports, without transitive arrows."""
    arrows = _arrows()
    heights = {part: _height(part, arrows) for part in arrows}
    rows = [sorted(part for part in arrows if heights[part] == level) for level in range(max(heights.values()) + 1)]
    drawing = Drawing(WIDTH, 30 + STEP * len(rows) + 44, "The parts of Gapless, each above those that it imports")
    places: dict[str, tuple[float, float]] = {}
    for level, row in enumerate(rows):
        for part in row:
            places[part] = (WIDTH * WORDS[part][1], 44 + STEP * (len(rows) - 1 - level))
    for part, below in sorted(arrows.items()):
        for other in sorted(_reduced(part, below, arrows)):
            (x0, y0), (x1, y1) = places[part], places[other]
            drawing.arrow((x0, y0 + BOX[1] / 2), (x1, y1 - BOX[1] / 2), EDGE)
    for part, (x, y) in places.items():
        drawing.box((x - BOX[0] / 2, y - BOX[1] / 2), BOX, FILL, INK)
        drawing.words((x, y - 3), part, INK, size=13, weight="bold")
        drawing.words((x, y + 13), WORDS[part][0], "#444", size=10)
    drawing.words((WIDTH / 2, 30 + STEP * len(rows) + 20), f"protocols: {', '.join(protocol_names())}", "#444")
    return drawing.text()


def _height(part: str, arrows: dict[str, set[str]]) -> int:
    return max((1 + _height(other, arrows) for other in arrows[part]), default=0)


def _reduced(part: str, below: set[str], arrows: dict[str, set[str]]) -> set[str]:
    """Return the packages without those that another one imports indirectly."""
    return below - {further for other in below for further in _all_below(other, arrows)}


def _all_below(part: str, arrows: dict[str, set[str]]) -> set[str]:
    return arrows[part] | {further for other in arrows[part] for further in _all_below(other, arrows)}


@cache
def _arrows() -> dict[str, set[str]]:
    found: dict[str, set[str]] = {part: set() for part in WORDS}
    for file in sorted(SOURCE.rglob("*.py")):
        own = _part(".".join(file.relative_to(SOURCE).with_suffix("").parts))
        if own not in ("", "__init__", "__main__"):
            found[own] |= {other for other in map(_part, _imports(file)) if other in WORDS and other != own}
    for part in ("cli", "gapless_papers"):
        found[part] -= {"gapless_spark"}  # the commands load it on demand, if it is installed
    return found


def _part(module: str) -> str:
    top, _, rest = module.partition(".")
    if top == "gapless":
        return rest.partition(".")[0]
    return top if top in ("gapless_papers", "gapless_spark") else ""


def _imports(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            names = [f"gapless.{alias.name}" for alias in node.names]
            yield from names if node.module == "gapless" else [str(node.module)]
