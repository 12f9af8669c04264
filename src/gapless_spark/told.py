"""What is the outside world's fault reaches whoever runs the query as a sentence, without a stack of ours around it.

Spark runs a source in processes of its own and passes on what they raise, with its traceback, unless that process asks
it not to. After an error of ours such a process ends, so nothing else is hidden by that.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from gapless.errors import GaplessError

__all__ = ["sentences"]


@contextmanager
def sentences() -> Iterator[None]:
    """Whatever `GaplessError` is raised within is passed on as its sentence alone."""
    try:
        yield
    except GaplessError as error:
        os.environ["SPARK_HIDE_TRACEBACK"] = "1"
        raise error from None
