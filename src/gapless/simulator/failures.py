"""How a run can fail, other than by a bad verdict: both are bugs of the protocol under test.

A `NodeFailure` is an exception that a node raised; it carries the traceback as text, so that it survives the way
from a worker process. A `RunawayRun` hit the bound on steps: typically two nodes that answer each other forever.
"""

import traceback
from typing import Any

__all__ = ["NodeFailure", "RunawayRun", "SimulationFailure"]


class SimulationFailure(Exception):
    """The protocol under test broke down."""


class NodeFailure(SimulationFailure):
    """A node raised an exception."""

    def __init__(self, summary: str, traceback_text: str) -> None:
        super().__init__(summary, traceback_text)
        self.summary = summary
        self.traceback_text = traceback_text

    @classmethod
    def of(cls, node: str, item: Any, now: int, error: BaseException) -> "NodeFailure":
        """The failure of a node on one input."""
        what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        summary = f"{node} failed at {now / 1000:g} ms on {type(item).__name__}: {what}"
        return cls(summary, "".join(traceback.format_exception(error)))

    def __str__(self) -> str:
        return self.summary


class RunawayRun(SimulationFailure):
    """The run took more steps than it may."""
