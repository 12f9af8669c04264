"""Draws lines, arrows, dots and text as SVG, in distinguishable colours."""

from html import escape

__all__ = ["Drawing"]

FONT = "ui-sans-serif, system-ui, 'Segoe UI', Helvetica, Arial, sans-serif"


class Drawing:
    """A picture in progress; `text` returns its file."""

    def __init__(self, width: int, height: int, title: str) -> None:
        self._size = (width, height)
        self._title = title
        self._parts: list[str] = []

    def line(self, start: tuple[float, float], end: tuple[float, float], colour: str, dashes: str = "") -> None:
        """Add a plain line."""
        dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
        self._parts.append(
            f'<line x1="{start[0]:.1f}" y1="{start[1]:.1f}" x2="{end[0]:.1f}" y2="{end[1]:.1f}" '
            f'stroke="{colour}"{dashed}/>'
        )

    def arrow(self, start: tuple[float, float], end: tuple[float, float], colour: str, dashes: str = "") -> None:
        """Add a line with an arrowhead at its end."""
        self.line(start, end, colour, dashes)
        (x0, y0), (x1, y1) = start, end
        length = ((x1 - x0) ** 2 + (y1 - y0) ** 2) ** 0.5 or 1.0
        along, across = ((x1 - x0) / length, (y1 - y0) / length), (-(y1 - y0) / length, (x1 - x0) / length)
        back = (x1 - 8 * along[0], y1 - 8 * along[1])
        corners = [(x1, y1), *((back[0] + side * across[0], back[1] + side * across[1]) for side in (3.5, -3.5))]
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in corners)
        self._parts.append(f'<polygon points="{points}" fill="{colour}" stroke="none"/>')

    def cross(self, at: tuple[float, float], colour: str, size: float = 5) -> None:
        """Add a cross where something ends."""
        x, y = at
        self.line((x - size, y - size), (x + size, y + size), colour)
        self.line((x - size, y + size), (x + size, y - size), colour)

    def dot(self, at: tuple[float, float], colour: str) -> None:
        """Add a dot for an event at a node."""
        self._parts.append(f'<circle cx="{at[0]:.1f}" cy="{at[1]:.1f}" r="4" fill="{colour}" stroke="none"/>')

    def box(self, corner: tuple[float, float], size: tuple[float, float], fill: str, colour: str) -> None:
        """Add a box with round corners."""
        self._parts.append(
            f'<rect x="{corner[0]:.1f}" y="{corner[1]:.1f}" width="{size[0]:.1f}" height="{size[1]:.1f}" rx="6" '
            f'fill="{fill}" stroke="{colour}"/>'
        )

    def words(self, at: tuple[float, float], text: str, colour: str = "#222", anchor: str = "middle", size: int = 12,
              weight: str = "normal") -> None:  # fmt: skip
        """Add a line of text with a white outline, so that it is readable over lines."""
        self._parts.append(
            f'<text x="{at[0]:.1f}" y="{at[1]:.1f}" fill="{colour}" text-anchor="{anchor}" font-size="{size}" '
            f'font-weight="{weight}" stroke="#fff" stroke-width="3" paint-order="stroke">{escape(text)}</text>'
        )

    def text(self) -> str:
        """Return the SVG."""
        width, height = self._size
        return "\n".join([
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
            f'role="img" font-family="{FONT}" stroke-width="1.5">',
            f"<title>{escape(self._title)}</title>",
            f'<rect width="{width}" height="{height}" rx="8" fill="#fff"/>',
            *self._parts,
            "</svg>\n",
        ])  # fmt: skip
