"""The long description of the package: the README, as it can be read outside of a checkout.

A page that shows it is no checkout, so a link into one is dead there. Without links, some of the README says nothing
any more: a picture and its caption, a remark in brackets that only leads elsewhere, a sentence that begins with where
to read on, a section that is but a list of links. All of that goes; of other links the text stays.

If the project has an address where its files can be looked at, an entry `Files` under `[project.urls]`, everything
stays, and leads there. Links that name their host stay in any case.
"""

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

__all__ = ["LongDescription", "long_description"]

NEAR = r"\((?!https?:)([^)\s]+)\)"
"""Where a link into the checkout leads."""
PICTURE = re.compile(rf"^!\[[^]]*\]{NEAR}\n+(?:\*[^*].*?[^*]\*\n+)?", re.MULTILINE | re.DOTALL)
"""With its caption: what stands in italics below it."""
REMARK = re.compile(rf" \(\[[^]]*\]{NEAR}\)")
SENTENCE = re.compile(rf"(?<=[.!?])\s+\[[^]]*\]{NEAR}[^.!?|]*[.!?](?=\s)")
SECTION = re.compile(rf"^## [^\n]*\n+\[[^]]*\]{NEAR} ·.*?(?=^## |\Z)", re.MULTILINE | re.DOTALL)
LINK = re.compile(rf"(?<!!)\[([^]]*)\]{NEAR}")
SHOWN = re.compile(rf"!\[([^]]*)\]{NEAR}")


def long_description(readme: str, base: str = "") -> str:
    """The README as a page of its own; with a base, links lead there."""
    if base:
        base = base.rstrip("/")
        return LINK.sub(rf"[\1]({base}/\2)", SHOWN.sub(rf"![\1]({base}/\2?raw=true)", readme))
    for what in (PICTURE, SECTION, REMARK, SENTENCE):
        readme = what.sub("", readme)
    return LINK.sub(r"\1", readme).rstrip() + "\n"


class LongDescription(MetadataHookInterface):
    """Gives it to the build."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Put it in."""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        base = metadata.get("urls", {}).get("Files", "")
        metadata["readme"] = {"content-type": "text/markdown", "text": long_description(text, base)}
