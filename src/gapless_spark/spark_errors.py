"""Converts Spark's errors into ours: one sentence, without a JVM stack trace.

A damaged or missing file is a `TraceError`. Any other failure inside Spark (a lost machine, a full disk, no memory) is
a `SparkError`. A query that Spark refuses to plan, and an error in our Python code on an executor, are bugs in Gapless
and are raised unchanged.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from py4j.protocol import Py4JError
from pyspark.errors import AnalysisException, PySparkException, PythonException

from gapless.errors import SparkError, TraceError

__all__ = ["TOO_SLOW", "plain_errors", "started_too_slowly"]

TOO_SLOW = "failed to connect back"
"""Spark's message for a Python process that did not start in time; there is no error class for that."""


@contextmanager
def plain_errors(log: Path | None = None) -> Iterator[None]:
    """Convert Spark's errors into ours. `log` is the file with Spark's own messages, for details."""
    try:
        yield
    except AnalysisException as error:
        if error.getCondition() != "PATH_NOT_FOUND":
            raise
        path = (error.getMessageParameters() or {}).get("path", "")
        raise TraceError(f"there is no trace at {_local(path)}") from None
    except PythonException:
        raise
    except (PySparkException, Py4JError, ConnectionError) as error:
        raise _in_our_words(error, log) from None
    except Exception as error:
        # The client of Spark Connect does not convert errors of its transport.
        if type(error).__module__.partition(".")[0] != "grpc":
            raise
        raise _in_our_words(error, log) from None


def started_too_slowly(error: Exception) -> bool:
    """Return whether a Python process did not start in the time that Spark gives it; a retry may succeed."""
    return TOO_SLOW in str(error)


def _in_our_words(error: Exception, log: Path | None) -> SparkError | TraceError:
    text = str(error)
    damaged = re.search(r"\[FAILED_READ_FILE[^\]]*\][^\n]*?(?:file:/*)?(/[^\n]*?\.parquet)", text)
    if damaged is not None:
        return TraceError(f"{damaged[1]} is damaged and cannot be read")
    kept = f"; its log is {log}" if log is not None and log.exists() else ""
    return SparkError(f"Spark failed: {_first_sentence(text)}{kept}")


def _first_sentence(text: str) -> str:
    """Return the error's message without its stack trace."""
    lines = [line.strip() for line in text.splitlines()]
    causes = [line for line in lines if line and not line.startswith(("at ", "Traceback", "File ", "JVM", "Driver"))]
    said = causes[0] if causes else "no reason was given"
    if said.startswith("An error occurred while calling") and len(causes) > 1:
        said = causes[1].lstrip(": ")
    return said if len(said) <= 300 else said[:299] + "…"


def _local(path: str) -> str:
    return re.sub(r"^file:/+", "/", path)
