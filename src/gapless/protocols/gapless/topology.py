"""The tree of brokers as versioned data, and the structures that follow from it and the brokers' statuses.

The **electorate** of a broker is the broker itself and its 2f nearest others. An incarnation of it is excluded, and its
journal sealed, by f + 1 of them; an event that it admits is confirmed when the broker and f others of them hold it. Any
f + 1 of the 2f others intersect any f, so an excluding majority knows every confirmed event.

The tree without the excluded brokers is **contracted**: a connected set of them is replaced by a star of their
neighbours around the lowest-ranked one. A **region** is a connected set of brokers that are excluded or joining; its
**group** is the live brokers in and around it. A handover replaces the links of one region.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from hashlib import blake2b

import msgspec

from gapless.overlay import Overlay
from gapless.protocols.gapless.identities import Status

__all__ = [
    "FIRST",
    "NewLink",
    "Region",
    "Statuses",
    "Topology",
    "electorates",
    "next_hops",
    "status_of",
    "topology_of",
    "why_too_small",
]

Statuses = dict[str, Status]
WINDOW_MIN = 64
"""The smallest window, in KiB. A larger entry is sent on its own."""
FIRST = Status()
"""The status of a broker before any update: joined, in its first incarnation."""


def status_of(statuses: Mapping[str, Status], name: str) -> Status:
    """Return the known status of a broker."""
    return statuses.get(name, FIRST)


class NewLink(msgspec.Struct, frozen=True):
    """A link of the contracted tree."""

    ends: tuple[str, str]
    via: frozenset[str] = frozenset()
    """The excluded brokers that the link bypasses."""


class Region(msgspec.Struct, frozen=True):
    """A part of the tree to be handed over."""

    core: frozenset[str]
    group: tuple[str, ...]
    """The members of the handover in rank order: brokers of the core that are not excluded, and its neighbours."""
    tag: int
    """Identifies the statuses of the core and the incarnations of the group. Tags are unique because statuses only
    grow."""


class Topology:
    """Version 1 of the tree; the tree does not change at present."""

    version = 1

    def __init__(self, overlay: Overlay, f: int) -> None:
        self.overlay = overlay
        self.f = f
        self.brokers = tuple(sorted(overlay.brokers, key=overlay.rank.__getitem__))
        self._peers: dict[str, tuple[str, ...]] = {}
        self.acceptors: dict[str, tuple[str, ...]] = {name: _nearest(overlay, name, 2 * f) for name in self.brokers}
        """For each broker: the others in its electorate, nearest first."""
        accepts_for: dict[str, list[str]] = {name: [] for name in self.brokers}
        for name, acceptors in self.acceptors.items():
            for acceptor in acceptors:
                accepts_for[acceptor].append(name)
        self.accepts_for: dict[str, tuple[str, ...]] = {name: tuple(each) for name, each in accepts_for.items()}
        """For each broker: the other brokers whose electorates it belongs to."""

    def __reduce__(self) -> tuple[Callable[[Overlay, int], "Topology"], tuple[Overlay, int]]:
        return topology_of, (self.overlay, self.f)

    @property
    def quorum(self) -> int:
        """Return the number of an electorate's members that can exclude its broker."""
        return self.f + 1

    def electorate(self, name: str) -> tuple[str, ...]:
        """Return the broker and its acceptors."""
        return (name, *self.acceptors[name])

    def peers(self, name: str) -> tuple[str, ...]:
        """Return the brokers that share an electorate or a link with this one, which receive its status updates
        directly."""
        if name not in self._peers:
            own = (*self.overlay.neighbours(name), *self.acceptors[name], *self.accepts_for[name])
            colleagues = (other for broker in self.accepts_for[name] for other in self.acceptors[broker])
            self._peers[name] = tuple(dict.fromkeys(other for other in (*own, *colleagues) if other != name))
        return self._peers[name]

    def around(self, name: str, is_gone: Callable[[str], bool]) -> tuple[str, ...]:
        """Return the reachable brokers that border a connected group of unreachable brokers next to `name`."""
        near = filter(is_gone, self.overlay.neighbours(name))
        gone = {other for start in near for other in self._connected(start, is_gone)}
        return self._ranked({other for one in gone for other in self.overlay.neighbours(one)} - gone - {name})

    def journals_at(self, name: str) -> int:
        """Return the maximum number of growing journals that a broker holds: its own, and those for which it is an
        acceptor."""
        return 1 + len(self.accepts_for[name])

    def window(self, name: str, most: int, history_bytes: int) -> int:
        """Return the maximum cost of a broker's entries that not all brokers have processed (see
        `journal_state.cost_of`).

        The holders of its journal cannot drop these entries. The windows are chosen so that all journals on any broker
        together take at most `history_bytes`.
        """
        shares = max(self.journals_at(member) for member in (name, *self.acceptors[name]))
        return min(most, history_bytes // 1024 // shares)

    # ---- the contracted tree ------------------------------------------------------------------------------

    def regions_of(self, statuses: Statuses, name: str) -> list[Region]:
        """Return the regions whose groups contain the broker."""
        found: list[Region] = []
        for seed in (name, *self.overlay.neighbours(name)):
            if not status_of(statuses, seed).is_joined and not any(seed in region.core for region in found):
                region = self._region(statuses, seed)
                if name in region.group:
                    found.append(region)
        return found

    def _region(self, statuses: Statuses, seed: str) -> Region:
        core = self._connected(seed, lambda name: not status_of(statuses, name).is_joined)
        around = core | {other for name in core for other in self.overlay.neighbours(name)}
        group = self._ranked(name for name in around if not status_of(statuses, name).is_excluded)
        words = [f"{name}={tuple(status_of(statuses, name)[:3])}" for name in self._ranked(core)]
        words += [f"{name}={status_of(statuses, name).number}" for name in group]
        tag = int.from_bytes(blake2b(";".join(words).encode(), digest_size=8).digest(), "big") >> 1
        return Region(frozenset(core), group, tag)

    def links_of(self, statuses: Statuses, region: Region) -> list[NewLink]:
        """Return the links of the contracted tree that replace the links of a region."""
        members = set(region.group)
        links = [
            NewLink((one, other))
            for one in region.group
            for other in self.overlay.neighbours(one)
            if other in members
            and self.overlay.rank[one] < self.overlay.rank[other]
            and (one in region.core or other in region.core)
        ]
        left = {name for name in region.core if status_of(statuses, name).is_excluded}
        while left:
            hole = self._connected(min(left, key=self.overlay.rank.__getitem__), left.__contains__)
            left -= hole
            around = self._ranked({other for name in hole for other in self.overlay.neighbours(name)} - hole)
            links += [NewLink((around[0], other), frozenset(hole)) for other in around[1:]]
        return links

    def _connected(self, seed: str, belongs: Callable[[str], bool]) -> set[str]:
        found, stack = {seed}, [seed]
        while stack:
            for other in self.overlay.neighbours(stack.pop()):
                if other not in found and belongs(other):
                    found.add(other)
                    stack.append(other)
        return found

    def _ranked(self, names: Iterable[str]) -> tuple[str, ...]:
        return tuple(sorted(names, key=self.overlay.rank.__getitem__))


@lru_cache(maxsize=8)
def topology_of(overlay: Overlay, f: int) -> Topology:
    """Return the topology. All brokers of a simulated network share one overlay, and so one topology."""
    return Topology(overlay, f)


def _nearest(overlay: Overlay, name: str, count: int) -> tuple[str, ...]:
    """Return the `count` nearest other brokers, sorted by distance and then by name, so that the order in the file does
    not matter."""
    found: list[str] = []
    seen, ring = {name}, [name]
    while ring and len(found) < count:
        ring = sorted({other for at in ring for other in overlay.neighbours(at)} - seen)
        seen.update(ring)
        found += ring
    return tuple(found[:count])


def why_too_small(overlay: Overlay, f: int, history_bytes: int) -> str | None:
    """Return why the network is too small to exclude brokers by majority, or to keep their journals, with possible
    solutions; None if it is large enough."""
    brokers = len(overlay.brokers)
    if brokers < 2 * f + 1:
        return (
            f"f = {f} needs {2 * f + 1} brokers, but there are {brokers}: choose a smaller f, or add brokers (they may "
            "serve no clients)"
        )
    journals = max(map(Topology(overlay, f).journals_at, overlay.brokers))
    needed = journals * WINDOW_MIN * 1024
    if history_bytes < needed:
        return (
            f"history_bytes = {history_bytes:,} is too small: one broker holds {journals} journals, and each needs "
            f"{WINDOW_MIN} KiB for events that some broker has not processed; set it to {needed:,} or more"
        )
    return None


def electorates(overlay: Overlay, f: int) -> dict[str, tuple[str, ...]]:
    """Return the electorate of each broker: the broker itself and its 2f nearest others."""
    acceptors = Topology(overlay, f).acceptors
    return {name: (name, *others) for name, others in acceptors.items()}


def next_hops(name: str, links: list[NewLink]) -> dict[str, str]:
    """Return, for each other member of a group, the neighbour through which `name` reaches it."""
    adjacent: dict[str, list[str]] = {}
    for link in links:
        one, other = link.ends
        adjacent.setdefault(one, []).append(other)
        adjacent.setdefault(other, []).append(one)
    hops: dict[str, str] = {}
    for first in adjacent.get(name, ()):
        stack = [first]
        hops[first] = first
        while stack:
            for other in adjacent[stack.pop()]:
                if other != name and other not in hops:
                    hops[other] = first
                    stack.append(other)
    return hops
