"""Duplicate detection by sequence vectors, and legitimacy (section VI).

Each broker numbers what it processes, and each message carries the numbers that the last 3δ + 1 brokers on its way
have given it; those that were bypassed stand there without one. A message is a duplicate if one of its numbers is not
higher than the highest seen of that broker. So a broker remembers one number for each broker nearby, and nothing of
sources far away.

**Why it is right.** *No first copy is taken for a duplicate.* Whoever sends m2 over a session has sent m1, if it
processed m1 before and m1 is not confirmed from there, over the same session before; so along the whole way whoever
gets m2 first has had m1, or all behind it have. *No duplicate is taken for a first copy* if the two ways share a
broker: each bypasses at most δ of any 2δ + 1 in a row. That is **legitimacy**, weak over 2δ + 1 for publications and
strong over 3δ + 1 for subscriptions, and whoever would break it must wait.

Two things the paper leaves open. A broker that restarts without memory numbers anew; its old numbers and its new
ones are not comparable, so both carry its incarnation. And a publisher whose broker restarts sends again what was
not confirmed, so the client stands in front of the vector, as the leaf of the tree that it is.
"""

from typing import TypeAlias

from gapless.protocols.parts.forgetting import forget_oldest
from gapless_papers.protocols.delta.messages import Vector

__all__ = ["Sequences"]

BYPASSED = -1
VISITED = -2
"""Bypassed by the copy that was numbered here, but not by another."""
HIGHEST_MAX = 100_000
"""How many brokers, incarnations and clients are remembered; beyond that, those first heard of are forgotten."""

_Key: TypeAlias = str | tuple[str, int]


class Sequences:
    """The numbers that one broker gives, and the highest that it has seen."""

    def __init__(self, name: str, incarnation: int, delta: int) -> None:
        self.weak_window = 2 * delta + 1
        self.strong_window = 3 * delta + 1
        self._name = name
        self._incarnation = incarnation
        self._delta = delta
        self._last = 0
        self._highest: dict[_Key, int] = {}

    def __len__(self) -> int:
        return len(self._highest)

    def next(self) -> int:
        """A number for a message that is no duplicate."""
        self._last += 1
        return self._last

    def is_duplicate(self, vector: Vector) -> bool:
        """Whether a copy of the message has been here; its numbers count from now on."""
        highest = self._highest
        duplicate = False
        for name, incarnation, number in vector:
            if number < 0:
                continue
            key = (name, incarnation) if incarnation else name
            if highest.get(key, BYPASSED) >= number:
                duplicate = True
            else:
                highest[key] = number
        forget_oldest(highest, HIGHEST_MAX)
        return duplicate

    def extended(self, vector: Vector, number: int, bypassed: tuple[str, ...]) -> Vector:
        """The vector of a message that leaves here under this number, past these brokers."""
        ways = tuple([(name, 0, BYPASSED) for name in bypassed])
        return (*vector, (self._name, self._incarnation, number), *ways)[-self.strong_window :]

    def merged(self, vector: Vector, other: Vector) -> Vector:
        """The vector of a message of which another copy has come: whoever had one of them was not bypassed.

        The numbers are those of the first copy. Brokers that the second one has been through may have processed it
        after others that were numbered here after it, so their numbers would make those look like duplicates.
        """
        had = {name for name, _, number in other if number != BYPASSED}
        return tuple([
            (name, incarnation, VISITED if number == BYPASSED and name in had else number)
            for name, incarnation, number in vector
        ])  # fmt: skip

    def is_legitimate(self, vector: Vector) -> bool:
        """Whether a publication that leaves with this vector has been through most of the last brokers on its way.

        What was sent to the one before was legitimate, and only what is bypassed now comes on top: it is enough to
        look at the last brokers.
        """
        return sum(number == BYPASSED for _, _, number in vector[-self.weak_window :]) <= self._delta

    def is_strongly_legitimate(self, path: tuple[str, ...], bypassed: tuple[str, ...]) -> bool:
        """The same for a subscription."""
        return sum(name in bypassed for name in path[-self.strong_window :]) <= self._delta
