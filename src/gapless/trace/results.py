"""Writes tables of results to a directory. They appear as a whole, and replace only earlier results."""

import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from gapless.errors import TraceError

__all__ = ["DONE", "must_take_results", "results_folder"]

DONE = "_SUCCESS"
"""The marker file of a complete table, as Spark and Hadoop write it."""


@contextmanager
def results_folder(directory: Path | str, tables: Iterable[str]) -> Iterator[Path]:
    """Yield a folder for these tables, each in a subfolder. After success, it becomes the directory."""
    target = Path(directory).absolute()
    is_replaced = must_take_results(target, tables)
    target.parent.mkdir(parents=True, exist_ok=True)
    workshop = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=".partial", dir=target.parent))
    try:
        yield workshop / "new"
        if is_replaced:
            target.rename(workshop / "old")
        (workshop / "new").rename(target)
    finally:
        shutil.rmtree(workshop, ignore_errors=True)


def must_take_results(directory: Path | str, tables: Iterable[str]) -> bool:
    """Return whether earlier results of these tables will be replaced. Raise a `TraceError` if the directory contains
    anything else.
    """
    target, tables = Path(directory).absolute(), set(tables)
    if not target.exists():
        return False
    if not target.is_dir():
        raise TraceError(f"{target} is a file; name a directory for the results")
    for entry in sorted(target.iterdir()):
        if entry.name not in tables or not (entry / DONE).exists():
            raise TraceError(
                f"{target} contains something other than results ({entry.name}); choose another directory or empty it"
            )
    return True
