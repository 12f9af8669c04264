"""Reads the documents and their examples: code blocks by language, and commands with their comments."""

import re
import shlex
from pathlib import Path

__all__ = ["PAGES", "ROOT", "blocks", "commands", "endless", "read"]

ROOT = Path(__file__).parents[2]
FOLDERS = (".", "docs", "docs/protocols")
PAGES = sorted(path.relative_to(ROOT).as_posix() for folder in FOLDERS for path in (ROOT / folder).glob("*.md"))
"""All documents in the checkout."""


def read(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", read(page), re.DOTALL | re.MULTILINE)


def commands(page: str) -> list[tuple[list[str], str]]:
    """Return the words of each command that ends by itself (`console`), with its comment."""
    lines = [line.removeprefix("$ ") for block in blocks(page, "console") for line in block.splitlines()]
    return [(shlex.split(line, comments=True), line.partition("  # ")[2].strip()) for line in lines]


def endless(page: str) -> list[list[str]]:
    """Return the words of each command that keeps running or needs a network (`bash`)."""
    joined = [block.replace("\\\n", " ") for block in blocks(page, "bash")]
    lines = [shlex.split(line, comments=True) for block in joined for line in block.splitlines()]
    return [words for words in lines if words]
