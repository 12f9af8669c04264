"""Shows the user of a query one sentence, without our stack trace, for errors whose cause is outside Gapless.

Spark runs a source in separate processes and shows the errors they raise with tracebacks, unless that process disables
it. After such an error the process ends, so this hides nothing else.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from gapless.errors import GaplessError

__all__ = ["sentences"]


@contextmanager
def sentences() -> Iterator[None]:
    """Show only the message of a `GaplessError` that is raised in the block."""
    try:
        yield
    except GaplessError as error:
        os.environ["SPARK_HIDE_TRACEBACK"] = "1"
        raise error from None
