"""Who is next to whom while some brokers are excluded.

The tree is *contracted*: a connected set of excluded brokers merges into one live broker on its boundary, the
**stand-in**, to which all others on the boundary are then linked. The stand-in is the boundary broker of lowest
rank, which is the parent of the set's topmost broker, or, where the set contains the root, the highest of its
children. Everybody computes this from the tree and the statuses alone.

A **region** is a part of the tree that has to be handed over together: a connected set of unsettled brokers. Its
**group** is its live brokers and all live brokers next to it. Since a region is a function of the statuses, brokers
that agree on the statuses agree on the group. Its `tag` names the statuses in it and around it. As statuses only grow,
a tag never comes back, and so names one hand-over.
"""

from hashlib import blake2b

import msgspec

from gapless.overlay import Overlay
from gapless.protocols.gapless.members.status import FIRST, Statuses, is_excluded, is_unsettled

__all__ = ["Region", "effective_links", "excluded", "path_inside", "regions_at", "stand_in"]


class Region(msgspec.Struct, frozen=True):
    """A part of the tree to be handed over together."""

    core: tuple[str, ...]
    """The unsettled brokers, in rank order."""
    group: tuple[str, ...]
    """The live brokers that take part, in rank order."""
    tag: int

    def concerns(self, name: str) -> bool:
        """Whether the broker's status is one of those that the tag names."""
        return name in self.core or name in self.group

    def touches(self, other: "Region") -> bool:
        """Whether the two have an unsettled broker in common."""
        return not set(self.core).isdisjoint(other.core)


def excluded(status: Statuses, name: str) -> bool:
    """Whether the broker is out."""
    return is_excluded(status.get(name, FIRST))


def stand_in(overlay: Overlay, status: Statuses, name: str) -> str | None:
    """Who stands in for the excluded broker (None if nobody is left)."""
    return min(_boundary(overlay, status, name), key=overlay.rank.__getitem__, default=None)


def effective_links(overlay: Overlay, status: Statuses, name: str) -> list[tuple[str, str]]:
    """The links of a live broker in the contracted tree, as (first broker on the way, peer)."""
    links = []
    for via in overlay.neighbours(name):
        if not excluded(status, via):
            links.append((via, via))
            continue
        boundary = _boundary(overlay, status, via)
        chief = min(boundary, key=overlay.rank.__getitem__)
        links += [(via, peer) for peer in boundary if peer != name] if chief == name else [(via, chief)]
    return links


def regions_at(overlay: Overlay, status: Statuses, name: str) -> list[Region]:
    """All regions whose group contains the broker."""
    regions: list[Region] = []
    for seed in (name, *overlay.neighbours(name)):
        if _unsettled(status, seed) and not any(seed in region.core for region in regions):
            regions.append(_region(overlay, status, seed))
    return regions


def path_inside(overlay: Overlay, status: Statuses, group: tuple[str, ...], name: str) -> dict[str, str]:
    """For each other member of the group, the peer through which `name` reaches it in the contracted tree."""
    members = set(group)
    towards: dict[str, str] = {}
    for _, first in effective_links(overlay, status, name):
        if first not in members:
            continue
        stack = [(first, name)]
        while stack:
            at, back = stack.pop()
            towards[at] = first
            stack += [(p, at) for _, p in effective_links(overlay, status, at) if p != back and p in members]
    return towards


def _boundary(overlay: Overlay, status: Statuses, name: str) -> list[str]:
    """The live brokers around the connected set of excluded brokers that contains `name`, in rank order."""
    found = []
    stack, seen = [name], {name}
    while stack:
        for other in overlay.neighbours(stack.pop()):
            if other not in seen:
                seen.add(other)
                if excluded(status, other):
                    stack.append(other)
                else:
                    found.append(other)
    return sorted(found, key=overlay.rank.__getitem__)


def _unsettled(status: Statuses, name: str) -> bool:
    return is_unsettled(status.get(name, FIRST))


def _region(overlay: Overlay, status: Statuses, seed: str) -> Region:
    core, stack = {seed}, [seed]
    group = set() if excluded(status, seed) else {seed}
    while stack:
        at = stack.pop()
        for other in overlay.neighbours(at):
            if other in core:
                continue
            if _unsettled(status, other):
                core.add(other)
                stack.append(other)
            if not excluded(status, other):
                group.add(other)
    ordered = sorted(core, key=overlay.rank.__getitem__)
    members = sorted(group, key=overlay.rank.__getitem__)
    text = ";".join(",".join(f"{name}={status.get(name, FIRST)}" for name in names) for names in (ordered, members))
    tag = int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big") >> 1
    return Region(tuple(ordered), tuple(members), tag)
