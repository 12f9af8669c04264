"""Creates the package's long description from the README.

Outside a checkout, relative links do not work. So the long description contains only their text, and omits pictures
with their captions and the section "Read on". If `[project.urls]` has a URL `Files`, links point there instead.
"""

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

__all__ = ["LongDescription", "long_description"]

RELATIVE = r"\((?!https?:)([^)\s]+)\)"
PICTURE = re.compile(rf"^!\[[^]]*\]{RELATIVE}\n+(?:\*[^*].*?[^*]\*\n+)?", re.MULTILINE | re.DOTALL)
"""A picture with its caption in italics below."""
READ_ON = re.compile(r"^## Read on\n.*?(?=^## |\Z)", re.MULTILINE | re.DOTALL)
LINK = re.compile(rf"(?<!!)\[([^]]*)\]{RELATIVE}")
IMAGE = re.compile(rf"!\[([^]]*)\]{RELATIVE}")


def long_description(readme: str, base: str = "") -> str:
    """Return the README for a page outside a checkout; with a base URL, its links point there."""
    if base:
        base = base.rstrip("/")
        return LINK.sub(rf"[\1]({base}/\2)", IMAGE.sub(rf"![\1]({base}/\2?raw=true)", readme))
    return LINK.sub(r"\1", READ_ON.sub("", PICTURE.sub("", readme))).rstrip() + "\n"


class LongDescription(MetadataHookInterface):
    """Adds the long description to the package's metadata."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set `readme` in the metadata."""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        base = metadata.get("urls", {}).get("Files", "")
        metadata["readme"] = {"content-type": "text/markdown", "text": long_description(text, base)}
