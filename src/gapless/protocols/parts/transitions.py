"""Restricts the transitions of state machines: assigning a state that must not follow the current one raises an error.

    class Phase(Enum):
        OPEN = "open"
        CLOSED = "closed"

    PHASES = {Phase.OPEN: {Phase.CLOSED}, Phase.CLOSED: set()}

    @dataclass(eq=False)
    class Session:
        phase: Phase = Phase.OPEN

    follow(Session, "phase", PHASES)

The first assignment can be any state. Reading the attribute has no overhead.
"""

from collections.abc import Mapping, Set
from enum import Enum
from typing import Any, TypeAlias

__all__ = ["Transitions", "follow"]

Transitions: TypeAlias = Mapping[Any, Set[Any]]
"""For each state, the set of possible next states. Every state must be listed."""


class _Followed:
    """A descriptor that checks assignments. It has no `__get__`, so Python reads the value directly from the object."""

    def __init__(self, owner: str, name: str, table: Transitions) -> None:
        self._owner = owner
        self._name = name
        self._table = table

    def __set__(self, holder: Any, new: Enum) -> None:
        old = holder.__dict__.get(self._name)
        if old is not None and new is not old and new not in self._table[old]:
            raise AssertionError(f"{self._owner}.{self._name} cannot change from {old.value} to {new.value}")
        holder.__dict__[self._name] = new


def follow(owner: type, name: str, table: Transitions) -> None:
    """Restrict the assignments to an attribute of a class to these transitions."""
    states = type(next(iter(table)))
    unnamed = [state.name for state in states if state not in table]
    assert not unnamed, f"the transitions of {owner.__name__}.{name} lack {unnamed}"
    setattr(owner, name, _Followed(owner.__name__, name, table))
