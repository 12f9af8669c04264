"""Names and the static tree: electorates, regions, and the contracted tree around excluded brokers."""

from collections.abc import Iterable
from typing import NamedTuple


class Incarnation(NamedTuple):
    """One run of a broker. A broker that restarts or was excluded returns with the next number."""

    name: str
    number: int


class Event(NamedTuple):
    """An admitted publication: an entry of the journal of the incarnation that admitted it."""

    publisher: str
    number: int
    topic: int
    timestamp: int
    origin: Incarnation

    @property
    def key(self) -> tuple[str, int]:
        return self.publisher, self.number

    @property
    def order(self) -> tuple[int, str, int]:
        """Return the sort key. Sorting by timestamp is a causal order, because an effect has a larger timestamp than
        its cause."""
        return self.timestamp, self.publisher, self.number


Status = tuple[int, int]
"""(incarnation, phase): phase 0 is recovering, another even phase joining, an odd one joined, EXCLUDED is final.
Statuses merge by maximum."""

EXCLUDED = 10**6
View = dict[str, Status]  # never changed in place


def is_excluded(status: Status) -> bool:
    return status[1] == EXCLUDED


def membership(view: View) -> View:
    """Return the view that handovers use: a recovering incarnation is absent, and its predecessor is excluded."""
    return {n: (s[0] - 1, EXCLUDED) if s[0] and not s[1] else s for n, s in view.items()}


def is_joined(status: Status) -> bool:
    return status[1] % 2 == 1


class Tree:
    """The static tree of broker names."""

    def __init__(self, edges: Iterable[tuple[str, str]], f: int) -> None:
        self.f = f
        self.neighbours: dict[str, set[str]] = {}
        for a, b in edges:
            self.neighbours.setdefault(a, set()).add(b)
            self.neighbours.setdefault(b, set()).add(a)
        self.names = sorted(self.neighbours)
        if len(self.names) < 2 * f + 1:
            raise ValueError(
                f"{len(self.names)} brokers cannot survive f = {f} failures: 2f + 1 = {2 * f + 1} are needed"
            )
        self.others = {name: self._nearest(name)[: 2 * f] for name in self.names}
        """The electorate of an incarnation without itself: its 2f nearest brokers, ties by name."""
        self.electorate = {name: [name, *self.others[name]] for name in self.names}
        self.memberships = {n: [b for b in self.names if n in self.electorate[b]] for n in self.names}

    def _nearest(self, name: str) -> list[str]:
        distance, queue = {name: 0}, [name]
        for x in queue:
            for y in sorted(self.neighbours[x] - distance.keys()):
                distance[y] = distance[x] + 1
                queue.append(y)
        return sorted(queue[1:], key=lambda n: (distance[n], n))

    def components(self, names: Iterable[str]) -> list[frozenset[str]]:
        """Return the connected sets of these names."""
        left, found = set(names), []
        while left:
            todo, component = [left.pop()], set()
            while todo:
                x = todo.pop()
                component.add(x)
                todo += (near := self.neighbours[x] & left)
                left -= near
            found.append(frozenset(component))
        return sorted(found, key=min)

    def regions(self, view: View) -> list[tuple[frozenset[str], frozenset[str]]]:
        """Return each connected set of names that are not joined, with its group: the live brokers in and around it."""
        found = []
        for region in self.components(n for n in self.names if not is_joined(view[n])):
            around = region.union(*(self.neighbours[x] for x in region))
            found.append((region, frozenset(n for n in around if not is_excluded(view[n]))))
        return found

    def links(self, view: View, region: frozenset[str], group: frozenset[str]) -> list[tuple[str, str, frozenset[str]]]:
        """Return the links among the group, a star around the lowest name, as (a, b, the excluded names that the link
        bypasses)."""
        found = [
            (a, b, frozenset[str]())
            for a in sorted(group)
            for b in sorted(self.neighbours[a] & group)
            if a < b and (a in region or b in region)
        ]
        for hole in self.components(n for n in region if is_excluded(view[n])):
            around = sorted(set[str]().union(*(self.neighbours[x] for x in hole)) - hole)
            found += [(around[0], y, hole) for y in around[1:]]
        return found

    @staticmethod
    def next_hops(me: str, links: list[tuple[str, str, frozenset[str]]]) -> dict[str, str]:
        """Return, for each other member, the neighbour on the path to it."""
        near: dict[str, list[str]] = {}
        for a, b, _ in links:
            near.setdefault(a, []).append(b)
            near.setdefault(b, []).append(a)
        hop = {y: y for y in near.get(me, ())}
        todo = list(hop)
        for x in todo:
            for y in near[x]:
                if y != me and y not in hop:
                    hop[y] = hop[x]
                    todo.append(y)
        return hop
