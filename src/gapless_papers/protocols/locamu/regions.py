"""Where a message goes: all brokers on the ways from its origin to its ends, and who passes it on to whom.

**On a tree with bypasses** (Figure 4(b) of the paper on LoCaPS) the way to an end is the path of the tree, and each
broker on it passes the message to the next f + 1 on it. Any f in a row may fail.

**On any other graph** the way is made of f + 1 paths that share no broker, as far as there are so many. Each broker on
them has to get the message, too, whoever else fails: so paths to these are added until each has f + 1 of its own (or a
link to the origin). Within the result everyone passes the message on to everyone.

**On a tree** there is one path; that is the special case f = 0 of both.

A region depends on the graph, f, the origin and the ends, and on nothing that happens; so all brokers agree on it.
"""

from collections.abc import Iterable
from functools import lru_cache
from itertools import pairwise

from gapless.overlay import Graph, Overlay, disjoint_paths

__all__ = ["Region", "Regions", "regions_of"]

KEPT_MAX = 4096
"""Regions of several ends that are remembered."""


class Region:
    """The brokers that get a message, and for each those that it passes it on to."""

    def __init__(self, following: dict[str, tuple[str, ...]]) -> None:
        self.following = following
        self.brokers = tuple(following)


class Regions:
    """All regions of one graph and one f."""

    def __init__(self, overlay: Overlay, f: int) -> None:
        self._overlay = overlay
        bypass = overlay.bypass if isinstance(overlay, Graph) else 0
        self._tree = overlay if overlay.is_tree else overlay.tree if isinstance(overlay, Graph) and bypass else None
        self._reach = min(bypass, f) + 1
        self._paths = f + 1
        self._single: dict[tuple[str, str], Region] = {}
        self._joint: dict[tuple[str, tuple[str, ...]], Region] = {}

    def of(self, origin: str, ends: tuple[str, ...]) -> Region:
        """The region of a message to these ends."""
        if len(ends) == 1:
            return self.way(origin, ends[0])
        key = (origin, ends)
        found = self._joint.get(key)
        if found is None:
            if len(self._joint) >= KEPT_MAX:
                self._joint.clear()
            found = self._joint[key] = _union(origin, [self.way(origin, end) for end in ends])
        return found

    def way(self, origin: str, end: str) -> Region:
        """The region of a message to one end."""
        found = self._single.get((origin, end))
        if found is None:
            if self._tree is not None:
                found = _braid(self._tree.path(origin, end), self._reach)
            else:
                found = self._web(origin, end)
            self._single[origin, end] = found
        return found

    def frontier(self, origin: str, end: str, covered: Iterable[str], least: int = 1) -> tuple[str, ...] | None:
        """The partial pivots: the first covered brokers on each way from the end towards the origin.

        None if messages from the origin can avoid them: on a general graph, only brokers that separate the end from
        the origin will do. A covered end is a partial pivot itself. On a tree it is joined by the next brokers towards
        the origin, `least` in all; a pivot further away has them already, for each of the next f passes messages over
        the pivot. Every broker returned is one of `covered`, or lies between a covered end and the origin.
        """
        known = set(covered)
        way = self.way(origin, end).following
        before: dict[str, list[str]] = {}
        for name, others in way.items():
            for other in others:
                before.setdefault(other, []).append(name)
        found: dict[str, None] = {}
        seen = {end}
        queue = [end]
        for name in queue:
            if name in known:
                found[name] = None
                continue
            if name == origin:
                return None
            for other in before.get(name, ()):
                if other not in seen:
                    seen.add(other)
                    queue.append(other)
        if self._tree is not None and end in known:
            found = dict.fromkeys(self.way(origin, end).brokers[-least:])
        pivots = tuple(sorted(found))
        if self._tree is None and pivots != (end,) and self._goes_round(origin, end, found):
            return None
        return pivots

    def _goes_round(self, origin: str, end: str, pivots: dict[str, None]) -> bool:
        if origin in pivots:
            return False
        seen = {origin}
        queue = [origin]
        for name in queue:
            for other in self._overlay.neighbours(name):
                if other not in seen and other not in pivots:
                    seen.add(other)
                    queue.append(other)
        return end in seen

    def _web(self, origin: str, end: str) -> Region:
        """Disjoint paths to the end and, in turn, to everyone on them."""
        links: dict[str, dict[str, None]] = {origin: {}}
        todo = [end]
        done: dict[str, None] = {origin: None}
        while todo:
            name = todo.pop(0)
            if name in done:
                continue
            done[name] = None
            wanted = disjoint_paths(self._overlay.neighbours, origin, name, self._paths)
            inside = disjoint_paths(lambda at: links.get(at, {}), origin, name, self._paths)
            if name in links and (origin in links[name] or len(inside) >= len(wanted)):
                continue
            for path in wanted:
                for one, other in pairwise(path):
                    links.setdefault(one, {})[other] = None
                    links.setdefault(other, {})[one] = None
                    todo += [one, other]
        return Region({name: tuple(sorted(others)) for name, others in links.items()})


@lru_cache(16)
def regions_of(overlay: Overlay, f: int) -> Regions:
    """The regions of a graph; all brokers of one process share them."""
    return Regions(overlay, f)


def _braid(path: tuple[str, ...], reach: int) -> Region:
    return Region({name: path[place + 1 : place + 1 + reach] for place, name in enumerate(path)})


def _union(origin: str, regions: list[Region]) -> Region:
    following: dict[str, dict[str, None]] = {origin: {}}
    for region in regions:
        for name, others in region.following.items():
            following.setdefault(name, {}).update(dict.fromkeys(others))
    return Region({name: tuple(others) for name, others in following.items()})
