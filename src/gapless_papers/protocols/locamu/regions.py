"""The region of a message: all brokers on the paths from its origin to its receivers, and how they forward it.

**On a tree with bypasses** (Figure 4(b) of the paper on LoCaPS) the path to a receiver is that of the tree, and each
broker on it forwards the message to the next f + 1. Any f in a row can fail.

**On any other graph** the path consists of f + 1 paths that share no broker, as far as there are so many. Each broker
on them must also get the message when others fail, so paths to these brokers are added until each has f + 1 of its own
(or a link to the origin). Within the result every broker forwards the message to every other.

**On a tree** there is one path; that is the special case f = 0 of both.

A region depends on nothing but the graph, f, the origin and the receivers, so all brokers agree on it.
"""

from collections.abc import Iterable
from functools import lru_cache
from itertools import pairwise

from gapless.overlay import Graph, Overlay, disjoint_paths

__all__ = ["Region", "Regions", "regions_of"]

KEPT_MAX = 4096
"""The number of regions with several receivers that are cached."""


class Region:
    """The brokers that get a message, and the next hops of each."""

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
        """Return the region of a message to these receivers."""
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
        """Return the region of a message to one receiver."""
        found = self._single.get((origin, end))
        if found is None:
            if self._tree is not None:
                found = _braid(self._tree.path(origin, end), self._reach)
            else:
                found = self._web(origin, end)
            self._single[origin, end] = found
        return found

    def frontier(self, origin: str, end: str, covered: Iterable[str], least: int = 1) -> tuple[str, ...] | None:
        """Return the partial pivots: the first covered brokers on each path from the receiver towards the origin.

        Return None if messages from the origin can avoid them: on a general graph, only brokers that separate the
        receiver from the origin qualify. A covered receiver is a partial pivot itself. On a tree it is joined by the
        next brokers towards the origin, `least` in all. A pivot further away has them already, because each of the next
        f forwards messages over the pivot. Every broker returned is one of `covered`, or is between a covered receiver
        and the origin.
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
        if self._tree is None and pivots != (end,) and self._has_bypass(origin, end, found):
            return None
        return pivots

    def _has_bypass(self, origin: str, end: str, pivots: dict[str, None]) -> bool:
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
        """Return disjoint paths to the receiver and, in turn, to every broker on them."""
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
    """Return the regions of a graph; all brokers of one process share them."""
    return Regions(overlay, f)


def _braid(path: tuple[str, ...], reach: int) -> Region:
    return Region({name: path[place + 1 : place + 1 + reach] for place, name in enumerate(path)})


def _union(origin: str, regions: list[Region]) -> Region:
    following: dict[str, dict[str, None]] = {origin: {}}
    for region in regions:
        for name, others in region.following.items():
            following.setdefault(name, {}).update(dict.fromkeys(others))
    return Region({name: tuple(others) for name, others in following.items()})
