"""Failures of a run other than anomalies: both are bugs in the protocol under test.

A `NodeError` is an exception that a node raised; it carries the traceback as text, to survive the
transfer from a worker process. A `RunawayError` hit the bound on steps: typically two nodes answer
each other forever.
"""

import traceback
from typing import Any

from gapless.protocol import InvariantError

__all__ = ["NodeError", "RunawayError", "SimulationError"]


class SimulationError(Exception):
    """Raised when the protocol under test has failed."""


class NodeError(SimulationError):
    """Raised when a node has raised an exception."""

    def __init__(self, summary: str, cause: str, traceback_text: str, symptom: str) -> None:
        super().__init__(summary, cause, traceback_text, symptom)
        self.summary = summary
        self.cause = cause
        """The name of the exception's class."""
        self.traceback_text = traceback_text
        self.symptom = symptom
        """The symptom: `exception` with the cause, or the invariant that does not hold."""

    @classmethod
    def of(cls, node: str, item: Any, now: int, error: BaseException) -> "NodeError":
        """Return the error for an exception that a node raised on an input."""
        cause = type(error).__name__
        what = f"{cause}: {error}" if str(error) else cause
        symptom = error.symptom if isinstance(error, InvariantError) else f"exception {cause}"
        summary = f"{node} failed at {now / 1000:g} ms on {type(item).__name__}: {what}"
        return cls(summary, cause, "".join(traceback.format_exception(error)), symptom)

    def __str__(self) -> str:
        return self.summary


class RunawayError(SimulationError):
    """Raised when the run has exceeded the maximum number of steps."""
