"""A terminal for tests: it runs a program, and returns the final contents of the screen."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

__all__ = ["OnScreen", "on_a_terminal", "screen_of"]

_TOKEN = re.compile(r"\x1b\[(\??[\d;]*)([A-Za-z])|([\r\n])|([^\x1b\r\n]+)")


class OnScreen(NamedTuple):
    """The terminal after a program has written to it."""

    code: int
    lines: list[str]
    written: str
    """All output, including erased text."""


def on_a_terminal(
    command: Sequence[str], *, columns: int = 80, environment: Mapping[str, str] | None = None,
    out: Path | None = None,
) -> OnScreen:  # fmt: skip
    """Run a command with standard error, and optionally standard output, on a terminal."""
    outside, inside = pty.openpty()
    fcntl.ioctl(inside, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    settings = {**os.environ, "TERM": "xterm", **(environment or {})}
    settings.pop("COLUMNS", None)
    with open(os.devnull if out is None else out, "w", encoding="utf-8") as file:
        process = subprocess.Popen(
            command, env=settings, stdin=inside, stdout=inside if out is None else file, stderr=inside
        )
    os.close(inside)
    written = b""
    while chunk := _read(outside):
        written += chunk
    os.close(outside)
    text = written.decode()
    return OnScreen(process.wait(), screen_of(text, columns), text)


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65_536)
    except OSError:  # the system raises this when no process has the terminal open any more
        return b""


def screen_of(text: str, columns: int) -> list[str]:
    """Return the visible lines, after interpreting the cursor movements of spinners and bars."""
    lines: list[str] = [""]
    row = column = 0
    for arguments, command, control, words in _TOKEN.findall(text):
        if control == "\r":
            column = 0
        elif control == "\n":
            row += 1
        elif command == "A":
            row = max(0, row - int(arguments or 1))
        elif command == "K":
            lines[row] = "" if arguments == "2" else lines[row][:column]
        for letter in words:
            if column == columns:
                row, column = row + 1, 0
            lines += [""] * (row + 1 - len(lines))
            lines[row] = lines[row][:column].ljust(column) + letter + lines[row][column + 1 :]
            column += 1
        lines += [""] * (row + 1 - len(lines))
    return [line.rstrip() for line in lines]
