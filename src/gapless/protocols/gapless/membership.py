"""Who lives: a lattice that only grows, and who may say what.

A broker's **status** is a number: twice its life, plus one once that life is excluded. Two opinions merge by
the maximum, so everyone who hears the same news in any order ends with the same view, and an excluded life stays
excluded: a broker that was wrongly suspected must come back as a new life.

- Only a broker itself declares a new life.
- Only one broker may exclude another: its nearest ancestor that is not excluded, by its own failure detector.
  So when a link breaks and both ends suspect each other, only the lower end is excluded.
- Where no ancestor is left (the root, or a broker below an excluded root), the live broker of lowest rank nearby
  decides, once every neighbour of the accused that it can still hear has accused it as well.

A suspicion counts against the life that was known when it arose. If a new life turns up while the detector still
suspects the broker, the suspicion is renewed after a while.
"""

from collections.abc import Mapping

from gapless.overlay import Overlay
from gapless.protocols.gapless.contraction import Statuses, excluded

__all__ = ["Membership"]


class Membership:
    """One broker's knowledge of who lives, within `radius` of it."""

    def __init__(self, name: str, life: int, overlay: Overlay, radius: int) -> None:
        self.name = name
        self.overlay = overlay
        self.status: Statuses = {name: 2 * life} if life else {}
        self._near = frozenset(overlay.within(name, radius)) | {name}
        self._suspected: dict[str, int] = {}
        self._accusers: dict[str, dict[str, int]] = {}

    def life(self, name: str) -> int:
        """The life of the broker that is, or was last, known."""
        return self.status.get(name, 0) // 2

    def excluded(self, name: str) -> bool:
        """Whether the broker's last known life is out."""
        return excluded(self.status, name)

    def merge(self, status: Mapping[str, int]) -> dict[str, int]:
        """Take over what is news; return it."""
        news = {b: s for b, s in status.items() if b in self._near and s > self.status.get(b, 0)}
        self.status.update(news)
        return news

    def suspects(self, name: str) -> bool:
        """Whether the failure detector suspects the broker now."""
        return name in self._suspected

    def suspect(self, name: str) -> None:
        """The failure detector suspects the broker's current life."""
        self._suspected[name] = self.life(name)

    def trust(self, name: str) -> None:
        """The failure detector trusts the broker again."""
        self._suspected.pop(name, None)

    def accuse(self, accuser: str, name: str, status: int, guilty: bool) -> None:
        """A broker's failure detector spoke about one that no ancestor can judge."""
        accusers = self._accusers.setdefault(name, {})
        if guilty:
            accusers[accuser] = status
        else:
            accusers.pop(accuser, None)

    def is_orphaned(self, name: str) -> bool:
        """Whether no live ancestor is there to judge the broker."""
        return self._judge(name) is None

    def verdicts(self) -> dict[str, int]:
        """The brokers that this one has to exclude now, with their new statuses."""
        found: dict[str, int] = {}
        again = True
        while again:
            again = False
            for name, life in sorted(self._suspected.items(), key=lambda item: self.overlay.rank[item[0]]):
                status = 2 * life
                if self.status.get(name, 0) == status and self._may_exclude(name, status):
                    found[name] = self.status[name] = status + 1
                    again = True
        return found

    def _may_exclude(self, name: str, status: int) -> bool:
        judge = self._judge(name)
        if judge is not None:
            return judge == self.name
        hearing = [b for b in self.overlay.within(name, 2) if not self.excluded(b) and b not in self._suspected]
        if min(hearing, key=self.overlay.rank.__getitem__, default=None) != self.name:
            return False
        accusers = self._accusers.get(name, {})
        neighbours = [b for b in self.overlay.neighbours(name) if b in hearing and b != self.name]
        return all(accusers.get(b, -1) >= status for b in neighbours)

    def _judge(self, name: str) -> str | None:
        """The nearest ancestor of the broker that is not excluded."""
        above = self.overlay.parent[name]
        while above is not None and self.excluded(above):
            above = self.overlay.parent[above]
        return above
