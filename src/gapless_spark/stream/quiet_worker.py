"""Ends a worker whose rows are no longer wanted without a traceback.

`df.show()` and `df.limit(n)` take some rows and close the connection to the worker. PySpark's daemon then fails to
write the rest, prints that error with its traceback, and ends the worker. This is not a fault, so a worker that has
read from a network does not print it. Any other error is printed as before.
"""

import sys
import traceback

__all__ = ["end_quietly"]

_print_exc = traceback.print_exc


def end_quietly() -> None:
    """Make this process end silently when Spark closes the connection, if it is a worker of PySpark."""
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    if spec is not None and spec.name == "pyspark.daemon":
        traceback.print_exc = _print_unless_closed


def _print_unless_closed(*arguments: object, **options: object) -> None:
    if not isinstance(sys.exc_info()[1], BrokenPipeError | ConnectionResetError):
        _print_exc(*arguments, **options)  # type: ignore[arg-type]
