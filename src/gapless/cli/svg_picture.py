"""Saves the output of a console as an SVG picture without external resources."""

import re
from pathlib import Path

from rich.console import Console

__all__ = ["save_svg"]

_FONTS = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"


def save_svg(console: Console, path: Path, title: str) -> None:
    """Write the picture; the same output gives the same bytes."""
    text = console.export_svg(title=title, unique_id="gapless")
    text = re.sub(r"@font-face \{.*?\}", "", text, flags=re.DOTALL).replace("Fira Code, monospace", _FONTS)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line.rstrip()}\n" for line in text.splitlines() if line.strip()), encoding="utf-8")
