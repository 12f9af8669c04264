"""Duplicate detection by sequence vectors, and legitimacy (section VI).

Each broker numbers the messages it processes, and each message carries the numbers given by the last 3δ + 1 brokers on
its path; bypassed brokers are listed without a number. A message is a duplicate if one of its numbers is not higher
than the highest seen of that broker. So a broker remembers one number for each broker nearby, and nothing about sources
far away.

**Why it is correct.** *No first copy is mistaken for a duplicate.* If a broker processed m1 before m2 and m1 is not
confirmed by a peer, it sends m1 to that peer before m2, over the same session. So each broker on the path that gets m2
for the first time has had m1, or all brokers behind it have. *No duplicate is mistaken for a first copy* if the two
paths share a broker: each bypasses at most δ of any 2δ + 1 in a row. That is **legitimacy**, weak over 2δ + 1 for
publications and strong over 3δ + 1 for subscriptions. A message that would violate it must wait.

The paper leaves two things open. A broker that restarts without memory starts numbering again; its old and new numbers
are not comparable, so both carry its incarnation. And a publisher whose broker restarts repeats its unconfirmed
publications, so the client, which is a leaf of the tree, is the first entry of the vector.
"""

from typing import TypeAlias

from gapless.protocols.parts.forgetting import forget_oldest
from gapless_papers.protocols.delta.messages import Vector

__all__ = ["Sequences"]

BYPASSED = -1
VISITED = -2
"""Marks a broker that this copy bypassed but another copy visited."""
HIGHEST_MAX = 100_000
"""How many brokers, incarnations and clients are remembered; beyond that, the oldest entries are forgotten."""

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
        """Return the next number, for a message that is not a duplicate."""
        self._last += 1
        return self._last

    def is_duplicate(self, vector: Vector) -> bool:
        """Return whether a copy of the message has been processed here; remember its numbers."""
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
        """Return the vector of a message that leaves here with this number and bypasses these brokers."""
        ways = tuple([(name, 0, BYPASSED) for name in bypassed])
        return (*vector, (self._name, self._incarnation, number), *ways)[-self.strong_window :]

    def merged(self, vector: Vector, other: Vector) -> Vector:
        """Return the vector of a message after another copy: a broker visited by either of them was not bypassed.

        The numbers are those of the first copy. Brokers that the second one visited may have processed it after
        messages that were numbered here after it, so its numbers would make those look like duplicates.
        """
        had = {name for name, _, number in other if number != BYPASSED}
        return tuple([
            (name, incarnation, VISITED if number == BYPASSED and name in had else number)
            for name, incarnation, number in vector
        ])  # fmt: skip

    def is_legitimate(self, vector: Vector) -> bool:
        """Return whether a publication that leaves with this vector has visited most of the last brokers on its path.

        The vector of the previous broker was legitimate, and only the brokers bypassed now are new, so it is enough to
        check the end of the vector.
        """
        return sum(number == BYPASSED for _, _, number in vector[-self.weak_window :]) <= self._delta

    def is_strongly_legitimate(self, path: tuple[str, ...], bypassed: tuple[str, ...]) -> bool:
        """Return whether a subscription with this path has visited most of the last brokers on it."""
        return sum(name in bypassed for name in path[-self.strong_window :]) <= self._delta
