"""The terminal: one place that decides how wide we print, and what happens when nobody reads any more."""

import os
import sys
from typing import Any, NoReturn

import msgspec
from rich.console import Console

from gapless.cli.exit_codes import PIPE_CLOSED

__all__ = ["WIDTH_MAX", "error_console", "output_console", "print_json"]

WIDTH_MAX = 80
"""Tables are made for this width; wider ones are harder to read, not easier."""


class _Console(Console):
    def on_broken_pipe(self) -> None:
        _leave_quietly()


def output_console(*, record: bool = False) -> Console:
    """Where results go."""
    console = _Console(highlight=False, record=record)
    console.width = min(console.width, WIDTH_MAX)
    return console


def error_console() -> Console:
    """Where progress and complaints go."""
    console = _Console(stderr=True, highlight=False)
    console.width = min(console.width, WIDTH_MAX)
    return console


def print_json(document: Any) -> None:
    """One JSON document on standard output."""
    text = msgspec.json.format(msgspec.json.encode(document), indent=2).decode()
    try:
        print(text, flush=True)
    except BrokenPipeError:
        _leave_quietly()


def _leave_quietly() -> NoReturn:
    """As `head` expects it: no traceback, and none when Python flushes at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    raise SystemExit(PIPE_CLOSED)
