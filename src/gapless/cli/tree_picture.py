"""Draws a tree of brokers with box-drawing characters: the root at the top, clients under the leaves.

A crashed broker keeps its place. Its lines are dashed, because its neighbours now connect to the
broker that takes over.
"""

from collections.abc import Mapping, Sequence
from itertools import groupby

from rich.text import Text

from gapless.overlay import Overlay

__all__ = ["draw_tree"]


def draw_tree(
    overlay: Overlay,
    clients: Mapping[str, Sequence[str]],
    dead: str | None = None,
    chief: str | None = None,
    leaf_width: int = 9,
) -> list[Text]:
    """Return the lines of the picture. `clients` has the names of each broker's clients; `chief` takes over for the
    dead broker."""
    centres = _centres(overlay, leaf_width)
    width = leaf_width * sum(1 for name in overlay.brokers if not overlay.children(name))
    deepest = max(overlay.depth.values())
    lines = []
    for depth in range(deepest + 1):
        level = [name for name in overlay.brokers if overlay.depth[name] == depth]
        labels = _Line(width)
        for name in level:
            beside = ", ".join(clients.get(name, ())) if overlay.children(name) else ""
            _put_broker(labels, name, centres[name], beside, name == dead, name == chief)
        lines.append(labels.text())
        if depth < deepest:
            branches = _Line(width)
            for name in level:
                _put_branches(branches, centres, name, overlay.children(name), dead)
            lines.append(branches.text())
    leaves = [name for name in overlay.brokers if not overlay.children(name)]
    for row in range(max(len(clients.get(name, ())) for name in leaves)):
        below = _Line(width)
        for name in leaves:
            for client in clients.get(name, ())[row : row + 1]:
                below.put(centres[name] - (len(client) - 1) // 2, client, "cyan")
        lines.append(below.text())
    return lines


def _centres(overlay: Overlay, leaf_width: int) -> dict[str, int]:
    """Return the column of each broker: leaves side by side, other brokers centred over their children."""
    centres: dict[str, int] = {}
    taken = 0

    def place(name: str) -> int:
        nonlocal taken
        children = [place(child) for child in overlay.children(name)]
        if children:
            centres[name] = (children[0] + children[-1]) // 2
        else:
            centres[name] = taken * leaf_width + leaf_width // 2
            taken += 1
        return centres[name]

    place(overlay.root)
    return centres


def _put_broker(line: "_Line", name: str, centre: int, beside: str, is_dead: bool, is_chief: bool) -> None:
    label = f"✗ {name}" if is_dead else name
    start = centre - (len(name) - 1) // 2 - (len(label) - len(name))
    line.put(start, label, "bold red" if is_dead else "bold yellow" if is_chief else "bold")
    note = " (took over)" if is_chief else ""
    line.put(start + len(label), note, "yellow")
    line.put(start + len(label + note), f" {beside}", "cyan")


def _put_branches(
    line: "_Line", centres: Mapping[str, int], name: str, children: tuple[str, ...], dead: str | None
) -> None:
    middle = centres[name]
    for child in children:
        end = centres[child]
        is_dashed = dead in (name, child)
        dash, style = ("╌", "yellow") if is_dashed else ("─", "dim")
        low, high = min(end, middle), max(end, middle)
        line.put(low + 1, dash * (high - low - 1), style)
        line.put(end, "┌" if end < middle else "┐" if end > middle else "│", style)
    if len(children) > 1:
        line.put(middle, "┴" if middle not in [centres[child] for child in children] else "┼", "dim")


class _Line:
    """Styled characters at arbitrary columns."""

    def __init__(self, width: int) -> None:
        self._cells = [(" ", "")] * width

    def put(self, start: int, characters: str, style: str) -> None:
        for column, character in enumerate(characters, start):
            if 0 <= column < len(self._cells):
                self._cells[column] = (character, style)

    def text(self) -> Text:
        whole = Text()
        for style, cells in groupby(self._cells, key=lambda cell: cell[1]):
            whole.append("".join(character for character, _ in cells), style)
        whole.rstrip()
        return whole
