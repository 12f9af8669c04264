"""Finds paths between two brokers of a graph that have no other broker in common.

By Menger's theorem there are as many as brokers must fail to separate the two. They are found one
by one, each along a shortest path through what the earlier ones left over. A later path may undo
a part of an earlier one (the augmenting paths of Ford and Fulkerson, with each broker split
into an entrance and an exit).
"""

from collections.abc import Callable, Iterable
from itertools import pairwise

__all__ = ["disjoint_paths"]

Place = tuple[str, bool]
"""A broker's entrance (False) or exit (True)."""


def disjoint_paths(
    neighbours: Callable[[str], Iterable[str]], start: str, end: str, most: int
) -> tuple[tuple[str, ...], ...]:
    """Return up to `most` paths from start to end that share no inner broker; both ends are included."""
    used: dict[str, dict[str, None]] = {}
    """The next brokers on the paths found so far, by broker."""
    before: dict[str, str] = {}
    """For each inner broker of a path, the broker before it."""
    for _ in range(most):
        way = _augmenting(neighbours, start, end, used, before)
        if way is None:
            break
        _take(way, start, end, used, before)
    return tuple(sorted((_follow(first, start, end, used) for first in used.get(start, ())), key=lambda p: (len(p), p)))


def _augmenting(
    neighbours: Callable[[str], Iterable[str]], start: str, end: str, used: dict[str, dict[str, None]],
    before: dict[str, str],
) -> list[Place] | None:  # fmt: skip
    """Return a shortest remaining path, from the start's exit to the end's entrance."""
    first: Place = (start, True)
    came: dict[Place, Place] = {first: first}
    queue = [first]
    for place in queue:
        name, is_exit = place
        steps: list[Place] = []
        if is_exit:
            taken = used.get(name, {})
            steps = [(other, False) for other in neighbours(name) if other != start and other not in taken]
            if name in before:
                steps.append((name, False))
        elif name in before:
            steps = [(before[name], True)]
        else:
            steps = [(name, True)]
        for step in steps:
            if step not in came:
                came[step] = place
                if step == (end, False):
                    return _way_back(step, came)
                queue.append(step)
    return None


def _way_back(place: Place, came: dict[Place, Place]) -> list[Place]:
    way = [place]
    while came[way[-1]] != way[-1]:
        way.append(came[way[-1]])
    return way[::-1]


def _take(way: list[Place], start: str, end: str, used: dict[str, dict[str, None]], before: dict[str, str]) -> None:
    """Add the steps of a path, and remove the steps that it traverses backwards."""
    added = []
    for (one, leaves), (other, arrives_at_exit) in pairwise(way):
        if leaves and not arrives_at_exit and one != other:
            added.append((one, other))
        elif not leaves and arrives_at_exit and one != other:
            del used[other][one]
            del before[one]
    for one, other in added:
        used.setdefault(one, {})[other] = None
        if other != end:
            before[other] = one


def _follow(first: str, start: str, end: str, used: dict[str, dict[str, None]]) -> tuple[str, ...]:
    path = [start, first]
    while path[-1] != end:
        path.append(next(iter(used[path[-1]])))
    return tuple(path)
