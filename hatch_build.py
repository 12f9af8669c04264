"""The long description of the package: the README, without what leads nowhere outside of the checkout.

A page that shows it is no checkout, so a link into one is dead there. A link to a file becomes its text, and a
picture goes.
Links that name their host stay.
"""

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

__all__ = ["LongDescription", "long_description"]

PICTURE = re.compile(r"^!\[[^]]*\]\((?!https?:)[^)]*\)\n+", re.MULTILINE)
LINK = re.compile(r"(?<!!)\[([^]]*)\]\((?!https?:)[^)]*\)")


def long_description(readme: str) -> str:
    """The README as a page of its own."""
    return LINK.sub(r"\1", PICTURE.sub("", readme))


class LongDescription(MetadataHookInterface):
    """Gives it to the build."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Put it in."""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": long_description(text)}
