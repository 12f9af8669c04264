"""The terminal: one place that decides how wide we print, how we show that we live, and what happens when nobody reads.

What moves (a spinner, a bar) is shown while somebody waits, and is gone before anything else is printed: two writers on
one screen write over each other. So the block of a `sign_of_life` or of `progress_bars` computes, and prints nothing.
"""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn, TextIO, TypeAlias

import msgspec
from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderHook, RenderResult
from rich.control import Control
from rich.progress import Progress, ProgressColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.segment import Segment

from gapless.cli.exit_codes import PIPE_CLOSED
from gapless.errors import GaplessError
from gapless.printable import printable_json, printable_lines

__all__ = [
    "WIDTH_MAX",
    "Tell",
    "check_file",
    "output_console",
    "print_json",
    "print_json_line",
    "print_text",
    "progress_bars",
    "sign_of_life",
]

Tell: TypeAlias = Callable[[str], None]
"""Takes the name of the stage that begins."""

WIDTH_MAX = 80
"""Tables are made for this width; wider ones are harder to read, not easier."""


class _Escaped:
    """What a renderable prints, without control characters in its text; those that style it stay."""

    def __init__(self, renderable: ConsoleRenderable) -> None:
        self._renderable = renderable

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for segment in console.render(self._renderable, options):
            yield segment if segment.control else Segment(printable_lines(segment.text), segment.style)


class _Console(Console, RenderHook):
    """Text may come from elsewhere: from brokers, out of files, from the command line."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.push_render_hook(self)

    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        """Called before anything is printed."""
        return [each if isinstance(each, Control) else _Escaped(each) for each in renderables]

    def on_broken_pipe(self) -> None:
        _leave_quietly()


def output_console(*, record: bool = False) -> Console:
    """Where results go."""
    console = _Console(highlight=False, record=record)
    console.width = min(console.width, WIDTH_MAX)
    return console


@contextmanager
def sign_of_life(stage: str) -> Iterator[Tell]:
    """A spinner with the stage and the time it has been turning, where somebody looks. Print nothing meanwhile."""
    with progress_bars(SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()) as shown:
        task = shown.add_task(stage, total=None)
        yield lambda stage: shown.update(task, description=stage)


@contextmanager
def progress_bars(*columns: ProgressColumn, hidden: bool = False) -> Iterator[Progress]:
    """Bars on standard error, gone at the end; nothing where nobody looks.

    They have a descriptor of their own: while Spark starts, standard error leads into its log.
    """
    with _own_descriptor() as file:
        console = _Console(file=file, highlight=False)
        console.width = min(console.width, WIDTH_MAX)
        with Progress(
            *columns, console=console, transient=True, disable=hidden or not console.is_terminal, redirect_stdout=False,
            redirect_stderr=False,
        ) as shown:  # fmt: skip
            yield shown


def _own_descriptor() -> TextIO:
    """A stream to where standard error leads now, if that is a terminal; else to nowhere."""
    if sys.stderr is not None and sys.stderr.isatty():
        return open(os.dup(sys.stderr.fileno()), "w", encoding=sys.stderr.encoding, errors="replace")
    return open(os.devnull, "w", encoding="utf-8")


def check_file(path: Path) -> None:
    """A `GaplessError` if no file can be written there: for those who would rather hear it before a long run."""
    taken = path if path.is_dir() else next((parent for parent in path.parents if parent.is_file()), None)
    if taken is not None:
        raise GaplessError(f"{path}: cannot be written: {taken} is a {'directory' if taken == path else 'file'}")


def print_text(text: str) -> None:
    """Text for people on standard output, some of which may come from elsewhere."""
    print(printable_lines(text))


def print_json(document: Any) -> None:
    """One JSON document on standard output."""
    text = printable_json(msgspec.json.format(msgspec.json.encode(document), indent=2).decode())
    try:
        print(text, flush=True)
    except BrokenPipeError:
        _leave_quietly()


def print_json_line(document: Any) -> None:
    """One of many JSON documents on standard output, each on a line of its own."""
    try:
        print(printable_json(msgspec.json.encode(document).decode()), flush=True)
    except BrokenPipeError:
        _leave_quietly()


def _leave_quietly() -> NoReturn:
    """As `head` expects it: no traceback, and none when Python flushes at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    raise SystemExit(PIPE_CLOSED)
