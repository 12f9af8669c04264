"""Defines invariants of a protocol, which hold in each reachable state of its nodes. Simulated runs check them after
each step.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from gapless.protocol.effects import Effect
from gapless.protocol.inputs import Input
from gapless.protocol.nodes import Node

__all__ = ["InvariantError", "Invariants"]


class InvariantError(AssertionError):
    """Raised when an invariant does not hold after a step."""

    def __init__(self, name: str, what: str) -> None:
        super().__init__(f"{name}: {what}")
        self.symptom = f"invariant {name}"
        """The name of the symptom. A search reports it, and preserves it while reducing a run."""


class Invariants(Protocol):
    """Checks the invariants of all nodes in one run, without changing any node."""

    def begin(self, name: str, node: Node) -> None:
        """Register a new broker node, before its first input."""
        ...

    def after_step(
        self, name: str, node: Node, item: Input, effects: Sequence[Effect], live: Callable[[], Mapping[str, Node]]
    ) -> None:  # fmt: skip
        """Raise an `InvariantError` if a step violated an invariant. `live` returns the running brokers."""
        ...
