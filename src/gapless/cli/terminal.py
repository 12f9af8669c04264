"""The terminal: output width, progress displays, and closed pipes.

Spinners and bars are shown while the user waits, and removed before anything else is printed,
because two writers on one screen overwrite each other. So the block of a `spinner` or of
`progress_bars` must not print.
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
    "spinner",
]

Tell: TypeAlias = Callable[[str], None]
"""A callback that receives the name of the current stage."""

WIDTH_MAX = 80
"""The maximum width of tables, in columns."""


class _Escaped:
    """The output of a renderable, without control characters in its text; styles are kept."""

    def __init__(self, renderable: ConsoleRenderable) -> None:
        self._renderable = renderable

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for segment in console.render(self._renderable, options):
            yield segment if segment.control else Segment(printable_lines(segment.text), segment.style)


class _Console(Console, RenderHook):
    """A console that escapes control characters, because text comes from brokers, files and the
    command line.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.push_render_hook(self)

    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        """Escape the control characters in the output of the renderables."""
        return [each if isinstance(each, Control) else _Escaped(each) for each in renderables]

    def on_broken_pipe(self) -> None:
        _leave_quietly()


def output_console(*, record: bool = False) -> Console:
    """Return the console for results."""
    console = _Console(highlight=False, record=record)
    console.width = min(console.width, WIDTH_MAX)
    return console


@contextmanager
def spinner(stage: str) -> Iterator[Tell]:
    """Show a spinner with the stage and the elapsed time, if there is a terminal. Nothing else may be printed
    meanwhile."""
    with progress_bars(SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()) as shown:
        task = shown.add_task(stage, total=None)
        yield lambda stage: shown.update(task, description=stage)


@contextmanager
def progress_bars(*columns: ProgressColumn, hidden: bool = False) -> Iterator[Progress]:
    """Show progress bars on standard error, and remove them at the end. Without a terminal, show nothing.

    They use a descriptor of their own: while Spark starts, standard error is redirected to its log.
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
    """Return a stream to the current standard error if that is a terminal; otherwise a stream that discards
    everything."""
    if sys.stderr is not None and sys.stderr.isatty():
        return open(os.dup(sys.stderr.fileno()), "w", encoding=sys.stderr.encoding, errors="replace")
    return open(os.devnull, "w", encoding="utf-8")


def check_file(path: Path) -> None:
    """Raise a `GaplessError` if the file cannot be written. Called before a long run, so that it fails early."""
    taken = path if path.is_dir() else next((parent for parent in path.parents if parent.is_file()), None)
    if taken is not None:
        raise GaplessError(f"{path}: cannot be written: {taken} is a {'directory' if taken == path else 'file'}")


def print_text(text: str) -> None:
    """Print text for people on standard output, with control characters escaped."""
    print(printable_lines(text))


def print_json(document: Any) -> None:
    """Print one JSON document on standard output."""
    text = printable_json(msgspec.json.format(msgspec.json.encode(document), indent=2).decode())
    try:
        print(text, flush=True)
    except BrokenPipeError:
        _leave_quietly()


def print_json_line(document: Any) -> None:
    """Print one JSON document as a single line on standard output."""
    try:
        print(printable_json(msgspec.json.encode(document).decode()), flush=True)
    except BrokenPipeError:
        _leave_quietly()


def _leave_quietly() -> NoReturn:
    """Exit without a traceback when the reader closes the pipe, as `head` does."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    raise SystemExit(PIPE_CLOSED)
