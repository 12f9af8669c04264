"""Makes the package's long description from the README.

Outside a checkout, relative links are dead. So the long description has their text only, and neither pictures with
their captions nor the section "Read on". With a URL `Files` under `[project.urls]`, links lead there instead.
"""

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

__all__ = ["LongDescription", "long_description"]

RELATIVE = r"\((?!https?:)([^)\s]+)\)"
PICTURE = re.compile(rf"^!\[[^]]*\]{RELATIVE}\n+(?:\*[^*].*?[^*]\*\n+)?", re.MULTILINE | re.DOTALL)
"""With the caption in italics below it."""
READ_ON = re.compile(r"^## Read on\n.*?(?=^## |\Z)", re.MULTILINE | re.DOTALL)
LINK = re.compile(rf"(?<!!)\[([^]]*)\]{RELATIVE}")
IMAGE = re.compile(rf"!\[([^]]*)\]{RELATIVE}")


def long_description(readme: str, base: str = "") -> str:
    """The README for a page outside a checkout; with a base URL, its links lead there."""
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
